// Returns the ratios of contrast of WCAG 2.2 that are too low: [ratio, kind, what]. Texts want 4.5, and what shows a
// value or bounds a field wants 3. Disabled controls and what only decorates want none.
const parse = (c) => {
  const n = c.match(/-?[\d.]+(e-?\d+)?/g).map(Number);
  const rgb = c.startsWith("color(srgb") ? n.slice(0, 3).map((v) => 255 * v) : n.slice(0, 3);
  return [...rgb, n.length > 3 ? n[3] : 1];
};
const over = (a, b, part) => [0, 1, 2].map((i) => part * a[i] + (1 - part) * b[i]);
const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
const light = (c) => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
const ground = (e) => {
  if (!e) return [255, 255, 255];
  const c = parse(getComputedStyle(e).backgroundColor);
  return c[3] === 1 ? c : over(c, ground(e.parentElement), c[3]);
};
const opacity = (e) => (e ? Number(getComputedStyle(e).opacity) * opacity(e.parentElement) : 1);
const shown = (e) => e.checkVisibility({ visibilityProperty: true }) && !e.closest(".hidden, .skip, title, [hidden]");
const found = [];
const note = (least, kind, colour, below, e, part = 1) => {
  const alpha = parse(colour)[3] * part * opacity(e);
  const value = ratio(over(parse(colour), below, alpha), below);
  if (value < least) found.push([Math.round(100 * value) / 100, kind, (e.textContent.trim() || e.className.baseVal || e.className || e.tagName).slice(0, 40)]);
};
let n = 0;
for (const e of document.querySelectorAll("body *")) {
  if (!shown(e) || e.closest(":disabled, [aria-disabled=true]")) continue;
  const style = getComputedStyle(e);
  if ([...e.childNodes].some((each) => each.nodeType === 3 && each.textContent.trim())) {
    n++;
    const circle = e.matches("svg text.number") ? e.parentElement.querySelector("circle") : null;
    const page = ground(e.closest("svg") ? e.closest("svg").parentElement : e);
    const look = circle && getComputedStyle(circle);
    const below = look ? over(parse(look.fill), page, look.fillOpacity * opacity(circle)) : page;
    note(4.5, "text", e.closest("svg") ? style.fill : style.color, below, e);
  }
  if (e.matches("input, textarea") && e.placeholder) note(4.5, "placeholder", getComputedStyle(e, "::placeholder").color, ground(e), e);
  if (e.matches("input:not([type=range], [type=checkbox], .name), select, textarea")) note(3, "field", style.borderTopColor, ground(e.parentElement), e);
  if (e.matches(".swatch, .mix span, .fill, td.bar span, td .bar")) note(3, "colour", style.backgroundColor, ground(e.parentElement), e);
  if (e.matches("svg circle, svg path") && style.stroke !== "none" && !e.matches("[aria-hidden=true] *")) note(3, "line", style.stroke, ground(e.closest("svg").parentElement), e, Number(style.strokeOpacity));
}
return [n, found.sort((a, b) => a[0] - b[0])];
