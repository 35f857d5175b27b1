/** Two guards of asynchronous code: waits that would never end, and writes that leave their handler. */
import type { Attempt, Home } from "../work/attempt.ts";
import { WorkError } from "../work/work-error.ts";
import type { Introspection } from "./introspection.ts";
import { SchedulerError } from "./scheduler-error.ts";

/** The number of a run, or an attempt. */
type Waiter = number | Attempt;

/**
 * Refuses waits that would never end: an asynchronous run that awaits a pull, `idle` or `settled`, and an asynchronous
 * handler that awaits `idle` or `settled`. Both are work that the wait itself waits for. SPEC: R49.
 *
 * A wait is recognized if it begins before the first await, or within `within`. Before the first await it is refused as
 * soon as the code turns out to be asynchronous. After an await without `within`, the caller of a wait is unknown.
 */
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

/**
 * Plain writes that leave their handler, on engines without an async context. There, code after an `await` does not
 * know its handler, and
 * its plain write is a commit of its own. Such a write is reported, once for each handler, if an asynchronous handler
 * that still runs has
 * read or written the same document. On other engines nothing is added here. SPEC: U46, U120.
 */
export class Escapes {
  /** Attempts whose handlers have returned a promise; those that are over are removed later. */
  readonly #awaited = new Set<Attempt>();
  /** Names of handlers that were reported. */
  readonly #reported = new Set<string>();
  readonly #introspection: Introspection;

  constructor(introspection: Introspection) {
    this.#introspection = introspection;
  }

  /** The handler of the attempt goes on after an `await`. */
  add(attempt: Attempt): void {
    this.#removeOver();
    this.#awaited.add(attempt);
  }

  /** Plain code writes to a document. */
  wrote(home: Home): void {
    if (this.#awaited.size === 0) return;
    this.#removeOver();
    for (const attempt of this.#awaited) {
      const name = String(attempt);
      if (this.#reported.has(name) || !attempt.hasTouched(home)) continue;
      this.#reported.add(name);
      const advice = "use tx, or tx.within(), after an await: this engine has no async context";
      const message = `a plain write to ${home.document.id} was committed alone, and ${name} uses that document; ${advice}`;
      this.#introspection.report(new WorkError("WORK_ESCAPED", message), undefined);
    }
  }

  #removeOver(): void {
    for (const attempt of this.#awaited) if (attempt.isOver) this.#awaited.delete(attempt);
  }
}
