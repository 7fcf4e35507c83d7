// Random choices of a run: replayed by LANCELET_SEED.

/** Whole numbers in `from .. to`, `to` excluded, from the run's seed and a name. */
export function randomOf(name: string): (from: number, to: number) => number {
  let state = Number(process.env['LANCELET_SEED'] ?? 0) >>> 0;
  for (const character of name) state = Math.imul(state ^ character.charCodeAt(0), 0x01000193) >>> 0;
  return (from, to) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return from + Math.floor((state / 2 ** 32) * (to - from));
  };
}
