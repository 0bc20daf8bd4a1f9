// What the views share: the data, the language, the theme, what is selected, and the edits.

import { colourOf } from "./colours";
import { Edits } from "./edits.svelte";
import { messages, type Language } from "./i18n";
import { sourceOf, type Source } from "./data/source";
import { Store } from "./data/store";
import type { Core } from "./data/types";

export type View = "topics" | "documents" | "words" | "similarity" | "time" | "classes" | "quality" | "text";
export type Theme = "auto" | "light" | "dark";

const dark = matchMedia("(prefers-color-scheme: dark)");

export class State {
  readonly store: Store;
  readonly source: Source;
  readonly edits: Edits;
  readonly order: number[]; // the topics by share
  language = $state<Language>("en");
  theme = $state<Theme>("auto");
  view = $state<View>("topics");
  topic = $state(0);
  relevance = $state(0.5);
  query = $state(""); // of the documents
  word = $state("");
  onlyTopic = $state(false);
  private system = $state(dark.matches);

  readonly dark = $derived(this.theme === "auto" ? this.system : this.theme === "dark");
  readonly t = $derived(messages[this.language]);
  private readonly numbers = $derived(new Intl.NumberFormat(this.language === "zh" ? "zh-CN" : "en"));

  constructor(
    readonly core: Core,
    readonly shares: Float32Array,
    readonly main: Int32Array,
    readonly places: Float32Array,
    readonly distances: Uint8Array,
  ) {
    this.store = new Store(core);
    this.source = sourceOf(this.store);
    this.edits = new Edits(core);
    this.order = [...shares.keys()].sort((a, b) => shares[b] - shares[a] || a - b);
    this.language = remembered("language") === "zh" || (!remembered("language") && navigator.language.startsWith("zh")) ? "zh" : "en";
    const theme = remembered("theme");
    if (theme === "light" || theme === "dark") this.theme = theme;
    dark.addEventListener("change", () => (this.system = dark.matches));
    this.read();
    addEventListener("hashchange", () => this.read());
  }

  get views(): View[] {
    const { periods, classes } = this.core;
    const all: View[] = ["topics", "documents", "words", "similarity", "time", "classes", "quality", "text"];
    return all.filter((view) => (view !== "time" || periods) && (view !== "classes" || classes));
  }

  go(view: View): void {
    this.view = view;
    this.write();
  }

  choose(topic: number): void {
    this.topic = topic;
    this.write();
  }

  setLanguage(language: Language): void {
    this.language = language;
    remember("language", language);
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    remember("theme", theme);
  }

  colour(topic: number): string {
    return colourOf(topic, this.dark);
  }

  name(topic: number): string {
    return this.edits.names[topic] ?? this.core.names[topic];
  }

  count(value: number): string {
    return this.numbers.format(value);
  }

  percent(value: number, digits = 1): string {
    if (!Number.isFinite(value)) return "–";
    const shown = (value * 100).toFixed(digits);
    return value > 0 && Number(shown) === 0 ? `<${(10 ** -digits).toFixed(digits)}%` : `${shown}%`;
  }

  date(seconds: number): string {
    return new Date(seconds * 1000).toISOString().slice(0, 10);
  }

  similarity(a: number, b: number): number {
    return 1 - this.distances[a * this.core.n_topics + b] / 255;
  }

  private write(): void {
    const wanted = `#${this.view}/${this.topic}`;
    if (location.hash !== wanted) location.hash = wanted;
  }

  private read(): void {
    const [view, topic] = location.hash.slice(1).split("/");
    this.view = this.views.includes(view as View) ? (view as View) : "topics"; // the address without a view is the first one
    const number = topic ? Number(topic) : NaN;
    this.topic = Number.isInteger(number) && number >= 0 && number < this.core.n_topics ? number : (this.order[0] ?? 0);
  }
}

/** Storage may be forbidden for files; the page works without it. */
export function remembered(name: string): string | null {
  try {
    return localStorage.getItem(`topicloom-${name}`);
  } catch {
    return null;
  }
}

export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`topicloom-${name}`, value);
  } catch {
    // nothing is kept then
  }
}

let current: State;

export function setState(state: State): State {
  return (current = state);
}

export function app(): State {
  return current;
}
