/** Bits to the bytes of a vector of bits. */

import { invalid } from './checks';

/**
 * Packs bits into bytes, the first bit lowest, as vectors that are compared by `hamming` are stored.
 *
 * @throws `INVALID_INPUT` for what is neither 0 nor 1.
 */
export function packBits(bits: readonly number[]): number[] {
  const packed = new Array<number>((bits.length + 7) >> 3).fill(0);
  bits.forEach((bit, i) => {
    if (bit !== 0 && bit !== 1) throw invalid(`a bit is 0 or 1, found ${String(bit)} at ${i}`);
    packed[i >> 3] = (packed[i >> 3] ?? 0) | (bit << (i & 7));
  });
  return packed;
}
