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
