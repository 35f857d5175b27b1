/**
 * Neighbours among journal rows. What a dispatcher claims and settles are mostly rows in a row, and one statement over a range
 * costs the engine about half of one statement for each.
 */
import type { Settlement } from "../journal.ts";

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

/** How many settlements from `start` on are plainly done and differ in nothing but their ids, which follow each other. */
export function plainlyDoneFrom(settlements: readonly Settlement[], start: number): number {
  const first = settlements[start];
  if (!first) return 0;
  let count = 0;
  for (let one: Settlement | undefined = first; one && isPlainlyDone(one); one = settlements[start + count]) {
    if (one.id !== first.id + count || one.lease !== first.lease || one.attempt !== first.attempt) break;
    count++;
  }
  return count;
}

function isPlainlyDone({ outcome, deliveries }: Settlement): boolean {
  return outcome.kind === "done" && outcome.note === undefined && (deliveries === undefined || deliveries.length === 0);
}
