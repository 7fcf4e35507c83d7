/** The bytes and offsets of columns whose values differ in length. */

/** The variable bytes of one column of one batch; more of them make smaller batches. */
export const MAX_VARIABLE_BYTES = 64 * 1024 * 1024;

/** A batch that would be too large: the caller takes fewer rows. */
export class BatchTooLarge extends Error {}

/** Stands where a parent is null: null if the column may be, else any value. */
export const MASKED = Symbol('masked');

const encoder = new TextEncoder();

/** The short way for ASCII texts: all of them encoded at once; `undefined` when a value needs the long one. */
export function asciiParts(
  values: readonly unknown[],
  isLarge: boolean,
): { data: Uint8Array; valueOffsets: Int32Array | BigInt64Array } | undefined {
  const ends = new Float64Array(values.length);
  const texts: string[] = [];
  let size = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value === 'string') {
      texts.push(value);
      size += value.length;
      if (size > MAX_VARIABLE_BYTES) return undefined;
    } else if (value !== null && value !== undefined && value !== MASKED) return undefined;
    ends[i] = size;
  }
  const data = new Uint8Array(size);
  // Anything else than ASCII needs more bytes than units, and does not fit.
  const { read } = encoder.encodeInto(texts.join(''), data);
  return read === size ? { data, valueOffsets: offsetsOf(ends, isLarge) } : undefined;
}

function offsetsOf(ends: Float64Array, isLarge: boolean): Int32Array | BigInt64Array {
  const offsets = isLarge ? new BigInt64Array(ends.length + 1) : new Int32Array(ends.length + 1);
  for (let i = 0; i < ends.length; i++) {
    const end = ends[i] ?? 0;
    offsets[i + 1] = isLarge ? BigInt(end) : end;
  }
  return offsets;
}

/** Values of variable length being gathered. */
export class ByteColumn {
  readonly #ends: Float64Array;
  readonly #isLarge: boolean;
  #bytes = new Uint8Array(1024);
  #size = 0;
  #filled = 0;

  constructor(length: number, isLarge: boolean) {
    this.#ends = new Float64Array(length);
    this.#isLarge = isLarge;
  }

  addText(i: number, text: string): void {
    // A UTF-16 unit takes three bytes of UTF-8 at most. Half a surrogate pair has no UTF-8: it becomes U+FFFD, as in every web API.
    this.#reserve(i, text.length, text.length * 3);
    const { written } = encoder.encodeInto(text, this.#bytes.subarray(this.#size));
    this.#end(i, written);
  }

  addBytes(i: number, bytes: Uint8Array): void {
    this.#reserve(i, bytes.length, bytes.length);
    this.#bytes.set(bytes, this.#size);
    this.#end(i, bytes.length);
  }

  finish(): { data: Uint8Array; valueOffsets: Int32Array | BigInt64Array } {
    this.#ends.fill(this.#size, this.#filled);
    return { data: this.#bytes.subarray(0, this.#size), valueOffsets: offsetsOf(this.#ends, this.#isLarge) };
  }

  #reserve(i: number, least: number, most: number): void {
    if (this.#size + least > MAX_VARIABLE_BYTES && i > 0) throw new BatchTooLarge();
    const needed = this.#size + most;
    if (needed <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
    grown.set(this.#bytes.subarray(0, this.#size));
    this.#bytes = grown;
  }

  #end(i: number, added: number): void {
    this.#ends.fill(this.#size, this.#filled, i);
    this.#size += added;
    this.#ends[i] = this.#size;
    this.#filled = i + 1;
  }
}
