/**
 * The turns of the loop (RFC 0032 §8). A turn takes one message from the lanes, system lane first, hands it to the
 * router, drains the microtasks, and yields. Several turns share a macrotask, which is a slice.
 *
 * ```
 *   resting ──a message or microtask comes──> turning: turn, promise jobs, turn, ... ──lanes are empty──> resting
 *                                                ^──the slice is over and the lanes are not empty: a new task──┘
 * ```
 * SPEC: L2-L5. Not here: the queues themselves (`Lanes`), and where a message goes (`Router`).
 */
import type { Host } from "../host/host.ts";
import type { Lanes, LanesListener } from "./lanes.ts";
import type { LoopLimits } from "./loop-limits.ts";
import type { Observations } from "./observation.ts";
import type { Router } from "./router.ts";
import { Slice } from "./slice.ts";

const SETTLED = Promise.resolve();

/**
 * Empty microtask checks before a slice ends. A synchronous or `async` handler that awaits no I/O has answered by then,
 * so that its answer is routed and written in the same task. A task of its own costs a hundred times as much as a
 * check.
 */
const EMPTY_POLLS_MAX = 4;

export class Turns implements LanesListener {
  readonly #host: Host;
  readonly #observations: Observations;
  readonly #router: Router;
  readonly #lanes: Lanes;
  readonly #microtasksMax: number;
  /** Tasks for the end of the slice of turns that runs or is about to. */
  #atSliceEnd: (() => void)[] = [];
  readonly #slice: Slice;
  /** Consecutive microtask checks of this slice that found the lanes empty. */
  #emptyPolls = 0;
  #count = 0;

  constructor(parts: { host: Host; lanes: Lanes; observations: Observations; router: Router; limits: LoopLimits }) {
    this.#host = parts.host;
    this.#lanes = parts.lanes;
    this.#observations = parts.observations;
    this.#router = parts.router;
    this.#microtasksMax = parts.limits.microtasksMax;
    this.#slice = new Slice(parts.host);
    parts.lanes.listener = this;
  }

  /**
   * Runs a task once, when the present slice of turns is over, or after the present callback when none is on its way.
   * Adapters write there: one write for the answers of a slice, not one for each (a write costs more than a turn).
   */
  atSliceEnd(task: () => void): void {
    this.#atSliceEnd.push(task);
    if (!this.#lanes.isTurning && this.#atSliceEnd.length === 1) this.#host.microtask(() => this.#endSlice());
  }

  // Slices ----------------------------------------------------------------------------------------------------------

  /** Turns begin in a task of their own: a promise would never let timers and sockets in. */
  wake(): void {
    if (this.#lanes.isTurning) return;
    this.#lanes.isTurning = true;
    this.#host.task(this.#beginSlice);
  }

  /**
   * Turns begin when the present callback is over, because a task of their own would cost as much as the turns. `Slice`
   * limits this, or timers would wait for all sockets.
   */
  beginAfterThis(): void {
    if (this.#lanes.isTurning) return;
    this.#lanes.isTurning = true;
    this.#host.microtask(this.#beginAtOnce);
  }

  readonly #beginSlice = (): void => {
    this.#slice.begin();
    this.#emptyPolls = 0;
    this.#next();
  };

  readonly #beginAtOnce = (): void => {
    if (!this.#slice.beginAtOnce()) return this.#host.task(this.#beginSlice);
    this.#emptyPolls = 0;
    this.#next();
  };

  readonly #next = (): void => {
    const inbound = this.#lanes.take();
    if (inbound) {
      this.#count++;
      this.#router.route(inbound);
    }
    this.#drainMicrotasks();
    this.#emptyPolls = inbound ? 0 : this.#emptyPolls + 1;
    // Promise jobs run between two turns. An `await` in a loop would do the same at twice the cost.
    if ((!this.#lanes.isEmpty || this.#emptyPolls < EMPTY_POLLS_MAX) && !this.#slice.isOver())
      return void SETTLED.then(this.#next);
    this.#endSlice();
    this.#lanes.isTurning = false;
    this.#lanes.forgetGone();
    // The tasks at the end of the slice may add messages or further tasks: a connection that has written has room
    // again.
    if (this.#lanes.isEmpty && this.#atSliceEnd.length === 0) this.#lanes.checkRest();
    else this.wake();
  };

  #endSlice(): void {
    if (this.#atSliceEnd.length === 0) return;
    const tasks = this.#atSliceEnd;
    this.#atSliceEnd = [];
    for (const task of tasks) this.#runMicrotask(task);
  }

  #drainMicrotasks(): void {
    for (let ran = 0; this.#lanes.microtasks > 0; ran++) {
      if (ran >= this.#microtasksMax) {
        this.#observations.tell("Sys.MicrotaskOverflow", { carried: this.#lanes.microtasks });
        return;
      }
      this.#runMicrotask(this.#lanes.takeMicrotask() as () => void);
    }
  }

  #runMicrotask(task: () => void): void {
    try {
      task();
    } catch (thrown) {
      this.#observations.tell("Sys.MicrotaskFault", { reason: String(thrown) });
    }
  }

  /** How many turns there were. */
  get count(): number {
    return this.#count;
  }
}
