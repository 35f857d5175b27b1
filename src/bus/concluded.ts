/**
 * Values that a plain handler throws to say how its event or command ended.
 *
 * `Concluded`: thrown if its event or command is over without having been handled.
 * Its row is done, with this ending. It is no failure: it is not
 * retried, and leaves no dead letter. SPEC: J124.
 */
import type { Ending } from "../store/journal.ts";
import { isNotStored } from "./bus-error.ts";

/** A thrown value may be a hostile object: it is looked up, never asked. */
const endings = new WeakMap<object, Ending>();

/** Delays of `RetryLater`, in milliseconds. */
const delays = new WeakMap<object, number>();
const settled = new WeakSet<object>();
const notTaken = new WeakSet<object>();

/** Thrown by a plain handler that chooses the delay before its next attempt. The policy is not asked. SPEC: U103. */
export class RetryLater extends Error {
  override readonly name = "RetryLater";

  constructor(reason: string, delayMs: number) {
    super(reason);
    delays.set(this, delayMs);
  }
}

/**
 * Thrown by a handler that sent a message which the store or a queue did not take for want of room. The event is
 * delivered again after growing waits, without a look at the retry policy. SPEC: J214.
 */
export class NotTaken extends Error {
  override readonly name = "NotTaken";

  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    notTaken.add(this);
  }
}

/** Thrown by a plain handler that has committed the end of its event or command itself (`HandlerContext.failing`). */
export class Settled extends Error {
  override readonly name = "Settled";

  constructor() {
    super("it is settled already");
    settled.add(this);
  }
}

export class Concluded extends Error {
  override readonly name = "Concluded";

  constructor(ending: Ending) {
    super(ending.reason);
    endings.set(this, ending);
  }
}

export function endingIn(thrown: unknown): Ending | undefined {
  return isObject(thrown) ? endings.get(thrown) : undefined;
}

export function delayIn(thrown: unknown): number | undefined {
  return isObject(thrown) ? delays.get(thrown) : undefined;
}

export function isSettled(thrown: unknown): boolean {
  return isObject(thrown) && settled.has(thrown);
}

/** Whether the store or a queue may take the same message later. */
export function isPassing(thrown: unknown): boolean {
  return isObject(thrown) && (notTaken.has(thrown) || isNotStored(thrown));
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
