// Reads the parts of the page. packing.py in the Python package describes their format.

type Numbers = Uint8Array | Uint16Array | Int32Array | Float32Array | Float64Array;

export interface Part<T> {
  values: T;
  arrays: Record<string, Numbers>;
}

interface Described {
  type: "u1" | "u2" | "i4" | "f2" | "f4" | "f8";
  shape: number[];
  offset: number;
}

const SIZES = { u1: 1, u2: 2, i4: 4, f2: 2, f4: 4, f8: 8 };
const IN_PLANES = new Set(["u2", "i4", "f2", "f4"]);

/** Reads a part of this page; null if the page does not have it. */
export async function readPart<T>(name: string): Promise<Part<T> | null> {
  const element = document.getElementById(`part-${name}`);
  if (!element) return null;
  const text = element.textContent ?? "";
  element.textContent = ""; // the text is large and no longer needed
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const whole = await new Response(stream).arrayBuffer();
  const length = new DataView(whole).getUint32(0, true);
  const values = JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 4, length)));
  const arrays: Record<string, Numbers> = {};
  for (const [key, about] of Object.entries(values.arrays as Record<string, Described>)) {
    const count = about.shape.reduce((a, b) => a * b, 1);
    const size = SIZES[about.type];
    const start = 4 + length + about.offset;
    const bytes = new Uint8Array(whole, start, count * size);
    arrays[key] = typed(about.type, IN_PLANES.has(about.type) ? fromPlanes(bytes, size) : bytes.slice());
  }
  delete values.arrays;
  return { values, arrays };
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const direct = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (direct) return direct(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

function fromPlanes(bytes: Uint8Array, size: number): Uint8Array<ArrayBuffer> {
  const count = bytes.length / size;
  const out = new Uint8Array(bytes.length);
  for (let plane = 0; plane < size; plane++) {
    const from = plane * count;
    for (let i = 0, to = plane; i < count; i++, to += size) out[to] = bytes[from + i];
  }
  return out;
}

function typed(type: Described["type"], bytes: Uint8Array<ArrayBuffer>): Numbers {
  const buffer = bytes.buffer;
  if (type === "u1") return bytes;
  if (type === "u2") return new Uint16Array(buffer);
  if (type === "i4") return new Int32Array(buffer);
  if (type === "f4") return new Float32Array(buffer);
  if (type === "f8") return new Float64Array(buffer);
  return singles(new Uint16Array(buffer));
}

let halves: Float32Array | null = null;

/** Numbers in half precision as single precision. */
function singles(bits: Uint16Array): Float32Array {
  if (!halves) {
    halves = new Float32Array(65536);
    for (let i = 0; i < 65536; i++) {
      const sign = i & 0x8000 ? -1 : 1;
      const exponent = (i >> 10) & 31;
      const fraction = i & 1023;
      halves[i] = sign * (exponent === 0 ? fraction * 2 ** -24 : exponent === 31 ? Infinity : (1 + fraction / 1024) * 2 ** (exponent - 15));
    }
  }
  const out = new Float32Array(bits.length);
  for (let i = 0; i < bits.length; i++) out[i] = halves[bits[i]];
  return out;
}
