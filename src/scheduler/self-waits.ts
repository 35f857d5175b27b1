/**
 * Refuses waits that would never end: an asynchronous run that awaits a pull, `idle` or `settled`, and an asynchronous
 * handler that awaits `idle` or `settled`. Both are work that the wait itself waits for. SPEC: R49.
 *
 * A wait is recognized if it begins before the first await, or within `within`. Before the first await it is refused as
 * soon as the code turns out to be asynchronous. After an await without `within`, the caller of a wait is unknown.
 */
import type { Attempt } from "../work/attempt.ts";
import { SchedulerError } from "./scheduler-error.ts";

/** The number of a run, or an attempt. */
export type Waiter = number | Attempt;

export class SelfWaits {
  /** Pending waits of code that may turn out to be asynchronous. */
  readonly #open = new Map<Waiter, ((reason: SchedulerError) => void)[]>();

  /** The wait, which is refused if the waiter continues after an await. */
  unless<T>(waiter: Waiter, wait: Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const refusals = this.#open.get(waiter);
    if (refusals === undefined) this.#open.set(waiter, [reject]);
    else refusals.push(reject);
    const over = () => this.#open.delete(waiter);
    wait.then(resolve, reject).finally(over);
    // Code that does not await the result must not cause an unhandled rejection.
    promise.catch(() => undefined);
    return promise;
  }

  /** The waiter's code continues after an await, so its waits can never end. */
  refuse(waiter: Waiter, name: string): void {
    for (const reject of this.#open.get(waiter) ?? []) reject(waitsForItself(name));
    this.#open.delete(waiter);
  }
}

export function waitsForItself(name: string): SchedulerError {
  return new SchedulerError(
    "SCHEDULER_WAITS_FOR_ITSELF",
    `${name} would wait for itself: the wait ends only after its own end; read the cell with get(), which is tracked, or do the waiting in plain code`,
  );
}
