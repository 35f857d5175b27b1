/**
 * The clearance of the running code, if it is limited: the handler of a capability with a clearance (decision 0010). It
 * stays in force after an `await`, on engines with an async context. SPEC: F9.
 *
 * Only for plain code. Runs of nodes, handlers and transactions carry their own clearance from their start.
 */
import { asyncContext } from "../host/async-context.ts";
import { isWithin, type Label } from "./label.ts";

/** One variable is enough: execution is single-threaded and calls nest. */
let current: Label | undefined;

/** The clearance of plain code now; undefined is unlimited. */
export function ambientClearance(): Label | undefined {
  return current ?? asyncContext.get()?.clearance;
}

/** Calls code with this clearance, limited by that of the caller; undefined keeps the caller's. */
export function withClearance<T>(clearance: Label | undefined, code: () => T): T {
  const outer = current;
  const narrow = narrowed(clearance);
  current = narrow;
  try {
    return narrow === undefined ? code() : asyncContext.run({ clearance: narrow }, code);
  } finally {
    current = outer;
  }
}

/** A clearance that plain code passes on, limited by its own. */
export function narrowed(clearance: Label | undefined): Label | undefined {
  const outer = ambientClearance();
  if (outer === undefined || clearance === undefined) return clearance ?? outer;
  return isWithin(clearance, outer) ? clearance : clearance.filter((name) => outer.includes(name));
}
