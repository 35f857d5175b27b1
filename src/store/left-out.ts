/**
 * The answer to an append with entries left out. SPEC: J12.
 */
import type { Rejection } from "./rejection.ts";
import type { AppendOutcome } from "./store.ts";

/** Extends the answer for the appended entries to all entries. `leftOut` is ordered by index. */
export function withLeftOut(outcome: AppendOutcome, leftOut: ReadonlyMap<number, Rejection>): AppendOutcome {
  if (outcome.kind === "rejected") return outcome;
  const ids = [...outcome.ids];
  for (const at of leftOut.keys()) ids.splice(at, 0, 0);
  return { ...outcome, ids, leftOut };
}
