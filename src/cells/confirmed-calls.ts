/**
 * Calls of observers that wait until the store has confirmed the state of their value. SPEC: R58-R61.
 *
 * ```
 *   run ──> value, frozen ──the commits it was read from are confirmed──> called, in the order of the runs
 *                    └──one of them is rolled back──> dropped; the rollback makes the node run again
 * ```
 * One object for each sink or two-step effect. There is no call for a value that equals that of the last call.
 */
import { CONFIRMED_CALLS_MAX } from "../limits.ts";
import { equal } from "../message/equality.ts";
import type { Json } from "../message/json.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";

export class ConfirmedCalls<T> {
  readonly #scheduler: Scheduler;
  readonly #call: (value: T) => unknown;
  /** Values that wait for the store, oldest first. */
  #waiting: { readonly value: T; readonly standing: Promise<boolean> | undefined }[] = [];
  #isCalling = false;
  #last: { readonly value: T } | undefined;
  #isOver = false;

  constructor(scheduler: Scheduler, call: (value: T) => unknown) {
    this.#scheduler = scheduler;
    this.#call = call;
  }

  /** Adds the value of the run that is executing. */
  add(value: T): void {
    const standing = this.#scheduler.parts.runner.standing();
    if (standing === undefined && this.#waiting.length === 0 && !this.#isCalling) return this.#callWith(value);
    this.#waiting.push({ value, standing });
    // A sink shows states: one that is far behind may skip old ones.
    if (this.#waiting.length > CONFIRMED_CALLS_MAX) this.#waiting.shift();
    if (!this.#isCalling) this.#scheduler.delivers(this.#callAll());
  }

  /** Ends the calls. */
  cancel(): void {
    this.#isOver = true;
    this.#waiting = [];
  }

  async #callAll(): Promise<void> {
    this.#isCalling = true;
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const stands = (await next.standing) ?? true;
      if (this.#waiting[0] === next) this.#waiting.shift();
      if (stands && !this.#isOver) this.#callWith(next.value);
    }
    this.#isCalling = false;
  }

  #callWith(value: T): void {
    if (this.#last !== undefined && equal(this.#last.value as Json | undefined, value as Json | undefined)) return;
    this.#last = { value };
    try {
      const result = this.#scheduler.outsideRuns(() => this.#call(value));
      if (result instanceof Promise)
        result.catch((error: unknown) => this.#scheduler.parts.introspection.report(error));
    } catch (error) {
      this.#scheduler.parts.introspection.report(error);
    }
  }
}
