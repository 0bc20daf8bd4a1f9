// Text from users, made harmless to look at: characters that turn the direction of other text are left out, and control
// characters are shown as a sign. Markup needs nothing here, as all text is written by text nodes.

// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export function clean(text: string): string {
  return text.replace(DIRECTION, "").replace(CONTROL, "\ufffd");
}

/** The same on one line. */
export function line(text: string): string {
  return clean(text).replace(/\s+/g, " ").trim();
}

/** The name of a topic that was typed or pasted, in the form in which the Python package takes it. */
export function nameFrom(typed: string): string {
  return [...line(typed.replace(CONTROL, " "))].slice(0, 200).join("").trim();
}

/** The beginning of a line, at most so wide; a wide character, such as a Chinese one, counts as two. */
export function shortened(text: string, most: number): string {
  let width = 0;
  let kept = "";
  for (const character of text) {
    width += widthOf(character);
    if (width > most) return `${kept.trimEnd()}…`;
    kept += character;
  }
  return kept;
}

function widthOf(text: string): number {
  return [...text].reduce((sum, character) => sum + (character > "\u2e80" ? 2 : 1), 0);
}

/** The beginning of a long text, which ends between words where they are separated by spaces. */
export function excerpt(text: string, most: number): string {
  const start = [...text.slice(0, most + 1)].slice(0, -1).join(""); // no half of a character
  return `${start.replace(/\s+\S{0,20}$/, "").replace(/\n\s*\n/g, "\n")} …`;
}
