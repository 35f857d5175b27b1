/**
 * Ranges of journal rows. A dispatcher mostly claims and settles consecutive rows, and one statement over a range costs
 * the engine about half of one statement per row.
 */
import type { Ending, Settlement } from "../journal.ts";

export interface IdRange {
  readonly first: number;
  readonly last: number;
}

/** Ascending ids as ranges without gaps. */
export function rangesOf(ids: readonly number[]): IdRange[] {
  const ranges: { first: number; last: number }[] = [];
  for (const id of ids) {
    const range = ranges.at(-1);
    if (range?.last === id - 1) range.last = id;
    else ranges.push({ first: id, last: id });
  }
  return ranges;
}

/** How many settlements from `start` on are `done` and differ only in ascending ids. */
export function equallyDoneFrom(settlements: readonly Settlement[], start: number): number {
  const first = settlements[start];
  if (!first || !isDone(first)) return 0;
  let count = 1;
  for (let one = settlements[start + 1]; one && isDone(one); one = settlements[start + count]) {
    if (one.id <= settlements[start + count - 1]!.id || !isAlike(one, first)) break;
    count++;
  }
  return count;
}

/** Whether it only reports that the event is done, possibly with an ending. */
export function isDone({ outcome, deliveries }: Settlement): boolean {
  return outcome.kind === "done" && (deliveries === undefined || deliveries.length === 0);
}

function isAlike(one: Settlement, other: Settlement): boolean {
  return one.lease === other.lease && one.attempt === other.attempt && isSameEnding(endingOf(one), endingOf(other));
}

/** The ending of a done event. */
export function endingOf({ outcome }: Settlement): Ending | undefined {
  return outcome.kind === "done" ? outcome.ending : undefined;
}

export function isSameEnding(one: Ending | undefined, other: Ending | undefined): boolean {
  return one === other || (one?.outcome === other?.outcome && one?.reason === other?.reason);
}
