// A colour for each topic: hues that are far apart for neighbouring numbers, light enough on dark ground and dark enough
// on light ground (a contrast of at least 3 to 1).

const cache = new Map<string, string>();

export function colourOf(topic: number, dark: boolean): string {
  if (topic < 0) return dark ? "#6b7280" : "#9ca3af";
  const key = `${topic}${dark ? "d" : ""}`;
  let found = cache.get(key);
  if (!found) {
    const hue = (255 + topic * 137.508) % 360;
    const step = Math.floor(topic / 9) % 3; // the same hue comes back with another lightness
    const lightness = dark ? 0.76 - 0.055 * step : 0.58 - 0.055 * step;
    found = hex(lightness, dark ? 0.125 : 0.14, hue);
    cache.set(key, found);
  }
  return found;
}

/** A shade between the ground and the accent, for cells of a heat map; `part` is from 0 to 1. */
export function shade(part: number, dark: boolean): string {
  const from = dark ? [0.24, 0.015] : [0.985, 0.006];
  const to = dark ? [0.78, 0.12] : [0.42, 0.13];
  const p = Math.max(0, Math.min(1, part));
  return hex(from[0] + p * (to[0] - from[0]), from[1] + p * (to[1] - from[1]), 255);
}

/** OKLCH as a colour of the screen (Ottosson 2020). */
function hex(lightness: number, chroma: number, hue: number): string {
  for (let c = chroma; ; c *= 0.9) {
    const a = c * Math.cos((hue * Math.PI) / 180);
    const b = c * Math.sin((hue * Math.PI) / 180);
    const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
    const rgb = [
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ].map((x) => (x <= 0.0031308 ? 12.92 * x : 1.055 * Math.max(x, 0) ** (1 / 2.4) - 0.055));
    if (c < 0.01 || rgb.every((x) => x >= -0.001 && x <= 1.001)) {
      return `#${rgb.map((x) => Math.round(255 * Math.max(0, Math.min(1, x))).toString(16).padStart(2, "0")).join("")}`;
    }
  }
}
