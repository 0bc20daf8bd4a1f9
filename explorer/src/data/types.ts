// What the parts of the page contain; payload.py in the Python package writes them.

export interface Groups {
  names: string[];
  mean: (number[] | null)[];
  low?: (number[] | null)[];
  high?: (number[] | null)[];
  documents: number[];
  unit?: string;
  trends?: { topic: number; slope: number | null; direction: "rising" | "falling" | "steady" }[];
  bursts?: { topic: number; first: number; last: number }[]; // periods in which the share of a topic is far above the others
  starts?: number[]; // of periods, in seconds since 1970
  ends?: number[];
  sparse?: boolean[]; // whether a period has too few documents to say much
  words?: string[][];
}

/** Shares of topics by a covariate: by its groups, and, if it has numbers, as curves. */
export interface Covariate extends Groups {
  by: string;
  curve?: { values: number[]; mean: number[][]; low: number[][]; high: number[][] } | null; // at each value, by topic
}

export interface Measure {
  title: string;
  value: number;
  better: -1 | 0 | 1;
  group: string;
  digits: number;
}

/** How words are cut out of folded text, as `_Spelling` in text/tokenizing.py; older tokenizers have none. */
export interface Spelling {
  joiners: string; // what may stand between two parts of a word, as a regular expression
  clitics: string; // words that are cut off at their apostrophe, likewise
  lost: string; // the vowels that an elided stop word may have lost
  leads: boolean; // whether an elided stop word may have lost an e at its beginning
  hyphens: boolean; // whether words of elided stop words may be joined by hyphens
}

export interface TokenizerSettings {
  kind: "words" | "longest" | "spaces";
  language?: string;
  stop_words: string[];
  min_length?: number;
  keep_numbers?: boolean;
  strip_html?: boolean;
  elides?: boolean;
  spelling?: Spelling;
  folds?: Record<string, string>;
}

export interface Core {
  key: string;
  fingerprint: string | null;
  title: string;
  model: string;
  n_topics: number;
  n_docs: number;
  n_empty: number;
  n_shown: number;
  n_words: number;
  n_tokens: number;
  palette: [string[], string[]]; // the colours of the topics on light and on dark ground
  names: string[];
  sentences: (string | null)[]; // by a language model
  words: string[][];
  api: string | null;
  version: string | null; // of the topics, for a service that notices edits since
  tree: [number, number, number][];
  periods: Groups | null;
  classes: Groups | null;
  covariates?: Covariate[];
  quality: { measures: Record<string, Measure>; history: Record<string, (number | null)[]>; stages: [string, string, number][] };
  tokenizer: TokenizerSettings;
  precision?: "half" | "single";
  no_inference?: string;
  infers_by?: "all" | "words"; // whether the page reads less of a text than the model
  map_by?: "topics" | "vectors"; // what documents that are near on the map have in common
  meaning?: boolean; // whether the service can search documents by meaning
  text_length?: number | null;
  text_kind?: "text" | "tokens" | "words";
}

/** An operation of the list of edits that the Python package applies; `models/edited.py` describes it. */
export type Edit = Record<string, unknown>;
