/**
 * The functions to call before an effect's next run and when it ends: the function that the last run returned, and one
 * for each effect that the last run created. They are called last first, also after one of them throws. SPEC: R84, R85.
 */
import type { Scheduler } from "../scheduler/scheduler.ts";

export class EffectCleanup {
  /** Of the effect whose function executes now. */
  static current: EffectCleanup | undefined;
  readonly #scheduler: Scheduler;
  #functions: (() => unknown)[] = [];

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  add(cleanup: () => unknown): void {
    this.#functions.push(cleanup);
  }

  /** Calls the functions of the last run, then `code`, and keeps the function that it returns, or promises. */
  around(code: () => unknown): unknown {
    this.run();
    const outer = EffectCleanup.current;
    EffectCleanup.current = this;
    let result: unknown;
    try {
      result = code();
    } finally {
      EffectCleanup.current = outer;
    }
    if (result instanceof Promise) return result.then((last) => this.#keep(last));
    this.#keep(result);
    return result;
  }

  #keep(result: unknown): void {
    if (typeof result === "function") this.add(() => result());
  }

  run(): void {
    if (this.#functions.length === 0) return;
    const functions = this.#functions.reverse();
    this.#functions = [];
    for (const cleanup of functions) {
      try {
        this.#scheduler.untracked(cleanup);
      } catch (error) {
        this.#scheduler.parts.introspection.report(error);
      }
    }
  }
}
