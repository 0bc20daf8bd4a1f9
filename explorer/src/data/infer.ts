// The inference of the model, as models/portable/arrays.py in the Python package describes it.

import type { Part } from "./unpack";

export interface InferenceValues {
  encoder?: { input: "raw" | "l1" | "log1p" | "tfidf"; activation: "softplus" | "relu" | "tanh" };
  readout?: { link: "softmax" | "counts" | "softplus"; floor: number };
  topics?: Iteration;
  steps: ({ assign: number[]; fewest: number } | { topic: number; parts: Iteration } | { steps: number })[];
}

interface Iteration {
  kind: "refine" | "mean_field";
  steps: number;
  share: number;
  prior_tokens?: number;
  tolerance: number;
}

type Floats = Float32Array | Float64Array;
export type Inference = (words: number[], counts: number[]) => Float64Array;

const TINY = 1e-10;
const softplus = (x: number) => (x > 30 ? x : Math.log1p(Math.exp(x)));

/** Returns a function from the words of a document and their counts to its topic shares. */
export function inferenceOf(part: Part<InferenceValues>): Inference {
  const { encoder, readout, topics } = part.values;
  const arrays = part.arrays as Record<string, Floats>;
  return (words, counts) => {
    if (!words.length) return Float64Array.from(arrays.average);
    let theta: Float64Array | null = null;
    if (encoder && readout) theta = read(readout, arrays, encode(encoder, arrays, words, counts), counts.reduce((a, b) => a + b, 0));
    if (topics?.kind === "mean_field") theta = meanField(topics, arrays, words, counts);
    else if (topics && theta) theta = refine(topics, arrays, words, counts, theta);
    part.values.steps.forEach((step, number) => {
      theta = edited(step, number, arrays, words, counts, theta!);
    });
    return theta as unknown as Float64Array;
  };
}

function encode(about: NonNullable<InferenceValues["encoder"]>, arrays: Record<string, Floats>, words: number[], counts: number[]) {
  const f = about.activation === "softplus" ? softplus : about.activation === "relu" ? (x: number) => Math.max(x, 0) : Math.tanh;
  const { weight, bias, hidden, hidden_bias: shift, idf } = arrays;
  const size = bias.length;
  const total = counts.reduce((a, b) => a + b, 0);
  let values = counts;
  if (about.input === "log1p") values = counts.map(Math.log1p);
  else if (about.input === "l1") values = counts.map((x) => x / total);
  else if (about.input === "tfidf") {
    const weighted = counts.map((x, i) => x * idf[words[i]]);
    const norm = Math.max(Math.hypot(...weighted), 1e-12);
    values = weighted.map((x) => x / norm);
  }
  const first = Float64Array.from(bias);
  words.forEach((word, i) => {
    for (let j = 0; j < size; j++) first[j] += values[i] * weight[word * size + j];
  });
  const inner = first.map(f);
  return affine(hidden, shift, inner).map(f);
}

/** A x + b, where A has a row for each element of b. */
function affine(matrix: Floats, shift: Floats, x: Float64Array): Float64Array {
  const out = Float64Array.from(shift);
  for (let row = 0, at = 0; row < out.length; row++) {
    let sum = 0;
    for (let j = 0; j < x.length; j++) sum += matrix[at++] * x[j];
    out[row] += sum;
  }
  return out;
}

/** theta after topics were merged or dropped, after one was split, or after some were added. */
function edited(
  step: InferenceValues["steps"][number],
  number: number,
  arrays: Record<string, Floats>,
  words: number[],
  counts: number[],
  theta: Float64Array,
): Float64Array {
  if ("assign" in step) {
    const average = Float64Array.from(arrays[`average_${number}`]);
    const sums = new Float64Array(average.length);
    step.assign.forEach((to, k) => {
      if (to >= 0) sums[to] += theta[k];
    });
    return sums.reduce((a, b) => a + b, 0) >= step.fewest ? normalised(sums) : average;
  }
  if ("steps" in step) return added(step.steps, arrays[`beta_t_${number}`], arrays[`alpha_${number}`], words, counts, theta);
  const before = arrays[`before_${number}`];
  const own = words.map((word, i) => {
    let mass = TINY;
    for (let k = 0; k < theta.length; k++) mass += theta[k] * before[word * theta.length + k];
    return (counts[i] * theta[step.topic] * before[word * theta.length + step.topic]) / mass;
  });
  const parts = meanField(step.parts, { beta_t: arrays[`beta_t_${number}`], alpha: arrays[`alpha_${number}`] }, words, own);
  const share = theta[step.topic];
  const whole = Float64Array.from([...theta, ...parts.subarray(1).map((part) => part * share)]);
  whole[step.topic] = share * parts[0];
  return whole;
}

/** theta with added topics: EM divides the tokens between the old topics, as theta mixes them, and each new one. */
function added(steps: number, beta: Floats, alpha: Floats, words: number[], counts: number[], theta: Float64Array): Float64Array {
  const prior = Array.from(alpha);
  const width = theta.length + prior.length - 1;
  const total = [...prior, ...counts].reduce((a, b) => a + b, 0);
  const parts = words.map((word) => {
    const row = beta.subarray(word * width, (word + 1) * width);
    return [theta.reduce((sum, share, k) => sum + share * row[k], 0), ...row.subarray(theta.length)];
  });
  let shares = Array.from(normalised(Float64Array.from(prior)));
  for (let step = 0; step < steps; step++) {
    const next = [...prior];
    parts.forEach((part, i) => {
      const weights = part.map((weight, j) => weight * shares[j]);
      const mass = weights.reduce((a, b) => a + b, TINY);
      weights.forEach((weight, j) => (next[j] += (counts[i] * weight) / mass));
    });
    shares = next.map((tokens) => tokens / total);
  }
  return Float64Array.from([...theta.map((share) => share * shares[0]), ...shares.slice(1)]);
}

function read(about: NonNullable<InferenceValues["readout"]>, arrays: Record<string, Floats>, hidden: Float64Array, total: number): Float64Array {
  const x = affine(arrays.readout, arrays.readout_bias, hidden);
  const shift = Math.max(...x);
  let weights: Float64Array = about.link === "softplus" ? x.map((v) => softplus(v) + about.floor) : normalised(x.map((v) => Math.exp(v - shift)));
  if (about.link === "counts") weights = weights.map((share, k) => total * share + arrays.smoothing[k]);
  if (arrays.gate) {
    const gate = affine(arrays.gate, arrays.gate_bias, hidden);
    weights = weights.map((w, k) => w * Math.exp(-softplus(-gate[k])));
  }
  return normalised(weights);
}

function refine(
  about: Iteration,
  { beta_t: beta, alpha }: Record<string, Floats>,
  words: number[],
  counts: number[],
  start: Float64Array,
): Float64Array {
  const sum = Array.from(alpha).reduce((a, b) => a + b, 0);
  const total = counts.reduce((a, b) => a + b, 0);
  const larger = 1 + (about.prior_tokens ?? 0) / (sum * Math.max(total, 1));
  const own = start.map((share, k) => larger * ((1 - about.share) * alpha[k] + about.share * sum * share));
  let expected: Float64Array = start.map((share) => total * share);
  const gamma = words.map(() => new Float64Array(start.length));
  for (let step = 0; step < about.steps; step++) {
    const next = new Float64Array(start.length);
    words.forEach((word, i) => {
      const shares = gamma[i];
      let mass = TINY;
      // A token does not count for itself.
      for (let k = 0; k < shares.length; k++) {
        const weight = step ? Math.max(expected[k] - shares[k], 0) + own[k] : start[k];
        shares[k] = weight * beta[word * shares.length + k];
        mass += shares[k];
      }
      for (let k = 0; k < shares.length; k++) {
        shares[k] /= mass;
        next[k] += counts[i] * shares[k];
      }
    });
    expected = next;
  }
  return normalised(expected.map((count, k) => count + own[k]));
}

/** w_k sum_v x_v beta_vk / sum_j w_j beta_vj: the expected counts of topics with the weights w. */
function assigned(beta: Floats, words: number[], counts: number[], weights: Float64Array): Float64Array {
  const out = new Float64Array(weights.length);
  words.forEach((word, i) => {
    const at = word * weights.length;
    let mass = TINY;
    for (let k = 0; k < weights.length; k++) mass += weights[k] * beta[at + k];
    const ratio = counts[i] / mass;
    for (let k = 0; k < weights.length; k++) out[k] += ratio * weights[k] * beta[at + k];
  });
  return out;
}

function meanField(
  about: Iteration,
  { beta_t: beta, alpha }: Record<string, Floats>,
  words: number[],
  counts: number[],
): Float64Array {
  const total = counts.reduce((a, b) => a + b, 0);
  let gamma: Float64Array = Float64Array.from(alpha, (a) => a + total / alpha.length);
  for (let step = 0; step < about.steps; step++) {
    const whole = digamma(gamma.reduce((a, b) => a + b, 0));
    const update = assigned(beta, words, counts, gamma.map((g) => Math.exp(digamma(g) - whole))).map((count, k) => alpha[k] + count);
    const change = update.reduce((sum, value, k) => sum + Math.abs(value - gamma[k]), 0) / gamma.length;
    gamma = update;
    if (change <= about.tolerance) break;
  }
  return normalised(gamma);
}

function normalised(values: Float64Array): Float64Array {
  const sum = values.reduce((a, b) => a + b, 0);
  return values.map((value) => value / sum);
}

/** The derivative of log Gamma, by its recurrence and its asymptotic series. */
export function digamma(x: number): number {
  let shift = 0;
  while (x < 8) shift -= 1 / x++;
  const y = 1 / (x * x);
  return shift + Math.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))));
}
