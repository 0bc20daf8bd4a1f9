// The documents and words of the page as typed arrays.

import type { Core } from "./types";
import { readPart, type Part } from "./unpack";
import { Tokenizer, withoutEntities } from "./tokenize";

const ROOTS = Float64Array.from({ length: 256 }, (_, share) => Math.sqrt(share / 255));

/** All documents: their largest topics, positions, classes and times. */
export class Documents {
  readonly size: number;
  readonly starts: Uint32Array;
  readonly topics: Uint8Array | Uint16Array;
  readonly shares: Uint8Array; // in 255ths
  readonly typical: Uint8Array; // how typical each document is of these topics
  readonly places: Uint16Array;
  readonly tokens: Uint16Array;
  readonly main: Int16Array; // -1 for a document without a known word
  readonly labels: Uint8Array | Int32Array | null;
  readonly labelNames: string[];
  readonly times: Float64Array | null; // seconds since 1970
  readonly groups: Uint8Array[]; // by covariate, the group of each document, counted from 1; 0 for none that is shown
  private readonly ids: string[] | null;
  private readonly rows: Int32Array | null;

  constructor(part: Part<{ ids?: string[]; labels?: string[] }>) {
    const { arrays, values } = part;
    const sizes = arrays.sizes;
    this.size = sizes.length;
    this.topics = arrays.topics as Uint8Array;
    this.shares = arrays.shares as Uint8Array;
    this.typical = arrays.typical as Uint8Array;
    this.places = arrays.places as Uint16Array;
    this.tokens = arrays.tokens as Uint16Array;
    this.labels = (arrays.labels as Uint8Array | undefined) ?? null;
    this.labelNames = values.labels ?? [];
    this.times = (arrays.times as Float64Array | undefined) ?? null;
    const codes = arrays.covariates as Uint8Array | undefined;
    this.groups = Array.from({ length: codes ? codes.length / Math.max(1, this.size) : 0 }, (_, c) => codes!.subarray(c * this.size, (c + 1) * this.size));
    this.ids = values.ids ?? null;
    this.rows = (arrays.rows as Int32Array | undefined) ?? null;
    this.starts = new Uint32Array(this.size + 1);
    this.main = new Int16Array(this.size);
    for (let i = 0, at = 0; i < this.size; i++) {
      this.main[i] = sizes[i] ? this.topics[at] : -1;
      this.starts[i + 1] = at += sizes[i];
    }
  }

  /** Whether the documents were given ids; otherwise these are their numbers. */
  get hasIds(): boolean {
    return this.ids !== null;
  }

  id(place: number): string {
    return this.ids ? this.ids[place] : String(this.row(place));
  }

  /** The number of a document in the corpus; in a sample it is not its place. */
  row(place: number): number {
    return this.rows ? this.rows[place] : place;
  }

  label(place: number): string {
    const code = this.labels ? this.labels[place] : 0;
    return code ? this.labelNames[code - 1] : "";
  }

  /** The largest topics of a document with their shares, largest first. */
  largest(place: number): [number, number][] {
    const found: [number, number][] = [];
    for (let at = this.starts[place]; at < this.starts[place + 1]; at++) found.push([this.topics[at], this.shares[at] / 255]);
    return found;
  }

  /** How typical a document is of a topic; of those that are not, how large its share is. */
  typicality(place: number, topic: number): number {
    for (let at = this.starts[place]; at < this.starts[place + 1]; at++)
      if (this.topics[at] === topic) return this.typical[at] + this.shares[at] / 256;
    return 0;
  }

  share(place: number, topic: number): number {
    for (let at = this.starts[place]; at < this.starts[place + 1]; at++) if (this.topics[at] === topic) return this.shares[at] / 255;
    return 0;
  }

  /** How alike the shares of a document are to others, of which the square roots are given: the Bhattacharyya coefficient. */
  alike(place: number, roots: number[]): number {
    let sum = 0;
    for (let at = this.starts[place]; at < this.starts[place + 1]; at++) sum += ROOTS[this.shares[at]] * roots[this.topics[at]];
    return sum;
  }
}

interface WordsValues {
  vocabulary: string[];
  folded: Record<number, string>;
}

/** The topics as distributions over the words. */
export class Words {
  readonly vocabulary: string[]; // as texts write the words
  readonly folded: Record<number, string>; // as they are counted, where that differs
  readonly counts: Float32Array;
  private readonly parts: Float32Array; // (V, K)
  private readonly largest: Float32Array; // (V,)
  private readonly scale: Float64Array;
  private readonly total: number;

  constructor(
    part: Part<WordsValues>,
    readonly n_topics: number,
  ) {
    this.vocabulary = part.values.vocabulary;
    this.folded = part.values.folded;
    this.parts = part.arrays.parts as Float32Array;
    this.largest = part.arrays.largest as Float32Array;
    this.counts = part.arrays.counts as Float32Array;
    this.total = this.counts.reduce((a: number, b: number) => a + b, 0) || 1;
    // What is below the precision of the page is left out, so that the rows are normalised again.
    this.scale = new Float64Array(n_topics);
    for (let word = 0, at = 0; word < this.counts.length; word++)
      for (let k = 0; k < n_topics; k++, at++) this.scale[k] += this.parts[at] * this.largest[word];
    this.scale = this.scale.map((sum) => (sum > 0 ? 1 / sum : 0));
  }

  /** p(word | topic) */
  probability(word: number, topic: number): number {
    return this.parts[word * this.n_topics + topic] * this.largest[word] * this.scale[topic];
  }

  /** The share of the corpus's tokens that a word has. */
  frequency(word: number): number {
    return this.counts[word] / this.total;
  }

  /** The words of a topic by relevance (Sievert & Shirley 2014), best first. */
  ranked(topic: number, relevance: number, n: number): number[] {
    const size = this.counts.length;
    const scores = new Float64Array(size);
    const smooth = this.total + size;
    for (let word = 0; word < size; word++) {
      const p = this.probability(word, topic) + 1e-12;
      scores[word] = Math.log(p) - (1 - relevance) * Math.log((this.counts[word] + 1) / smooth);
    }
    const best: number[] = [];
    for (let word = 0; word < size; word++) {
      if (best.length === n && scores[word] <= scores[best[n - 1]]) continue;
      let at = best.length;
      while (at > 0 && scores[best[at - 1]] < scores[word]) at--;
      best.splice(at, 0, word);
      if (best.length > n) best.pop();
    }
    return best;
  }

  /** p(topic | word), given the shares of the topics. */
  topics(word: number, shares: Float32Array): Float64Array {
    const out = new Float64Array(this.n_topics);
    for (let k = 0; k < this.n_topics; k++) out[k] = this.probability(word, k) * shares[k];
    const sum = out.reduce((a, b) => a + b, 0) || 1;
    return out.map((value) => value / sum);
  }

  /** The topic that a word in a document most probably belongs to, and how probable that is. */
  topicIn(word: number, document: [number, number][]): [number, number] {
    let best = -1;
    let largest = 0;
    let sum = 0;
    for (const [topic, share] of document) {
      const weight = share * this.probability(word, topic);
      sum += weight;
      if (weight > largest) [best, largest] = [topic, weight];
    }
    return [best, sum > 0 ? largest / sum : 0];
  }
}

/** A value that is made when it is first asked for. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => (made ??= make());
}

export class Store {
  readonly documents: () => Promise<Documents>;
  readonly words: () => Promise<Words>;
  readonly texts: () => Promise<string[] | null>;
  readonly tokenizer: () => Promise<Tokenizer>;

  constructor(readonly core: Core) {
    this.documents = once(async () => new Documents((await readPart<{ ids?: string[] }>("documents"))!));
    this.words = once(async () => new Words((await readPart<WordsValues>("words"))!, core.n_topics));
    this.texts = once(async () => (await readPart<{ texts: string[] }>("texts"))?.values.texts.map((text) => this.shown(text)) ?? null);
    this.tokenizer = once(async () => new Tokenizer(core.tokenizer, await this.words()));
  }

  /** A text as it is shown: with the characters that the tokenizer reads for entities. */
  shown(text: string): string {
    return this.core.tokenizer.strip_html ? withoutEntities(text) : text;
  }
}
