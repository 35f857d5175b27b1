/**
 * One look at values that nobody observes (Scheduler v2 §13, `pullOnce`): demands what is read, waits until that is loaded and up to date,
 * and lets go.
 */
import type { Documents } from "./documents.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Quiescence } from "./quiescence.ts";
import { SchedulerError } from "./scheduler-error.ts";

export class Pull {
  readonly #lifecycle: Lifecycle;
  readonly #documents: Documents;
  readonly #quiescence: Quiescence;

  constructor(parts: { lifecycle: Lifecycle; documents: Documents; quiescence: Quiescence }) {
    this.#lifecycle = parts.lifecycle;
    this.#documents = parts.documents;
    this.#quiescence = parts.quiescence;
  }

  async once<T>(read: () => T, clearance?: readonly string[]): Promise<T> {
    let value: { readonly of: T } | undefined;
    const node = this.#lifecycle.register({
      kind: "effect",
      id: "pull",
      noAutoDebounce: true,
      ...(clearance === undefined ? {} : { clearance }),
      run: () => {
        value = undefined;
        value = { of: read() };
      },
    });
    try {
      await this.#upToDate();
      if (value !== undefined) return value.of;
      throw node.error ?? new SchedulerError("SCHEDULER_CLOSED", "the scheduler was closed before it could be pulled");
    } finally {
      this.#lifecycle.remove(node);
    }
  }

  /** What arrives may lead to more that has to be loaded. Sends are not waited for: a handler may be who pulls. */
  async #upToDate(): Promise<void> {
    for (let before = -1; before !== this.#documents.loadGeneration; ) {
      before = this.#documents.loadGeneration;
      await this.#quiescence.quiet();
      await this.#documents.loadsSettled();
      await this.#quiescence.quiet();
    }
  }
}
