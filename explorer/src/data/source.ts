// Where the page gets documents and inference from: the page itself, or a service that it came from. All views use this
// interface, so that the same bundle serves both.

import { inferenceOf, type Inference, type InferenceValues } from "./infer";
import type { Documents, Store } from "./store";
import type { Edit } from "./types";
import { readPart } from "./unpack";

export interface Found {
  place: number; // in the arrays of the page; -1 for a document that is not there
  id: string;
  label: string;
  time: number | null; // seconds since 1970
  text: string | null;
  cut: boolean; // whether `text` is only its beginning
  topics: [number, number][]; // the largest ones with their shares
}

export interface Query {
  topic?: number | null; // sorts by how typical documents are of this topic
  label?: number | null; // the number of a class, from 1
  text?: string; // only documents that contain it
  meaning?: boolean; // sorts by how near documents are to the text in meaning; only in a service
  among?: Uint32Array | null; // only these documents, by their places
  after?: string | null;
  limit?: number;
}

export interface Result {
  documents: Found[];
  total: number;
  next: string | null;
  places?: Uint32Array; // of all documents found, where they are known
}

export interface Inferred {
  theta: number[];
  known: number; // tokens that are in the vocabulary
  tokens: number;
  words: number[]; // the numbers of the known ones
}

/** What a document has to contain; `has` says whether a text has it as a word, `inIds` whether it may be in the id instead, and `nIds` how many have it. */
interface Part {
  text: string;
  has: ((text: string) => boolean) | null;
  inIds: boolean;
  nIds: number;
}

// eslint-disable-next-line no-control-regex
const UNUSUAL = /[^\x00-\x7f]|&/;

export interface Source {
  find(query: Query): Promise<Result>;
  document(place: number): Promise<Found>;
  readonly canInfer: boolean;
  infer(text: string): Promise<Inferred>;
  /** Saves the edits at the service; null if there is none. */
  readonly save: ((edits: Edit[]) => Promise<void>) | null;
}

export function sourceOf(store: Store): Source {
  return store.core.api === null ? new PageSource(store) : new ServiceSource(store, store.core.api);
}

/** Documents and inference that are in the page. */
class PageSource implements Source {
  readonly save = null;
  readonly canInfer = document.getElementById("part-inference") !== null;
  private lower: string[] | null = null;
  private ids: string[] | null = null; // in small letters
  private inference: Promise<Inference> | null = null;

  constructor(private readonly store: Store) {}

  async find(query: Query): Promise<Result> {
    const documents = await this.store.documents();
    const texts = await this.store.texts();
    const wanted = (query.text ?? "").trim().toLowerCase();
    if (wanted) this.ids ??= Array.from({ length: documents.size }, (_, place) => documents.id(place).toLowerCase());
    const parts = await this.partsOf(query.text ?? "", documents.hasIds ? (this.ids ?? []) : []);
    if (wanted && texts) this.lower ??= texts.map((text) => text.toLowerCase());
    const { label = null, topic = null, among = null } = query;
    const all = (): number[] => {
      const [byId, found]: number[][] = [[], []]; // what is asked for by its id comes first
      for (const place of among ?? documents.main.keys()) {
        if (label && documents.labels?.[place] !== label) continue;
        if (topic !== null && documents.share(place, topic) === 0) continue;
        if (wanted && !this.matches(documents, texts, place, wanted, parts)) continue;
        const id = wanted && this.ids![place];
        if (id && id === wanted) byId.unshift(place);
        else (id && parts.some(({ inIds }) => inIds) && id.includes(wanted) ? byId : found).push(place);
      }
      return byId.length ? [...byId, ...found] : found;
    };
    let found = all();
    if (!found.length && parts.some(({ inIds, nIds }) => nIds && !inIds)) {
      for (const part of parts) part.inIds = part.nIds > 0; // no text has them
      found = all();
    }
    const places = Uint32Array.from(found);
    if (topic !== null) sortByTypicality(documents, places, topic);
    const start = Number(query.after ?? 0);
    const end = Math.min(start + (query.limit ?? 20), places.length);
    const shown = [...places.subarray(start, end)].map((place) => this.read(documents, texts, place));
    return { documents: shown, total: places.length, next: end < places.length ? String(end) : null, places };
  }

  async document(place: number): Promise<Found> {
    return this.read(await this.store.documents(), await this.store.texts(), place);
  }

  async infer(text: string): Promise<Inferred> {
    this.inference ??= readPart<InferenceValues>("inference").then((part) => inferenceOf(part!));
    const [infer, tokenizer] = [await this.inference, await this.store.tokenizer()];
    const counts = new Map<number, number>();
    const tokens = tokenizer.tokens(text);
    const words = tokens.map(({ word }) => word).filter((word) => word >= 0);
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
    const distinct = [...counts.keys()].sort((a, b) => a - b);
    const theta = infer(distinct, distinct.map((word) => counts.get(word)!));
    return { theta: [...theta], known: words.length, tokens: tokens.length, words };
  }

  /**
   * The parts of a search: what stands in quotation marks is a word of the vocabulary, or else a part of the text. What
   * does not may also be in an id, unless more than half of all ids have it, so that it would tell little.
   */
  private async partsOf(text: string, ids: string[]): Promise<Part[]> {
    const parts: Part[] = [];
    for (const [found, quoted] of text.matchAll(/["“”]([^"“”]+)["“”]|\S+/g)) {
      const tokenizer = quoted ? await this.store.tokenizer() : null;
      const number = tokenizer?.numberOf(quoted.trim()) ?? -1;
      const has = number < 0 ? null : (text: string) => tokenizer!.tokens(text).some(({ word }) => word === number);
      const part = (quoted ?? found).trim().toLowerCase();
      const n = quoted ? 0 : ids.reduce((sum, id) => sum + Number(id.includes(part)), 0);
      parts.push({ text: part, has, inIds: n > 0 && 2 * n <= ids.length, nIds: n });
    }
    return parts;
  }

  /** Whether a document has the id `wanted`, or each of the parts in its text, its class or its id; a word of the vocabulary has to be in its text. */
  private matches(documents: Documents, texts: string[] | null, place: number, wanted: string, parts: Part[]): boolean {
    const id = this.ids![place];
    if (id === wanted) return true;
    const label = documents.label(place).toLowerCase();
    return parts.every(({ text, has, inIds }) => {
      const lower = this.lower?.[place] ?? "";
      if (!has) return lower.includes(text) || label.includes(text) || (inIds && id.includes(text));
      // The tokens are found where the word can be one: in other letters it may be written differently.
      return texts !== null && (lower.includes(text) || UNUSUAL.test(lower)) && has(texts[place]);
    });
  }

  private read(documents: Documents, texts: string[] | null, place: number): Found {
    return found(documents, place, texts?.[place] ?? null, false);
  }
}

function sortByTypicality(documents: Documents, places: Uint32Array, topic: number): void {
  const typical = new Float64Array(documents.size);
  for (const place of places) typical[place] = documents.typicality(place, topic);
  places.sort((a, b) => typical[b] - typical[a] || a - b);
}

function found(documents: Documents, place: number, text: string | null, cut: boolean): Found {
  const time = documents.times?.[place] ?? NaN;
  const topics = documents.largest(place);
  return { place, id: documents.id(place), label: documents.label(place), time: Number.isNaN(time) ? null : time, text, cut, topics };
}

interface ServedDocument {
  row: number;
  id: string;
  label: string | null;
  time: string | null;
  text: string | null;
  cut: boolean;
  topics: { topic: number; share: number }[];
}

/** Documents and inference of the service that the page came from. */
class ServiceSource implements Source {
  readonly canInfer = true;
  private places: Map<number, number> | null = null;

  constructor(
    private readonly store: Store,
    private readonly api: string,
  ) {}

  /** The service does not know places, so that the page asks for each document; words are not searched for in them. */
  private async findAmong(query: Query, among: Uint32Array): Promise<Result> {
    const documents = await this.store.documents();
    const { label = null, topic = null } = query;
    const places = among.filter((place) => (!label || documents.labels?.[place] === label) && (topic === null || documents.share(place, topic) > 0));
    if (topic !== null) sortByTypicality(documents, places, topic);
    const start = Number(query.after ?? 0);
    const end = Math.min(start + (query.limit ?? 20), places.length);
    const shown = await Promise.all([...places.subarray(start, end)].map((place) => this.document(place)));
    return { documents: shown, total: places.length, next: end < places.length ? String(end) : null, places };
  }

  async find(query: Query): Promise<Result> {
    if (query.among) return this.findAmong(query, query.among);
    const asked = new URLSearchParams();
    if (query.topic !== null && query.topic !== undefined) asked.set("topic", String(query.topic));
    const words = (query.text ?? "").replace(/[“”]/g, '"').trim(); // the service finds whole words and ids
    if (words) asked.set(query.meaning ? "like" : "q", words);
    if (query.after) asked.set("after", query.after);
    if (query.label) asked.set("label", (await this.store.documents()).labelNames[query.label - 1]);
    asked.set("limit", String(query.limit ?? 20));
    const answer = await this.ask<{ documents: ServedDocument[]; total: number; next: string | null }>(`documents?${asked}`);
    await this.known();
    return { documents: answer.documents.map((each) => this.read(each)), total: answer.total, next: answer.next };
  }

  async document(place: number): Promise<Found> {
    const documents = await this.store.documents();
    await this.known();
    return this.read(await this.ask<ServedDocument>(`documents/${documents.row(place)}`));
  }

  async infer(text: string): Promise<Inferred> {
    const answer = await this.ask<{ documents: { theta: number[]; empty: boolean }[] }>("infer", { texts: [text] });
    const [tokens, { theta, empty }] = [(await this.store.tokenizer()).tokens(text), answer.documents[0]];
    const words = tokens.map(({ word }) => word).filter((word) => word >= 0);
    return { theta, known: empty ? 0 : Math.max(1, words.length), tokens: tokens.length, words };
  }

  readonly save = async (edits: Edit[]) => {
    await this.ask("edits", { edits });
  };

  private async known(): Promise<void> {
    if (this.places) return;
    const documents = await this.store.documents();
    this.places = new Map();
    for (let place = 0; place < documents.size; place++) this.places.set(documents.row(place), place);
  }

  private read(each: ServedDocument): Found {
    const time = each.time ? Date.parse(each.time.endsWith("Z") ? each.time : `${each.time}Z`) / 1000 : NaN;
    return {
      place: this.places?.get(each.row) ?? -1,
      id: each.id,
      label: each.label ?? "",
      time: Number.isNaN(time) ? null : time,
      text: each.text === null ? null : this.store.shown(each.text),
      cut: each.cut,
      topics: each.topics.map(({ topic, share }) => [topic, share]),
    };
  }

  private async ask<T>(path: string, body?: unknown): Promise<T> {
    const headers: Record<string, string> = {};
    if (this.store.core.version !== null) headers["if-match"] = `"${this.store.core.version}"`;
    if (body !== undefined) headers["content-type"] = "application/json";
    const how = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const place = new URL(`${this.api}/${path}`, location.origin + location.pathname); // without a name and a password
    const answer = await fetch(place, { ...how, headers, credentials: "same-origin" });
    const found = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(String(found.error ?? answer.statusText));
    return found as T;
  }
}
