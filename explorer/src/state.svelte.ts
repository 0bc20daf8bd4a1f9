// What the views share: the data, the language, the theme, what is selected, and the edits.

import { flushSync, tick } from "svelte";
import { line } from "./clean";
import { Edits, type Entry, type Turn } from "./edits.svelte";
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
  label = $state(""); // only documents of this class
  by = $state(""); // the covariate by which topics are shown; the class if it is empty
  word = $state("");
  period = $state(""); // whose documents are shown
  onlyTopic = $state(false);
  turned = $state.raw<Turn | null>(null); // what was just undone or redone
  said = $state(""); // what else just happened, for screen readers
  missing = $state(""); // the topic that the address asks for, if there is none of this number
  private untilShown = 0; // a timer
  private system = $state(dark.matches);
  private printing = $state(false); // paper is white
  private readonly scrolled = new Map<View, number>(); // where each view was left

  readonly dark = $derived(!this.printing && (this.theme === "auto" ? this.system : this.theme === "dark"));
  readonly palette: string[] = $derived.by(() => this.core.palette[this.dark ? 1 : 0]);
  readonly ground = $derived(this.dark ? "#1b1d21" : "#ffffff"); // of cards
  readonly fonts = getComputedStyle(document.documentElement).fontFamily;
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
    history.scrollRestoration = "manual"; // the browser would scroll before the view is there
    addEventListener("hashchange", () => {
      const before = this.view;
      this.read();
      if (before !== this.view) void this.scroll();
    });
    addEventListener("scroll", () => this.scrolled.set(this.view, scrollY), { passive: true });
    addEventListener("pagehide", () => keep(`scroll-${core.key}-${this.view}`, String(scrollY)));
    const [entry] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
    const last = Number(kept(`scroll-${core.key}-${this.view}`) ?? 0);
    if (last && (entry?.type === "reload" || entry?.type === "back_forward")) {
      this.scrolled.set(this.view, last);
      void this.scroll();
    }
    for (const [event, printing] of [["beforeprint", true], ["afterprint", false]] as const) {
      addEventListener(event, () => {
        flushSync(() => (this.printing = printing));
        dispatchEvent(new Event("topicloom-draw"));
      });
    }
    // What is typed replaces the address, after a while: it shall neither fill the history nor be written at every key.
    $effect.root(() => {
      $effect(() => {
        const wanted = this.address;
        const timer = setTimeout(() => {
          if (location.hash && wanted === this.address && wanted !== location.hash) history.replaceState(null, "", wanted);
        }, 400);
        return () => clearTimeout(timer);
      });
    });
  }

  get views(): View[] {
    const { periods, classes, covariates } = this.core;
    const all: View[] = ["topics", "documents", "words", "similarity", "time", "classes", "quality", "text"];
    return all.filter((view) => (view !== "time" || periods) && (view !== "classes" || classes || covariates?.length));
  }

  go(view: View): void {
    const changed = view !== this.view;
    this.view = view;
    this.write();
    if (changed) void this.scroll();
  }

  /** Scrolls to where the view was left. What it shows may come a little later, so that it is tried for a moment. */
  private async scroll(): Promise<void> {
    const { view } = this;
    const wanted = this.scrolled.get(view) ?? 0;
    await tick();
    for (let attempt = 0; attempt < 12 && this.view === view; attempt++) {
      scrollTo(0, wanted);
      if (Math.abs(scrollY - wanted) < 2) break;
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
  }

  choose(topic: number): void {
    this.topic = topic;
    this.write();
  }

  /** Chooses a topic and moves the focus to its row, or to the first one if the table is filtered; the history gets no entry. */
  async toRow(topic: number, options?: FocusOptions): Promise<void> {
    this.missing = "";
    this.topic = topic;
    await tick();
    (document.getElementById(`row-${topic}`) ?? document.querySelector<HTMLElement>("tr[id^=row-]") ?? document.getElementById("content"))?.focus(options);
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
    return topic < 0 ? (this.dark ? "#6b7280" : "#9ca3af") : this.palette[topic % this.palette.length];
  }

  title(view: View): string {
    return view === "classes" && this.core.covariates?.length ? this.t.groups_ : this.t[view];
  }

  name(topic: number): string {
    return this.edits.names[topic] ?? this.core.names[topic];
  }

  /** An entry of the list of edits in words. */
  edit({ kind, topics, name }: Entry): string {
    if (kind === "merge") return this.t.editMerged(topics.join(", "));
    return kind === "drop" ? this.t.editDropped(String(topics[0])) : this.t.editRenamed(topics[0], line(name ?? ""));
  }

  /** Merges topics, and returns the number by which the merged one is called. */
  merge(topics: number[]): number {
    this.edits.merge(topics);
    const group = this.edits.groupOf(topics[0])!;
    this.say(this.t.editMerged(group.join(", ")));
    return group[0];
  }

  /** Drops a topic, or takes that back, where this is possible. */
  toggleDrop(topic: number): void {
    if (!this.edits.canDrop(topic)) return;
    this.edits.toggleDrop(topic);
    this.say(this.edits.drops.includes(topic) ? this.t.editDropped(String(topic)) : this.t.kept(topic));
  }

  /** Undoes the last change of the edits, or makes it again; for a while the page says what it was. */
  async turn(undone: boolean): Promise<void> {
    const focused = document.activeElement;
    const inTable = focused?.closest("tr[id^=row-]");
    const turned = undone ? this.edits.undo() : this.edits.redo();
    if (!turned) return;
    this.say("", turned);
    await tick();
    // In the table, the focus moves to the topic of the change; elsewhere, only if its element has gone.
    const [first] = undone ? [...turned.gone, ...turned.come] : [...turned.come, ...turned.gone];
    if (inTable) await this.toRow(first?.topics[0] ?? this.topic);
    else if (!focused?.isConnected) document.querySelector<HTMLElement>("#edits button, #content")?.focus();
  }

  /** Tells screen readers what has happened; what was undone or redone is shown, too. */
  say(said: string, turned: Turn | null = null): void {
    [this.said, this.turned] = [said, turned];
    clearTimeout(this.untilShown);
    this.untilShown = setTimeout(() => ([this.said, this.turned] = ["", null]), 6000);
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

  /** What the page shows, as the part of its address after the #. */
  private get address(): string {
    const asked = new URLSearchParams();
    if (this.view === "words" && this.word) asked.set("word", this.word);
    if (this.view === "time" && this.period) asked.set("period", this.period);
    if (this.view === "classes" && this.by) asked.set("by", this.by);
    if (this.view === "documents") {
      if (this.query.trim() && this.query.length <= 2000) asked.set("q", this.query.trim());
      if (this.label) asked.set("class", this.label);
      if (this.onlyTopic) asked.set("only", "topic");
    }
    return `#${this.view}/${this.topic}${asked.toString() && `?${asked}`}`;
  }

  private write(): void {
    this.missing = "";
    if (location.hash !== this.address) location.hash = this.address;
  }

  private read(): void {
    if (location.hash === this.address) return; // and what is being typed is not taken back
    let hash = location.hash.slice(1);
    if (/^(topic|view)=/.test(hash)) { // as a hand writes it: #topic=12, or #view=words&topic=12
      const given = new URLSearchParams(hash);
      hash = `${given.get("view") ?? "topics"}/${given.get("topic") ?? this.topic}`;
    }
    const [path, ...rest] = hash.split("?");
    const [view, topic] = path.split("/");
    this.view = this.views.includes(view as View) ? (view as View) : "topics"; // the address without a view is the first one
    const number = topic ? Number(topic) : NaN;
    const asked = new URLSearchParams(rest.join("?"));
    if (this.view === "words") this.word = asked.get("word") ?? this.word;
    if (this.view === "time") this.period = asked.get("period") ?? "";
    if (this.view === "classes") this.by = asked.get("by") ?? "";
    if (this.view === "documents") [this.query, this.label, this.onlyTopic] = [asked.get("q") ?? "", asked.get("class") ?? "", asked.has("only")];
    const exists = Number.isInteger(number) && number >= 0 && number < this.core.n_topics;
    this.missing = topic && !exists ? line(topic).slice(0, 20) : "";
    this.topic = exists ? number : (this.order[0] ?? 0);
  }
}

/** What is kept as long as the page is open in a tab. */
function kept(name: string): string | null {
  try {
    return sessionStorage.getItem(`topicloom-${name}`);
  } catch {
    return null;
  }
}

function keep(name: string, value: string): void {
  try {
    sessionStorage.setItem(`topicloom-${name}`, value);
  } catch {
    // nothing is kept then
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
