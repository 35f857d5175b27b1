/**
 * The clearance of the code that runs now, where that is less than everything: the handler of a capability with a clearance (decision 0010). It
 * holds after an `await` too, on engines with an async context. SPEC: F9.
 *
 * Only plain code is meant. Runs of nodes, handlers and transactions carry their own, which they were given when they began.
 */
import { asyncContext } from "../host/async-context.ts";
import { isWithin, type Label } from "./label.ts";

/** One for all: the runtime executes one thing at a time, and whatever enters leaves before another does. */
let current: Label | undefined;

/** What plain code may know now; undefined: everything. */
export function ambientClearance(): Label | undefined {
  return current ?? asyncContext.get()?.clearance;
}

/** Calls code that may know this, and no more than whoever calls it; undefined: as much. */
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

/** A clearance that plain code gives to what it starts: no more than it has itself. */
export function narrowed(clearance: Label | undefined): Label | undefined {
  const outer = ambientClearance();
  if (outer === undefined || clearance === undefined) return clearance ?? outer;
  return isWithin(clearance, outer) ? clearance : clearance.filter((name) => outer.includes(name));
}
