// The shades of heat maps. The colours of topics are in the data of the page, because pictures have the same ones.

/** A shade between the ground and the accent, for cells of a heat map; `part` is from 0 to 1. */
export function shade(part: number, dark: boolean): string {
  const from = dark ? [0.24, 0.015] : [0.985, 0.006];
  const to = dark ? [0.78, 0.12] : [0.42, 0.13];
  const p = Math.max(0, Math.min(1, part));
  return hex(from[0] + p * (to[0] - from[0]), from[1] + p * (to[1] - from[1]), 255);
}

/** A shade for a difference from -1 (orange) over 0 (the ground of a card) to 1 (blue). */
export function diverging(difference: number, dark: boolean): string {
  const p = Math.min(1, Math.abs(difference));
  if (dark) return hex(0.235 + p * (0.72 - 0.235), 0.008 + p * 0.12, difference < 0 ? 55 : 255);
  return hex(1 - p * (difference < 0 ? 0.36 : 0.5), p * 0.14, difference < 0 ? 55 : 255);
}

/** A colour over a ground; `part` of it is opaque. */
export function over(colour: string, ground: string, part: number): string {
  return `#${[1, 3, 5].map((at) => Math.round(part * parseInt(colour.slice(at, at + 2), 16) + (1 - part) * parseInt(ground.slice(at, at + 2), 16)).toString(16).padStart(2, "0")).join("")}`;
}

/** Black or white, whichever can be read better on a colour. */
export function inkOn(colour: string): string {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const v = parseInt(colour.slice(at, at + 2), 16) / 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff"; // both have a contrast of 4.6 there
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
