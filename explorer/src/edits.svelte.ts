// The edits that are made in the page: a list that the Python package applies. All numbers are those of this page.

import { nameFrom } from "./clean";
import type { Core, Edit } from "./data/types";
import { remember, remembered } from "./state.svelte";

interface Kept {
  names: Record<number, string>;
  merges: number[][];
  drops: number[];
}

export class Edits {
  names = $state<Record<number, string>>({});
  merges = $state<number[][]>([]);
  drops = $state<number[]>([]);
  // A merged topic may be named by any of its numbers, and has one name; a dropped one has none.
  readonly named = $derived(Object.fromEntries(Object.entries(this.names).filter(([key]) => this.isNamed(Number(key)))));
  readonly size = $derived(Object.keys(this.named).length + this.merges.length + this.drops.length);
  private readonly place: string;

  constructor(private readonly core: Core) {
    this.place = `edits-${core.key}`;
    this.read();
    // Another tab with this page has changed its edits, which are those of this tab too; neither may overwrite the other's.
    addEventListener("storage", () => this.read());
  }

  private read(): void {
    try {
      const kept = JSON.parse(remembered(this.place) ?? "null") as Kept | null;
      if (kept) [this.names, this.merges, this.drops] = [kept.names, kept.merges, kept.drops];
    } catch {
      // what was kept is of another kind
    }
  }

  rename(topic: number, name: string): void {
    const given = nameFrom(name);
    const { [topic]: _, ...others } = this.names;
    this.names = given === "" || given === this.core.names[topic] ? others : { ...others, [topic]: given };
    this.keep();
  }

  /** Whether these topics can become one. */
  canMerge(topics: number[]): boolean {
    return new Set(topics).size > 1 && this.left(topics) >= 2;
  }

  merge(topics: number[]): void {
    const joined = new Set(topics);
    for (const group of this.merges) if (group.some((k) => joined.has(k))) group.forEach((k) => joined.add(k));
    this.merges = [...this.merges.filter((group) => !group.some((k) => joined.has(k))), [...joined].sort((a, b) => a - b)];
    this.drops = this.drops.filter((k) => !joined.has(k));
    this.keep();
  }

  unmerge(group: number[]): void {
    this.merges = this.merges.filter((each) => each[0] !== group[0]);
    this.keep();
  }

  canDrop(topic: number): boolean {
    return this.drops.includes(topic) || this.left([], [topic]) >= 2;
  }

  /** Drops a topic, or takes that back. A topic that is merged is dropped with its group. */
  toggleDrop(topic: number): void {
    const group = this.groupOf(topic) ?? [topic];
    const dropped = this.drops.includes(topic);
    this.drops = this.drops.filter((k) => !group.includes(k));
    if (!dropped) {
      if (group.length > 1) this.unmerge(group);
      this.drops = [...this.drops, ...group].sort((a, b) => a - b);
    }
    this.keep();
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
    [this.names, this.merges, this.drops] = [{}, [], []];
    this.keep();
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

  private keep(): void {
    remember(this.place, JSON.stringify({ names: this.names, merges: this.merges, drops: this.drops }));
  }
}

function quoted(text: string): string {
  // JSON does not escape these, and YAML does not allow them as they are.
  return JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
