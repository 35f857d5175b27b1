/**
 * Waiting for rest from inside of what rest waits for: an asynchronous run that awaits a pull, `idle` or `settled`, or an asynchronous handler
 * that awaits `idle` or `settled`, would wait for itself for ever. Such a wait is refused. SPEC: R49.
 *
 * It is known for what begins while the code executes: in the stretch before the first await, where it is refused when the code turns out to be
 * asynchronous, and in stretches that are taken up with `within`. After an await without that, nothing tells whose code it is.
 */
import type { Attempt } from "../work/attempt.ts";
import { SchedulerError } from "./scheduler-error.ts";

/** The number of a run, or an attempt. */
export type Waiter = number | Attempt;

export class SelfWaits {
  /** What was begun by code that may turn out to be asynchronous, and is not over. */
  readonly #open = new Map<Waiter, ((reason: SchedulerError) => void)[]>();

  /** The wait, refused if the waiter goes on after an await. */
  unless<T>(waiter: Waiter, wait: Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const refusals = this.#open.get(waiter);
    if (refusals === undefined) this.#open.set(waiter, [reject]);
    else refusals.push(reject);
    const over = () => this.#open.delete(waiter);
    wait.then(resolve, reject).finally(over);
    // Code that does not wait for it has no use for the refusal either.
    promise.catch(() => undefined);
    return promise;
  }

  /** The waiter's code goes on after an await: whatever it waits for waits for it. */
  refuse(waiter: Waiter, name: string): void {
    for (const reject of this.#open.get(waiter) ?? []) reject(waitsForItself(name));
    this.#open.delete(waiter);
  }
}

export function waitsForItself(name: string): SchedulerError {
  return new SchedulerError(
    "SCHEDULER_WAITS_FOR_ITSELF",
    `${name} would wait for itself: nothing comes to rest before it has ended; read the cell with get(), which is tracked, or do the waiting in plain code`,
  );
}
