/**
 * One read of values that are not observed (Scheduler v2 §13, `pullOnce`): demands the inputs, waits until they are
 * loaded and up to date, including gates that hold them up, and withdraws the demand. SPEC: R23.
 */
import { leadsTo } from "./closure.ts";
import type { Documents } from "./documents.ts";
import { type Gates, isUnsettling } from "./gates.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { SchedulerNode } from "./node.ts";
import type { Quiescence } from "./quiescence.ts";
import type { Run } from "./run.ts";
import { START_OVER } from "./run-reads.ts";
import type { Runner } from "./runner.ts";
import { SchedulerError } from "./scheduler-error.ts";

export class Pull {
  readonly #lifecycle: Lifecycle;
  readonly #documents: Documents;
  readonly #quiescence: Quiescence;
  readonly #gates: Gates;
  readonly #runner: Runner;

  constructor(parts: {
    lifecycle: Lifecycle;
    documents: Documents;
    quiescence: Quiescence;
    gates: Gates;
    runner: Runner;
  }) {
    this.#lifecycle = parts.lifecycle;
    this.#documents = parts.documents;
    this.#quiescence = parts.quiescence;
    this.#gates = parts.gates;
    this.#runner = parts.runner;
  }

  /**
   * A value that does not converge is read as it is (I6), and so is one behind a breakpoint: a reader does not change
   * the run of others.
   */
  #isHeldUp(node: SchedulerNode): boolean {
    for (const held of this.#gates.held) {
      const isPassing = held.status !== "clean" && held.live && !held.gate?.stopped && !isUnsettling(held);
      if (isPassing && leadsTo(held, node)) return true;
    }
    return false;
  }

  async once<T>(read: () => T, clearance?: readonly string[]): Promise<T> {
    let end: (() => T) | undefined;
    const node = this.#lifecycle.register({
      kind: "effect",
      id: "pull",
      noAutoDebounce: true,
      whileLoading: "finish",
      ...(clearance === undefined ? {} : { clearance }),
      run: () => {
        end = undefined;
        end = this.#look(read);
      },
    });
    try {
      await this.#upToDate(() => this.#isHeldUp(node));
      if (node.isWaiting) throw loadErrorOf(node);
      if (end !== undefined) return end();
      throw node.error ?? new SchedulerError("SCHEDULER_CLOSED", "the scheduler was closed before it could be pulled");
    } finally {
      this.#lifecycle.remove(node);
    }
  }

  /** The caller gets the error of the last run only, because errors before the inputs are loaded mean little. */
  #look<T>(read: () => T): () => T {
    const run = this.#runner.current as Run;
    try {
      const value = this.#runner.atomically(run, read);
      return () => value;
    } catch (error) {
      if (error === START_OVER) throw error;
      return () => {
        throw error;
      };
    }
  }

  /**
   * Repeats while arriving documents lead to further loads. It does not wait for sends, because a handler may be the
   * caller.
   */
  async #upToDate(isHeldUp: () => boolean): Promise<void> {
    for (let before = -1; before !== this.#documents.loadGeneration; ) {
      before = this.#documents.loadGeneration;
      await this.#quiescence.quiet(isHeldUp);
      await this.#documents.loadsSettled();
      await this.#quiescence.quiet(isHeldUp);
    }
  }
}

/** Why an input of the node cannot be read, directly or through computed values. */
function loadErrorOf(node: SchedulerNode): unknown {
  const nodes = new Set([node]);
  for (const one of nodes) {
    for (let edge = one.reads; edge !== null; edge = edge.next) {
      const { document, writers } = edge.address.home;
      if (document.isReadable) continue;
      if (document.loadError !== undefined) return document.loadError;
      for (const writer of writers) nodes.add(writer);
    }
  }
  return new SchedulerError("SCHEDULER_CLOSED", "the scheduler was closed before the pulled value was loaded");
}
