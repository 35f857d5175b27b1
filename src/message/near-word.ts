/**
 * Suggests the nearest known word for a misspelt one.
 */

/** More edits make another word. */
const SLIPS_MAX = 2;

/** The known word with the fewest edits, ignoring case; undefined if none is near. */
export function nearWord(word: string, known: readonly string[]): string | undefined {
  const lower = word.toLowerCase();
  const near = known
    .map((candidate) => ({ candidate, slips: slipsBetween(lower, candidate.toLowerCase()) }))
    // Two wrong letters in a short word are no similarity.
    .filter(({ candidate, slips }) => slips <= SLIPS_MAX && slips * 2 < candidate.length)
    .sort((a, b) => a.slips - b.slips);
  return near[0]?.candidate;
}

/** Message for an unknown word: the nearest known one, or all of them. `prefix` precedes each. */
export function notKnown(word: string, known: readonly string[], prefix = ""): string {
  const near = nearWord(word, known);
  const hint =
    near === undefined
      ? `known are ${known.map((name) => `${prefix}${name}`).join(", ")}`
      : `did you mean ${prefix}${near}?`;
  return `is not known here; ${hint}`;
}

/**
 * A sentence about the first unknown option with the nearest known word; undefined if all are known. JavaScript would
 * ignore a misspelt option. SPEC: K74.
 */
export function unknownOption(given: object, known: Readonly<Record<string, true>>): string | undefined {
  const names = Object.keys(known);
  const unknown = Object.keys(given).find((key) => !names.includes(key));
  return unknown === undefined ? undefined : `the option ${JSON.stringify(unknown)} ${notKnown(unknown, names)}`;
}

/** Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours, row by row. */
function slipsBetween(from: string, to: string): number {
  let before: readonly number[] = [];
  let above: readonly number[] = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1];
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current.push(
        Math.min(
          number(above[column]) + 1,
          number(current[column - 1]) + 1,
          number(above[column - 1]) + (same ? 0 : 1),
          swapped ? number(before[column - 2]) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    before = above;
    above = current;
  }
  return number(above[to.length]);
}

function number(value: number | undefined): number {
  return value ?? Number.POSITIVE_INFINITY;
}
