// Splits texts into words: as the Python package does where words are separated by spaces, and otherwise by the longest
// words of the vocabulary.

import type { TokenizerSettings } from "./types";

export interface Token {
  word: number; // its number in the vocabulary; -1 if it is not there
  start: number;
  end: number;
}

const MARK = "(?![\\u20d0-\\u20ff\\ufe00-\\ufe2f\\u{10000}-\\u{10ffff}])\\p{M}";
const RUN = `[\\p{L}\\p{N}](?:[\\p{L}\\p{N}\\u200c\\u200d]|${MARK})*`;
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Myanmar}\p{sc=Khmer}]/u;
const URL_ = /(?:(?:https?|ftp):\/\/|\bwww\.)[!-~]+/gi;
const EMAIL = /(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g;
const LETTER = /\p{L}/u;
const UNSEEN = /[\xad\u034f\u061c\u180b-\u180f\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\u{e0000}-\u{e0fff}]/gu;
const ELEMENTS =
  "a|abbr|acronym|address|applet|area|article|aside|audio|b|base|basefont|bdi|bdo|big|blockquote|body|br|button|canvas|" +
  "caption|center|cite|code|col|colgroup|data|datalist|dd|del|details|dfn|dialog|dir|div|dl|dt|em|embed|fieldset|" +
  "figcaption|figure|font|footer|form|frame|frameset|h1|h2|h3|h4|h5|h6|head|header|hgroup|hr|html|i|iframe|img|input|" +
  "ins|kbd|label|legend|li|link|main|map|mark|marquee|math|menu|meta|meter|nav|nobr|noframes|noscript|object|ol|" +
  "optgroup|option|output|p|param|path|picture|pre|progress|q|rp|rt|ruby|s|samp|script|search|section|select|slot|" +
  "small|source|span|strike|strong|style|sub|summary|sup|svg|table|tbody|td|template|textarea|tfoot|th|thead|time|" +
  "title|tr|track|tt|u|ul|var|video|wbr";
const TAG = new RegExp(
  `</?(?:${ELEMENTS}|[a-z][\\w-]*:[a-z][\\w-]*)(?=[\\s/>])(?:(?:\\s+[\\w:@.-]+)+\\s*=[^<>]+|\\s*/?)>` +
    "|<!doctype\\b[^<>]*>|<\\?xml\\b[^<>]*>|<!\\[CDATA\\[",
  "gi",
);
const ENTITY = /&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});/g;

export class Tokenizer {
  readonly kind: TokenizerSettings["kind"];
  private readonly words: RegExp;
  private readonly clitic: RegExp | null;
  private readonly stop: Set<string>;
  private readonly places = new Map<string, number>();
  private readonly written = new Map<string, number>(); // in the form that the page shows
  private readonly longest: number = 1;

  constructor(
    private readonly settings: TokenizerSettings,
    { vocabulary, folded }: { vocabulary: string[]; folded: Record<number, string> },
  ) {
    this.kind = settings.kind;
    const joiners = settings.spelling?.joiners ?? (settings.elides ? "-" : "['-]");
    this.words = new RegExp(`${RUN}(?:(?:${joiners})${RUN})*`, "gu");
    this.clitic = settings.spelling?.clitics ? new RegExp(`^(${settings.spelling.clitics})'(?=.)`, "u") : null;
    this.stop = new Set(settings.stop_words);
    vocabulary.forEach((word, number) => {
      this.places.set(folded[number] ?? word, number);
      if (folded[number]) this.written.set(word, number);
    });
    if (settings.kind === "longest") {
      for (const word of [...vocabulary, ...settings.stop_words]) {
        if (UNSPACED.test(word)) this.longest = Math.max(this.longest, word.length);
      }
    }
  }

  /** The number of a word, whatever its case; -1 if it is not in the vocabulary. */
  numberOf(word: string): number {
    return this.written.get(word) ?? this.places.get(word) ?? this.places.get(this.fold(normalise(word))) ?? -1;
  }

  /** The tokens of a text, as they are counted. */
  tokens(text: string): Token[] {
    if (this.kind === "spaces") return this.find(text);
    if (this.settings.strip_html && /[<&]/.test(text)) text = withoutHtml(text);
    if (!this.settings.spelling) return this.find(normalise(text).replace(URL_, " ").replace(EMAIL, " "));
    text = normalise(text.replace(/[™℠]/g, " ").replace(/´/g, "'")).replace(URL_, " ").replace(EMAIL, " ");
    return this.find(this.fold(text.replace(UNSEEN, "")));
  }

  /** The tokens of a text at their places in it, to colour them. */
  find(text: string): Token[] {
    const found: Token[] = [];
    if (this.kind === "spaces") {
      for (const match of text.matchAll(/\S+/g)) {
        if (!this.stop.has(match[0])) found.push({ word: this.places.get(match[0]) ?? -1, start: match.index, end: match.index + match[0].length });
      }
      return found;
    }
    if (this.kind === "words") {
      this.between(text, 0, text.length, found);
      return found;
    }
    let from = 0; // where text that is written with spaces began
    for (let at = 0; at < text.length; ) {
      const width = text.codePointAt(at)! > 0xffff ? 2 : 1;
      if (!UNSPACED.test(text.slice(at, at + width))) {
        at += width;
        continue;
      }
      this.between(text, from, at, found);
      let end = at + width;
      for (let length = Math.min(this.longest, text.length - at); length >= width; length--) {
        const piece = text.slice(at, at + length);
        if (this.numberOf(piece) >= 0 || this.stop.has(this.fold(piece))) {
          end = at + length;
          break;
        }
      }
      const number = this.numberOf(text.slice(at, end));
      if (number >= 0) found.push({ word: number, start: at, end });
      from = at = end;
    }
    this.between(text, from, text.length, found);
    return found;
  }

  private between(text: string, start: number, end: number, found: Token[]): void {
    if (end <= start) return;
    const { min_length: shortest = 2, keep_numbers: numbers = false } = this.settings;
    const { spelling } = this.settings;
    const part = text.slice(start, end);
    for (const match of (spelling ? part : part.replace(/_/g, " ")).matchAll(this.words)) {
      let word = this.fold(normalise(match[0]));
      if (word.endsWith("'s")) word = word.slice(0, -2);
      for (let elided; (elided = this.clitic?.exec(word)); word = word.slice(elided[0].length)) {
        const number = this.places.get(elided[1]) ?? -1;
        if (number >= 0 && !this.isElided(elided[1])) found.push({ word: number, start: start + match.index, end: start + match.index + elided[1].length });
      }
      if (spelling && this.stop.size) {
        const [before, after] = [part[match.index - 1], part[match.index + match[0].length]];
        if (spelling.lost && after === "'" && this.isElided(word)) continue;
        if (spelling.leads && before === "'" && this.stop.has(`e${word}`)) continue;
        if (spelling.hyphens && word.includes("-") && word.split("-").every((each) => this.isElided(each))) continue;
      }
      if ((word.length < shortest || [...word].length < shortest) || this.stop.has(word)) continue;
      if (!numbers && !LETTER.test(word)) continue;
      const number = this.places.get(word) ?? this.places.get(match[0]) ?? -1;
      found.push({ word: number, start: start + match.index, end: start + match.index + match[0].length });
    }
  }

  private isElided(word: string): boolean {
    return this.stop.has(word) || [...(this.settings.spelling?.lost ?? "")].some((vowel) => this.stop.has(word + vowel));
  }

  /** Full case folding, which JavaScript does not have. */
  private fold(text: string): string {
    // eslint-disable-next-line no-control-regex
    const folds = this.settings.folds ?? {};
    if (/^[\x00-\x7f]*$/.test(text) && !folds.I) return text.toLowerCase();
    let out = "";
    for (const letter of text) out += folds[letter] ?? letter.toLowerCase();
    return out;
  }
}

/** The letter of Korean that stands alone, given its form of half the width. */
function fullWidth(letter: string): string {
  const vowel = letter.charCodeAt(0) - 0xffc2; // in groups of six, every eight codes
  return String.fromCharCode(vowel < 0 ? vowel + 0x21 + 0x3131 : (vowel >> 3) * 6 + (vowel & 7) + 0x314f);
}

function normalise(text: string): string {
  // eslint-disable-next-line no-control-regex
  if (/^[\x00-\x7f]*$/.test(text)) return text;
  // NFKC would make parts of syllables of single letters of Korean, as in ㅋㅋ.
  text = text.replace(/[ﾡ-ﾾￂ-ￇￊ-ￏￒ-ￗￚ-ￜ]/g, fullWidth).replace(/[^ㄱ-ㅣㅥ-ㆎ]+/g, (part) => part.normalize("NFKC"));
  text = text.replace(/\u0e4d\u0e32/g, "\u0e33").replace(/\u0ecd\u0eb2/g, "\u0eb3");
  return text.replace(/[’‘ʼ]/g, "'").replace(/\xad/g, "");
}

const characters = new Map<string, string>(); // of entities

function characterOf(entity: string): string {
  let found = characters.get(entity);
  if (found === undefined) {
    const area = document.createElement("textarea"); // its content is never markup
    area.innerHTML = entity;
    characters.set(entity, (found = area.value));
  }
  return found;
}

/** A text with the characters for which entities such as &amp; stand; some are escaped twice. */
export function withoutEntities(text: string): string {
  for (let round = 0; round < 2 && text.includes("&"); round++) text = text.replace(ENTITY, characterOf);
  return text;
}

function withoutHtml(text: string): string {
  text = withoutEntities(text);
  if (!text.includes("<")) return text;
  text = text.replace(/<!--[^]*?-->/g, " ");
  text = text.replace(/<(script|style)(?:\s[^<>]*)?>[^]*?<\/\1\s*>/gi, " ");
  return text.replace(TAG, " ");
}
