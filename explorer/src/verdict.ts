// What the measures of a run say, in three sentences: what is good, what is weak, and what to do.
//
// A measure is good from one limit on and weak beyond the other; between them nothing is said. The limits are rules of
// thumb: for NPMI and C_v, see docs/coherence.md, and for signs of collapse those by which training warns.

import type { Measure } from "./data/types";
import type { Language } from "./i18n";

interface Limits { good: number; weak: number; what: Record<Language, [good: string, weak: string]>; advice: Record<Language, string>; ofTopics?: boolean }

const fewer = { en: "train with fewer topics, or merge those that are alike (the view Similarity lists the pairs)", zh: "减少主题数重新训练，或合并相似的主题（“相似度”视图列出了各对）" };
const common = { en: "remove common words (--remove-top 50) and train again", zh: "去掉常见词（--remove-top 50）后重新训练" };
const unclear = { en: "read the topics with the lowest shares first, and try other numbers of topics (topicloom select-topics)", zh: "先查看占比最低的主题，并尝试其他主题数（topicloom select-topics）" };

// In the order in which they are advised on.
const LIMITS: [string, Limits][] = [
  ["active_topics", { good: 0.95, weak: 0.8, ofTopics: true, what: { en: ["nearly all topics are in use", "topics are unused"], zh: ["几乎所有主题都有文档", "有主题未被使用"] }, advice: { en: "train with fewer topics", zh: "减少主题数重新训练" } }],
  ["duplicate_topics", { good: 0, weak: 1, what: { en: ["no two topics have the same words", "topics have the same words"], zh: ["各主题的代表词互不相同", "有些主题的代表词相同"] }, advice: fewer }],
  ["topic_diversity", { good: 0.8, weak: 0.6, what: { en: ["topics share few words", "topics share many words"], zh: ["主题之间共有的词很少", "主题之间共有的词很多"] }, advice: fewer }],
  ["frequent_mass", { good: 0.3, weak: 0.5, what: { en: ["common words have little weight", "common words have much weight"], zh: ["常见词的权重小", "常见词的权重大"] }, advice: common }],
  ["document_npmi", { good: 0.1, weak: 0.03, what: { en: ["the words of a topic occur in the same documents", "the words of a topic seldom occur in the same documents"], zh: ["同一主题的词常出现在同一篇文档中", "同一主题的词很少出现在同一篇文档中"] }, advice: unclear }],
  ["c_npmi", { good: 0.08, weak: 0.02, what: { en: ["the words of a topic occur near each other", "the words of a topic seldom occur near each other"], zh: ["同一主题的词常出现在相邻位置", "同一主题的词很少出现在相邻位置"] }, advice: unclear }],
  ["c_v", { good: 0.55, weak: 0.4, what: { en: ["the words of a topic are used alike", "the words of a topic are used differently"], zh: ["同一主题的词用法相近", "同一主题的词用法不同"] }, advice: unclear }],
  ["nmi", { good: 0.4, weak: 0.15, what: { en: ["main topics agree with the classes", "main topics have little to do with the classes"], zh: ["主要主题与类别一致", "主要主题与类别关系不大"] }, advice: { en: "see in By class whether the topics cut the documents in another useful way", zh: "在“类别对比”中查看主题是否以另一种有用的方式划分文档" } }],
];

export interface Verdict { good: string; weak: string; todo: string }

export function verdictOf(measures: Record<string, Measure>, nTopics: number, language: Language, title: (name: string) => string, shown: (value: number, digits: number) => string): Verdict | null {
  const [good, weak, advice]: string[][] = [[], [], []];
  const zh = language === "zh";
  for (const [name, { good: from, weak: to, what, advice: todo, ofTopics }] of LIMITS) {
    const measure = measures[name];
    if (!measure) continue;
    const value = ofTopics ? measure.value / nTopics : measure.value;
    const higher = from > to;
    const number = ofTopics ? `${measure.value}/${nTopics}` : shown(measure.value, measure.digits);
    const limit = (each: number) => (ofTopics ? `${Math.round(each * 100)}${zh ? "" : " "}%` : String(each));
    const said = (text: string, sign: string, each: number) => (zh ? `${text}（${title(name)} ${number}，标准 ${sign} ${limit(each)}）` : `${text} (${title(name)} ${number}; limit ${sign} ${limit(each)})`);
    if (higher ? value >= from : value <= from) good.push(said(what[language][0], higher ? "≥" : "≤", from));
    else if (higher ? value < to : value >= to) {
      weak.push(said(what[language][1], higher ? "<" : "≥", to));
      if (!advice.includes(todo[language])) advice.push(todo[language]);
    }
  }
  if (!Object.keys(measures).length) return null;
  const stable = zh ? "用 topicloom compare … --seeds 3 检查主题在其他随机种子下是否再次出现，然后再使用" : "check with topicloom compare … --seeds 3 that the topics come back with other seeds, before you rely on them";
  const list = (rows: string[]) => rows.join(zh ? "；" : "; ");
  return zh
    ? { good: good.length ? `${list(good)}。` : "没有指标达到良好的标准。", weak: weak.length ? `${list(weak)}。` : "这些指标没有显示弱点。", todo: `${advice[0] ?? stable}。` }
    : { good: good.length ? `${capital(list(good))}.` : "No measure is good by these limits.", weak: weak.length ? `${capital(list(weak))}.` : "These measures show no weakness.", todo: `${capital(advice[0] ?? stable)}.` };
}

const capital = (text: string) => text[0].toUpperCase() + text.slice(1);
