/**
 * Thrown by a plain handler if its event or command is over without having been handled: its row is done, with this ending. It is no failure: it is not
 * retried, and leaves no dead letter. SPEC: J124.
 */
import type { Ending } from "../store/journal.ts";

/** A thrown value may be a hostile object: it is looked up, never asked. */
const endings = new WeakMap<object, Ending>();

export class Concluded extends Error {
  override readonly name = "Concluded";

  constructor(ending: Ending) {
    super(ending.reason);
    endings.set(this, ending);
  }
}

export function endingIn(thrown: unknown): Ending | undefined {
  return typeof thrown === "object" && thrown !== null ? endings.get(thrown) : undefined;
}
