/**
 * Detects that no work is left, and resolves the promises that wait for it. SPEC: R6, R7.
 *
 * ```
 *   quiet   no pass, no queued node, all readers told, no background work, no first run behind a gate
 *   idle    quiet, and no send that can be handled now
 * ```
 * Each component that ends work calls `check`. Gates of nodes that have run do not count, and neither do breakpoints
 * (P10).
 */
import { Waiters } from "../host/waiters.ts";
import type { Agenda } from "./agenda.ts";
import type { Gates } from "./gates.ts";
import type { Background } from "./run-commits.ts";
import type { WriteTurns } from "./turns.ts";

/** The pass; implemented by the settle component. */
export interface SchedulerActivity {
  /** A pass is running, resting, waiting, or about to begin. */
  readonly isActive: boolean;
  /** An asynchronous run, a load or a resumption is awaited. */
  readonly isWaiting: boolean;
}

/** Queued sends; implemented by the events component. */
export interface PendingSends {
  readonly isIdle: boolean;
}

export class Quiescence implements Background {
  readonly #agenda: Agenda;
  readonly #gates: Gates;
  readonly #turns: WriteTurns;
  readonly #background = new Set<Promise<unknown>>();
  #activity: SchedulerActivity | undefined;
  #sends: PendingSends | undefined;
  readonly #idleWaiters = new Waiters();
  /** Waiters that do not wait for sends. */
  #quietWaiters: { readonly resolve: () => void; readonly isHeldUp: () => boolean }[] = [];
  #disposed = false;

  constructor(parts: { agenda: Agenda; gates: Gates; turns: WriteTurns }) {
    this.#agenda = parts.agenda;
    this.#gates = parts.gates;
    this.#turns = parts.turns;
  }

  set activity(activity: SchedulerActivity) {
    this.#activity = activity;
  }

  set sends(sends: PendingSends) {
    this.#sends = sends;
  }

  idle(): Promise<void> {
    if (this.isIdle) return Promise.resolve();
    return this.#idleWaiters.wait();
  }

  /**
   * Like `idle`, for callers that a handler may have called: does not wait for sends. It waits for gates that hold the
   * caller up.
   */
  quiet(isHeldUp: () => boolean): Promise<void> {
    if (this.#isQuiet && (this.#disposed || !isHeldUp())) return Promise.resolve();
    return new Promise((resolve) => {
      this.#quietWaiters.push({ resolve, isHeldUp });
    });
  }

  /** Work outside of the graph that `idle` waits for, whether it succeeds or fails. */
  background(work: Promise<unknown>): void {
    const done = () => {
      this.#background.delete(tracked);
      this.check();
    };
    const tracked: Promise<unknown> = work.then(done, done);
    this.#background.add(tracked);
  }

  /** Called when work has ended, which may have been the last. */
  check(): void {
    if (this.#quietWaiters.length > 0 && this.#isQuiet) this.#tellQuiet();
    if (this.#idleWaiters.isEmpty || !this.isIdle) return;
    this.#idleWaiters.release();
  }

  #tellQuiet(): void {
    for (const waiter of this.#quietWaiters.splice(0)) {
      if (this.#disposed || !waiter.isHeldUp()) waiter.resolve();
      else this.#quietWaiters.push(waiter);
    }
  }

  /** No work begins after this; only awaited work counts. */
  dispose(): void {
    this.#disposed = true;
    this.check();
  }

  get isIdle(): boolean {
    return this.#isQuiet && (this.#disposed || (this.#sends?.isIdle ?? true));
  }

  get #isQuiet(): boolean {
    if (this.#disposed) return !this.#activity?.isWaiting;
    return (
      !this.#activity?.isActive &&
      this.#agenda.isEmpty &&
      this.#background.size === 0 &&
      !this.#turns.hasUntold &&
      !this.#hasDeferredFirstRun()
    );
  }

  /** A demanded node whose first run waits for a gate, other than a breakpoint. */
  #hasDeferredFirstRun(): boolean {
    for (const { status, live, gate } of this.#gates.held)
      if (status === "never-ran" && live && !gate?.stopped) return true;
    return false;
  }
}
