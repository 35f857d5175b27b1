/** The answer to an append of which some entries were left out. SPEC: J12. */
import type { Rejection } from "./rejection.ts";
import type { AppendOutcome } from "./store.ts";

/** The answer for all of them, from the one for those that were not left out. `leftOut` has its places in order. */
export function withLeftOut(outcome: AppendOutcome, leftOut: ReadonlyMap<number, Rejection>): AppendOutcome {
  if (outcome.kind === "rejected") return outcome;
  const ids = [...outcome.ids];
  for (const at of leftOut.keys()) ids.splice(at, 0, 0);
  return { ...outcome, ids, leftOut };
}
