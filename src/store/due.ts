/**
 * The due table: what is due when. Timers, cron, request timeouts, delivery retries and gates that survive a restart are rows
 * here; one timer per process waits for the earliest. A row is taken inside the commit that acts on it, so it acts once.
 */
import type { Json } from "../message/json.ts";

export interface DueRow {
  /** What kind of thing is due: `timer`, `cron`, `timeout`, `retry`, … */
  readonly kind: string;
  /** Unique within its kind. */
  readonly key: string;
  readonly dueAtMs: number;
  readonly data: Json;
  /** Order of setting; equal deadlines come due in this order. */
  readonly order: number;
}

export type DueChange =
  /** Sets a row; replaces one of the same kind and key. */
  | DueSetting<"put">
  /** Sets a row that must not be there: the commit is rejected (`due-row-there`) when somebody else was first. */
  | DueSetting<"add">
  /** Removes a row if it is there. */
  | { readonly op: "cancel"; readonly kind: string; readonly key: string }
  /**
   * Removes a row that must be there, and with these data where they are given: the commit is rejected (`due-row-gone`) when somebody
   * else was first.
   */
  | { readonly op: "take"; readonly kind: string; readonly key: string; readonly was?: Json };

interface DueSetting<Op extends string> {
  readonly op: Op;
  readonly kind: string;
  readonly key: string;
  readonly dueAtMs: number;
  readonly data: Json;
}

/** Makes changes outside of a commit, one after the other; a `take` or `add` that fails ends them, as it would reject a commit. */
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
