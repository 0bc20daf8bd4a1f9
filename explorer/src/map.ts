// The map of documents without its window: which documents are near a point, how dense the topics are, how points are
// drawn, and where the names of topics find room. Places are numbers from 0 to 65535 on both axes.

import type { Documents } from "./data/store";

const FULL = 65535;
const EDGE = 0.07; // of the map on each side, into which clouds reach
const CELLS = 128; // of the index, on each axis
const SHIFT = 9; // 65536 / CELLS as a power of two

/** Some documents by cells of the map, to find the nearest one to a point. */
export class Nearby {
  private readonly starts = new Uint32Array(CELLS * CELLS + 1);
  private readonly order: Uint32Array;

  constructor(
    private readonly places: Uint16Array,
    members: Uint32Array,
  ) {
    const { starts } = this;
    for (const each of members) starts[this.cell(each) + 1]++;
    for (let cell = 0; cell < CELLS * CELLS; cell++) starts[cell + 1] += starts[cell];
    this.order = new Uint32Array(members.length);
    const next = starts.slice();
    for (const each of members) this.order[next[this.cell(each)]++] = each;
  }

  private cell(document: number): number {
    return (this.places[2 * document + 1] >> SHIFT) * CELLS + (this.places[2 * document] >> SHIFT);
  }

  /** The document that is nearest to a point, within an ellipse around it; -1 if there is none. */
  nearest(x: number, y: number, rx: number, ry: number): number {
    const [left, right] = [x - rx, x + rx].map((at) => Math.max(0, Math.min(CELLS - 1, at >> SHIFT)));
    const [top, bottom] = [y - ry, y + ry].map((at) => Math.max(0, Math.min(CELLS - 1, at >> SHIFT)));
    let best = -1;
    let least = 1;
    for (let row = top; row <= bottom; row++) {
      for (let at = this.starts[row * CELLS + left]; at < this.starts[row * CELLS + right + 1]; at++) {
        const each = this.order[at];
        const distance = ((this.places[2 * each] - x) / rx) ** 2 + ((this.places[2 * each + 1] - y) / ry) ** 2;
        if (distance <= least) [least, best] = [distance, each];
      }
    }
    return best;
  }
}

/** The documents inside a polygon, whose corners are x, y, x, y, ... */
export function inside(places: Uint16Array, members: Uint32Array, corners: number[]): Uint32Array {
  const xs = corners.filter((_, at) => at % 2 === 0);
  const ys = corners.filter((_, at) => at % 2 === 1);
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  return members.filter((each) => {
    const [x, y] = [places[2 * each], places[2 * each + 1]];
    if (x < left || x > right || y < top || y > bottom) return false;
    let within = false;
    for (let at = 0, before = xs.length - 1; at < xs.length; before = at++) {
      if (ys[at] > y !== ys[before] > y && x < ((xs[before] - xs[at]) * (y - ys[at])) / (ys[before] - ys[at]) + xs[at]) within = !within;
    }
    return within;
  });
}

/** How many documents of each topic are around each point of the map, as smooth grids of numbers. */
export class Density {
  readonly size: number; // cells on each axis
  private readonly whole = FULL + 1;
  /** The place at which the first row and column begin, and the length of all together. */
  readonly start = -EDGE * this.whole;
  readonly length = (1 + 2 * EDGE) * this.whole;
  private readonly grids: Float32Array; // (K, size, size)
  private readonly usual: number; // the mean of the sum over topics where there are documents

  constructor(
    documents: Documents,
    readonly n_topics: number,
  ) {
    const size = (this.size = n_topics > 150 ? 48 : 96);
    const cells = size * size;
    const { places, main } = documents;
    this.grids = new Float32Array(n_topics * cells);
    for (let each = 0; each < documents.size; each++) {
      if (main[each] >= 0) this.grids[main[each] * cells + this.at(places[2 * each], places[2 * each + 1])]++;
    }
    const spare = new Float32Array(cells);
    for (let k = 0; k < n_topics; k++) smooth(this.grids.subarray(k * cells, (k + 1) * cells), spare, size);
    let [sum, n] = [0, 0];
    for (let cell = 0; cell < cells; cell++) {
      const all = this.total(cell);
      if (all > 0.05) [sum, n] = [sum + all, n + 1];
    }
    this.usual = sum / Math.max(1, n) || 1;
  }

  /** The number of the row or column of a place. */
  private line(place: number): number {
    return Math.max(0, Math.min(this.size - 1, Math.floor((place / this.whole + EDGE) / (1 + 2 * EDGE) * this.size)));
  }

  private at(x: number, y: number): number {
    return this.line(y) * this.size + this.line(x);
  }

  private total(cell: number): number {
    let sum = 0;
    for (let at = cell; at < this.grids.length; at += this.size * this.size) sum += this.grids[at];
    return sum;
  }

  /** The topic with the most documents around a point; -1 where there are few. */
  topicAt(x: number, y: number): number {
    if (x < 0 || y < 0 || x > FULL || y > FULL) return -1;
    const cell = this.at(x, y);
    let best = -1;
    let most = 0;
    for (let k = 0; k < this.n_topics; k++) {
      const here = this.grids[k * this.size * this.size + cell];
      if (here > most) [most, best] = [here, k];
    }
    return this.total(cell) > 0.12 * this.usual ? best : -1;
  }

  /** Where a topic is densest in a part of the map, and how dense it is there. */
  peak(topic: number, left = 0, top = 0, right = FULL, bottom = FULL): { x: number; y: number; most: number } {
    const { size } = this;
    const step = this.length / size;
    const found = { x: -1, y: -1, most: 0 };
    for (let row = 0; row < size; row++) {
      const y = this.start + (row + 0.5) * step;
      if (y < top || y > bottom) continue;
      for (let column = 0; column < size; column++) {
        const x = this.start + (column + 0.5) * step;
        const here = this.grids[(topic * size + row) * size + column];
        if (here > found.most && x >= left && x <= right) [found.x, found.y, found.most] = [x, y, here];
      }
    }
    return found;
  }

  /** The topics as soft clouds on a ground: the colour of each cell; `weight` is how strong a topic is shown, from 0 to 1. */
  clouds(colours: Rgb[], ground: Rgb, weight: (topic: number) => number): Clouds {
    const cells = this.size * this.size;
    const found = new Float32Array(3 * cells);
    const weights = colours.map((_, k) => weight(k));
    for (let cell = 0; cell < cells; cell++) {
      let [red, green, blue, sum, shown] = [0, 0, 0, 0, 0];
      for (let k = 0; k < this.n_topics; k++) {
        const here = this.grids[k * cells + cell];
        if (here <= 0) continue;
        const part = here * here * weights[k]; // the square, so that the densest topic gives the colour
        red += part * colours[k][0];
        green += part * colours[k][1];
        blue += part * colours[k][2];
        sum += part;
        shown += here * weights[k];
      }
      const opacity = sum ? 0.34 * (1 - Math.exp((-1.1 * shown) / this.usual)) : 0;
      const mixed = sum ? [red / sum, green / sum, blue / sum] : ground;
      for (let c = 0; c < 3; c++) found[3 * cell + c] = ground[c] + opacity * (mixed[c] - ground[c]);
    }
    return { size: this.size, start: this.start, length: this.length, colours: found };
  }
}

export interface Clouds { size: number; start: number; length: number; colours: Float32Array }

/** Paints clouds, of which each pixel is between the four nearest cells; two by two pixels are alike. */
function* paintedClouds(picture: ImageData, frame: Frame, { size, start, length, colours }: Clouds): Generator<void> {
  const pixels = new Uint32Array(picture.data.buffer);
  const { width, height } = picture;
  // For each column its left cell, and how far it is from there to the right one.
  const cellOf = (at: number, a: number, b: number) => Math.max(0, Math.min(size - 1.001, (((at - b) / a - start) / length) * size - 0.5));
  const columns = Float32Array.from({ length: (width + 1) >> 1 }, (_, at) => cellOf(2 * at + 1, frame.ax, frame.bx));
  for (let row = 0; row < height; row += 2) {
    if (row % 32 === 0) yield;
    const v = cellOf(row + 1, frame.ay, frame.by);
    const [above, down] = [Math.floor(v), v - Math.floor(v)];
    for (let at = 0; at < columns.length; at++) {
      const left = columns[at] | 0;
      const right = columns[at] - left;
      const first = 3 * (above * size + left);
      const below = first + 3 * size;
      const [w1, w2, w3, w4] = [(1 - right) * (1 - down), right * (1 - down), (1 - right) * down, right * down];
      const red = colours[first] * w1 + colours[first + 3] * w2 + colours[below] * w3 + colours[below + 3] * w4;
      const green = colours[first + 1] * w1 + colours[first + 4] * w2 + colours[below + 1] * w3 + colours[below + 4] * w4;
      const blue = colours[first + 2] * w1 + colours[first + 5] * w2 + colours[below + 2] * w3 + colours[below + 5] * w4;
      const pixel = 0xff000000 | ((blue + 0.5) << 16) | ((green + 0.5) << 8) | (red + 0.5);
      const to = row * width + 2 * at;
      pixels[to] = pixel;
      if (2 * at + 1 < width) pixels[to + 1] = pixel;
    }
    if (row + 1 < height) pixels.copyWithin((row + 1) * width, row * width, (row + 1) * width);
  }
}

/** Three box filters in each direction, which are nearly a Gaussian filter. */
function smooth(grid: Float32Array, spare: Float32Array, size: number): void {
  if (!grid.some((value) => value > 0)) return;
  const reach = size > 60 ? 1 : 0.5;
  for (let round = 0; round < 3; round++) {
    for (const [from, to, step, line] of [[grid, spare, 1, size], [spare, grid, size, 1]] as const) {
      for (let row = 0; row < size; row++) {
        for (let column = 0; column < size; column++) {
          const at = row * line + column * step;
          const [before, after] = [column > 0 ? from[at - step] : 0, column < size - 1 ? from[at + step] : 0];
          to[at] = (from[at] + reach * (before + after)) / (1 + 2 * reach);
        }
      }
    }
  }
}

export type Rgb = [number, number, number];

export function rgbOf(colour: string): Rgb {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)) as Rgb;
}

/** Discs as masks from 0 to 256, one for each quarter of a pixel that their centre may be at. */
interface Discs { size: number; masks: Uint16Array[] }

const discs = new Map<number, Discs>();

function discsOf(radius: number): Discs {
  const key = Math.round(radius * 8);
  let found = discs.get(key);
  if (!found) {
    const size = 2 * Math.ceil(radius + 0.5) + 2;
    const masks = [];
    for (let phase = 0; phase < 16; phase++) {
      const [cx, cy] = [size / 2 + (phase % 4) / 4, size / 2 + (phase >> 2) / 4];
      const mask = new Uint16Array(size * size);
      for (let at = 0; at < mask.length; at++) {
        const distance = Math.hypot((at % size) + 0.5 - cx, ((at / size) | 0) + 0.5 - cy);
        mask[at] = Math.round(256 * Math.max(0, Math.min(1, radius + 0.5 - distance)));
      }
      masks.push(mask);
    }
    discs.set(key, (found = { size, masks }));
  }
  return found;
}

/** Points that are drawn alike: their documents, colours by topic, radius in pixels, and opacity. */
export interface Points { members: (document: number) => boolean; colour: (document: number) => Rgb; radius: number; opacity: number }

/** From places to pixels of a picture. */
export interface Frame { ax: number; bx: number; ay: number; by: number }

/** Draws clouds and then points into a picture, a part at each step, because many points take longer than one frame. */
export function* painted(picture: ImageData, places: Uint16Array, n: number, frame: Frame, clouds: Clouds, layers: Points[]): Generator<void> {
  yield* paintedClouds(picture, frame, clouds);
  const pixels = new Uint32Array(picture.data.buffer);
  const { width, height } = picture;
  for (const { members, colour, radius, opacity } of layers) {
    const { size, masks } = discsOf(radius);
    const half = size / 2;
    const strength = Math.round(256 * opacity);
    for (let each = 0; each < n; each++) {
      if (each % 4096 === 4095) yield;
      const x = frame.ax * places[2 * each] + frame.bx;
      const y = frame.ay * places[2 * each + 1] + frame.by;
      if (x < half || y < half || x >= width - half - 1 || y >= height - half - 1 || !members(each)) continue;
      const [red, green, blue] = colour(each);
      const [outer, middle] = [(blue << 16) | red, green << 8];
      const [px, py] = [Math.floor(x), Math.floor(y)];
      const mask = masks[(((y - py) * 4) | 0) * 4 + (((x - px) * 4) | 0)];
      let at = (py - half) * width + px - half;
      for (let row = 0, m = 0; row < size; row++, at += width - size) {
        for (let column = 0; column < size; column++, at++, m++) {
          const a = (mask[m] * strength) >> 8;
          if (!a) continue;
          const under = pixels[at];
          const both = ((Math.imul(under & 0xff00ff, 256 - a) + Math.imul(outer, a)) >>> 8) & 0xff00ff; // red and blue at once
          pixels[at] = 0xff000000 | both | (((Math.imul(under & 0xff00, 256 - a) + Math.imul(middle, a)) >>> 8) & 0xff00);
        }
      }
    }
  }
}

export interface Label { topic: number; lines: string[]; x: number; y: number; width: number; height: number }
type Box = [number, number, number, number];

const overlap = (a: Box, b: Box) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
const around = ({ x, y, width, height }: Label): Box => [x - width / 2 - 4, y - height / 2 - 2, x + width / 2 + 4, y + height / 2 + 2];

/**
 * Places labels so that none covers another: each at its point or near it, the first ones first.
 *
 * `wanted` has the labels with the points they belong to; of one topic, the first text that finds room is taken.
 */
export function placed(wanted: Label[], taken: Label[] = []): Label[] {
  const boxes = taken.map(around);
  const found: Label[] = [];
  const have = new Set(taken.map(({ topic }) => topic));
  for (const label of wanted) {
    if (have.has(label.topic)) continue;
    const { width, height } = label;
    for (const [dx, dy] of [[0, 0], [0, -1], [0, 1], [0.55, 0], [-0.55, 0], [0.4, -0.9], [-0.4, -0.9], [0.4, 0.9], [-0.4, 0.9], [0, -1.8], [0, 1.8]]) {
      const moved = { ...label, x: label.x + dx * width, y: label.y + dy * (height + 4) };
      const box = around(moved);
      if (boxes.some((each) => overlap(each, box))) continue;
      boxes.push(box);
      found.push(moved);
      have.add(label.topic);
      break;
    }
  }
  return found;
}

/** The lines of a label: at most two of about equal length. */
export function linesOf(text: string, most: number): string[] {
  if (text.length <= most) return [text];
  const spaces = [...text.matchAll(/[ ,，、·]+/g)].map((match) => match.index + match[0].length);
  const middle = spaces.sort((a, b) => Math.abs(a - text.length / 2) - Math.abs(b - text.length / 2))[0];
  return middle ? [text.slice(0, middle).trim(), text.slice(middle).trim()] : [text];
}
