// The edits that are made in the page: a list that the Python package applies. All numbers are those of this page.

import { nameFrom } from "./clean";
import type { Core, Edit } from "./data/types";
import { remember, remembered } from "./state.svelte";

interface Kept {
  names: Record<number, string>;
  merges: number[][];
  drops: number[];
}

/** One line of the list of edits. */
export interface Entry {
  topics: number[];
  name: string | null; // of a topic that is renamed
  kind: "merge" | "drop" | "rename";
}

/** What an undo or a redo changed in the list of edits. */
export interface Turn {
  undone: boolean;
  gone: Entry[];
  come: Entry[];
}

const MOST_STEPS = 200;

export class Edits {
  names = $state.raw<Record<number, string>>({}); // these three are replaced and never changed in place, so that steps can hold them
  merges = $state.raw<number[][]>([]);
  drops = $state.raw<number[]>([]);
  // A merged topic may be named by any of its numbers, and has one name; a dropped one has none.
  readonly named = $derived(Object.fromEntries(Object.entries(this.names).filter(([key]) => this.isNamed(Number(key)))));
  readonly size = $derived(Object.keys(this.named).length + this.merges.length + this.drops.length);
  private past = $state.raw<Kept[]>([]); // oldest first
  private future = $state.raw<Kept[]>([]); // what was undone, latest last
  private readonly place: string;

  constructor(private readonly core: Core) {
    this.place = `edits-${core.key}`;
    const kept = this.stored();
    if (kept) this.set(kept);
    // Another tab with this page has changed its edits, which are those of this tab too; neither may overwrite the other's.
    addEventListener("storage", () => {
      const kept = this.stored();
      if (kept) this.change(kept);
    });
  }

  private stored(): Kept | null {
    try {
      const kept = JSON.parse(remembered(this.place) ?? "null") as Kept | null;
      return kept && { names: kept.names ?? {}, merges: kept.merges ?? [], drops: kept.drops ?? [] };
    } catch {
      return null; // what was kept is of another kind
    }
  }

  private now(): Kept {
    return { names: this.names, merges: this.merges, drops: this.drops };
  }

  /** Makes a step that can be undone. */
  private change(changes: Partial<Kept>): void {
    const before = this.now();
    const after = { ...before, ...changes };
    if (JSON.stringify(after) === JSON.stringify(before)) return;
    this.past = [...this.past.slice(1 - MOST_STEPS), before];
    this.future = [];
    this.set(after);
    remember(this.place, JSON.stringify(after));
  }

  private set(kept: Kept): void {
    [this.names, this.merges, this.drops] = [kept.names, kept.merges, kept.drops];
  }

  get canUndo(): boolean {
    return this.past.length > 0;
  }

  get canRedo(): boolean {
    return this.future.length > 0;
  }

  /** Takes the last change back, whatever it was. */
  undo(): Turn | null {
    return this.turn(true);
  }

  redo(): Turn | null {
    return this.turn(false);
  }

  private turn(undone: boolean): Turn | null {
    const kept = (undone ? this.past : this.future).at(-1);
    if (!kept) return null;
    const [before, now] = [this.entries, this.now()];
    if (undone) [this.past, this.future] = [this.past.slice(0, -1), [...this.future, now]];
    else [this.past, this.future] = [[...this.past, now], this.future.slice(0, -1)];
    this.set(kept);
    remember(this.place, JSON.stringify(kept));
    const after = this.entries;
    const without = (some: Entry[], others: Entry[]) => some.filter((each) => !others.some((other) => JSON.stringify(other) === JSON.stringify(each)));
    return { undone, gone: without(before, after), come: without(after, before) };
  }

  /** The list of edits as it is shown. */
  get entries(): Entry[] {
    return [
      ...this.merges.map((topics): Entry => ({ topics: [...topics], name: null, kind: "merge" })),
      ...this.drops.map((topic): Entry => ({ topics: [topic], name: null, kind: "drop" })),
      ...Object.entries(this.named).map(([topic, name]): Entry => ({ topics: [Number(topic)], name, kind: "rename" })),
    ];
  }

  /** Takes one entry of the list back. */
  remove({ topics, kind }: Entry): void {
    if (kind === "merge") this.change({ merges: this.merges.filter((each) => each[0] !== topics[0]) });
    else if (kind === "drop") this.toggleDrop(topics[0]);
    else this.rename(topics[0], "");
  }

  rename(topic: number, name: string): void {
    const given = nameFrom(name);
    const { [topic]: _, ...others } = this.names;
    this.change({ names: given === "" || given === this.core.names[topic] ? others : { ...others, [topic]: given } });
  }

  /** Whether these topics can become one. */
  canMerge(topics: number[]): boolean {
    return new Set(topics).size > 1 && this.left(topics) >= 2;
  }

  merge(topics: number[]): void {
    const joined = new Set(topics);
    for (const group of this.merges) if (group.some((k) => joined.has(k))) group.forEach((k) => joined.add(k));
    const merges = [...this.merges.filter((group) => !group.some((k) => joined.has(k))), [...joined].sort((a, b) => a - b)];
    this.change({ merges, drops: this.drops.filter((k) => !joined.has(k)) });
  }

  canDrop(topic: number): boolean {
    return this.drops.includes(topic) || this.left([], [topic]) >= 2;
  }

  /** Drops a topic, or takes that back. A topic that is merged is dropped with its group. */
  toggleDrop(topic: number): void {
    const group = this.groupOf(topic) ?? [topic];
    const dropped = this.drops.includes(topic);
    const drops = this.drops.filter((k) => !group.includes(k));
    if (dropped) this.change({ drops });
    else this.change({ merges: this.merges.filter((each) => each[0] !== group[0]), drops: [...drops, ...group].sort((a, b) => a - b) });
  }

  groupOf(topic: number): number[] | null {
    return this.merges.find((group) => group.includes(topic)) ?? null;
  }

  /** The groups of topics that would have the same name, which the package refuses. */
  twins(): number[][] {
    const renamed = this.list().find((edit) => "rename" in edit)?.rename as Record<number, string> | undefined;
    const topics = new Map<string, number[]>();
    for (let k = 0; k < this.core.n_topics; k++) {
      const kept = !this.drops.includes(k) && !this.groupOf(k); // what a merged topic is called is not known here
      const name = renamed?.[k] ?? (kept ? this.core.names[k] : undefined);
      if (name !== undefined) topics.set(name, [...(topics.get(name) ?? []), k]);
    }
    return [...topics.values()].filter((group) => group.some((k) => renamed && k in renamed) && group.length > 1);
  }

  clear(): void {
    this.change({ names: {}, merges: [], drops: [] });
  }

  list(): Edit[] {
    const found: Edit[] = this.merges.map((merge) => ({ merge: [...merge] }));
    if (this.drops.length) found.push({ drop: [...this.drops] });
    if (Object.keys(this.named).length) found.push({ rename: { ...this.named } });
    return found;
  }

  private isNamed(topic: number): boolean {
    const group = this.groupOf(topic);
    return !this.drops.includes(topic) && (!group || !group.some((k) => k < topic && k in this.names));
  }

  /** The file of edits. A string of JSON is one of YAML as well, so that no name can change the rest of the file. */
  yaml(): string {
    const lines = ["# Edits of topics. Numbers are those of the topics before all edits."];
    if (this.core.fingerprint) lines.push(`model: ${quoted(this.core.fingerprint)}`);
    lines.push("edits:");
    for (const edit of this.list()) {
      const [kind, value] = Object.entries(edit)[0];
      const names = kind === "rename" ? Object.entries(value as Record<string, string>) : [];
      const shown = names.length ? `{${names.map(([k, name]) => `${k}: ${quoted(name)}`).join(", ")}}` : JSON.stringify(value);
      lines.push(`- ${kind}: ${shown}`);
    }
    return `${lines.join("\n")}\n`;
  }

  /** How many topics there would be. A topic that is merged goes with its group. */
  private left(merged: number[], dropped: number[] = []): number {
    const gone = [...this.drops.filter((k) => !merged.includes(k)), ...dropped];
    const groups = [...this.merges, merged].filter((group) => group.length);
    const leader = Array.from({ length: this.core.n_topics }, (_, k) => k);
    const find = (k: number): number => (leader[k] === k ? k : find(leader[k]));
    for (const group of groups) for (const k of group) leader[find(k)] = find(group[0]);
    const kept = new Set(leader.map((_, k) => find(k)));
    for (const k of gone) kept.delete(find(k));
    return kept.size;
  }
}

function quoted(text: string): string {
  // JSON does not escape these, and YAML does not allow them as they are.
  return JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
