/**
 * The due table: timers, cron, request timeouts, delivery retries and gates that survive a restart. One timer per
 * process waits for the earliest row. A row is taken inside the commit that acts on it, so it takes effect once.
 */
import type { Json } from "../message/json.ts";

/** A row of the due table: a timer, or a slot of a schedule. */
export interface DueRow {
  /** The kind of row: `timer`, `cron`, `timeout`, `retry`, … */
  readonly kind: string;
  /** Unique within its kind. */
  readonly key: string;
  readonly dueAtMs: number;
  readonly data: Json;
  /** Order of insertion; equal deadlines fire in this order. */
  readonly order: number;
}

/** A change of the due table in a commit. */
export type DueChange =
  /** Sets a row; replaces one of the same kind and key. */
  | DueSetting<"put">
  /** Inserts a row that must not exist; otherwise the commit is rejected (`due-row-there`). */
  | DueSetting<"add">
  /** Removes a row if it exists. */
  | { readonly op: "cancel"; readonly kind: string; readonly key: string }
  /** Removes a row that must exist, with these data if given; otherwise the commit is rejected (`due-row-gone`). */
  | { readonly op: "take"; readonly kind: string; readonly key: string; readonly was?: Json };

interface DueSetting<Op extends string> {
  readonly op: Op;
  readonly kind: string;
  readonly key: string;
  readonly dueAtMs: number;
  readonly data: Json;
}

/**
 * Makes changes one after the other, outside of a commit. A failed `take` or `add` ends them, as it would reject a
 * commit.
 */
export function changeInOrder<Change extends { readonly op: DueChange["op"] }>(
  changes: readonly Change[],
  change: (one: Change) => boolean,
): boolean[] {
  let isOver = false;
  return changes.map((one) => {
    const done = !isOver && change(one);
    if (!done && (one.op === "take" || one.op === "add")) isOver = true;
    return done;
  });
}
