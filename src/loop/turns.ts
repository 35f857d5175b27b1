/**
 * The turns of the loop (RFC 0032 §8): two lanes and the loop's own microtasks. A turn takes one message, system lane first, hands it to
 * the router, drains the microtasks, and yields. Several turns share a macrotask, which is a slice.
 *
 * ```
 *   resting ──a message or microtask comes──> turning: turn, promise jobs, turn, ... ──nothing left──> resting
 *                                                ^──the slice is over and something is left: a new task──┘
 * ```
 * SPEC: L2-L6. Deliberately not here: what a message leads to (the router), and who is told where a lane takes no more (the loop).
 */
import { Fifo } from "../host/fifo.ts";
import type { Host } from "../host/host.ts";
import type { Connection, Inbound, LaneName, Origin } from "./inbound.ts";
import type { LoopLimits } from "./loop-limits.ts";
import type { Observations } from "./observation.ts";
import type { Router } from "./router.ts";
import { Slice } from "./slice.ts";

const SETTLED = Promise.resolve();

/**
 * So many promise jobs find the lanes empty before a slice of turns ends. A handler that waits for nothing has answered by then, also an
 * `async` one: its answer is routed and written in the same task. A task of its own costs a hundred times as much as a job.
 */
const JOBS_IN_VAIN_MAX = 4;

export class Turns {
  readonly #host: Host;
  readonly #observations: Observations;
  readonly #router: Router;
  readonly #limits: LoopLimits;
  readonly #system = new Fifo<Inbound>();
  readonly #user = new Fifo<Inbound>();
  readonly #microtasks = new Fifo<() => void>();
  /** Connections that went while something was in the lanes, which may be theirs; until the lanes are empty. */
  readonly #gone = new Set<Connection>();
  /** What waits for the end of the slice of turns that runs or is about to. */
  #atSliceEnd: (() => void)[] = [];
  readonly #slice: Slice;
  /** Whether a slice of turns runs or is about to. */
  #turning = false;
  /** Promise jobs of this slice in a row that found nothing to take. */
  #jobsInVain = 0;
  #count = 0;
  #restWaiters: (() => void)[] = [];

  constructor(options: { host: Host; observations: Observations; router: Router; limits: LoopLimits }) {
    this.#host = options.host;
    this.#observations = options.observations;
    this.#router = options.router;
    this.#limits = options.limits;
    this.#slice = new Slice(options.host);
  }

  // What comes in ------------------------------------------------------------------------------------------------------------

  /** Puts a message into a lane. It is taken once somebody has called `wake` or `beginAfterThis`. */
  put(inbound: Inbound, lane: LaneName): void {
    this.#lane(lane).push(inbound);
  }

  isFull(lane: LaneName): boolean {
    return this.#lane(lane).length >= this.#limits.laneMax;
  }

  #lane(name: LaneName): Fifo<Inbound> {
    return name === "system" ? this.#system : this.#user;
  }

  /** Bookkeeping at the end of the present turn, or of the next. Bounded; what is over is carried on. */
  microtask(task: () => void): void {
    this.#microtasks.push(task);
    this.wake();
  }

  /**
   * Runs a task once, when the present slice of turns is over, or after the present callback when none is on its way. Adapters write
   * there: one write for the answers of a slice, not one for each (a write costs more than a turn).
   */
  atSliceEnd(task: () => void): void {
    this.#atSliceEnd.push(task);
    if (!this.#turning && this.#atSliceEnd.length === 1) this.#host.microtask(() => this.#endSlice());
  }

  disconnect(connection: Connection): void {
    if (!this.#isEmpty) this.#gone.add(connection);
  }

  /** Whether whoever has sent a message went before its turn came. */
  isGone(origin: Origin): boolean {
    return this.#gone.size > 0 && origin.kind === "adapter" && this.#gone.has(origin.connection);
  }

  // Slices -------------------------------------------------------------------------------------------------------------------

  /** Turns begin in a task of their own: a promise would never let timers and sockets in. */
  wake(): void {
    if (this.#turning) return;
    this.#turning = true;
    this.#host.task(this.#beginSlice);
  }

  /**
   * Turns begin when the present task's callback is over: a task of their own would cost as much as they do. But that only now
   * and then, or timers would wait for all sockets.
   */
  beginAfterThis(): void {
    if (this.#turning) return;
    this.#turning = true;
    this.#host.microtask(this.#beginAtOnce);
  }

  readonly #beginSlice = (): void => {
    this.#slice.begin();
    this.#jobsInVain = 0;
    this.#next();
  };

  readonly #beginAtOnce = (): void => {
    if (!this.#slice.beginAtOnce()) return this.#host.task(this.#beginSlice);
    this.#jobsInVain = 0;
    this.#next();
  };

  readonly #next = (): void => {
    const inbound = this.#system.shift() ?? this.#user.shift();
    if (inbound) {
      this.#count++;
      this.#router.route(inbound);
    }
    this.#drainMicrotasks();
    this.#jobsInVain = inbound ? 0 : this.#jobsInVain + 1;
    // Between two turns whatever they have set off may run. An `await` in a loop would say the same at twice the cost.
    if ((!this.#isEmpty || this.#jobsInVain < JOBS_IN_VAIN_MAX) && !this.#slice.isOver())
      return void SETTLED.then(this.#next);
    this.#endSlice();
    this.#turning = false;
    if (this.#gone.size > 0 && this.#isEmpty) this.#gone.clear();
    // What waits for the end of a slice may have asked for another: a connection that writes has room to take more, and to refuse it.
    if (this.#isEmpty && this.#atSliceEnd.length === 0) this.checkRest();
    else this.wake();
  };

  #endSlice(): void {
    if (this.#atSliceEnd.length === 0) return;
    const tasks = this.#atSliceEnd;
    this.#atSliceEnd = [];
    for (const task of tasks) this.#runMicrotask(task);
  }

  #drainMicrotasks(): void {
    for (let ran = 0; this.#microtasks.length > 0; ran++) {
      if (ran >= this.#limits.microtasksMax) {
        this.#observations.tell("Sys.MicrotaskOverflow", { carried: this.#microtasks.length });
        return;
      }
      this.#runMicrotask(this.#microtasks.shift() as () => void);
    }
  }

  #runMicrotask(task: () => void): void {
    try {
      task();
    } catch (thrown) {
      this.#observations.tell("Sys.MicrotaskFault", { reason: String(thrown) });
    }
  }

  // Rest ---------------------------------------------------------------------------------------------------------------------

  get #isEmpty(): boolean {
    return this.#system.length === 0 && this.#user.length === 0 && this.#microtasks.length === 0;
  }

  /** Nothing is in the lanes, and no slice runs or is about to. */
  get isResting(): boolean {
    return !this.#turning && this.#isEmpty;
  }

  /** How many turns there were. */
  get count(): number {
    return this.#count;
  }

  length(lane: LaneName): number {
    return this.#lane(lane).length;
  }

  /** Resolves with the end of a slice that left nothing, or a call of `checkRest` between slices. */
  rest(): Promise<void> {
    return new Promise((resolve) => {
      this.#restWaiters.push(resolve);
    });
  }

  /** Something that they wait for may have happened: whoever waits looks for himself. */
  checkRest(): void {
    if (this.#restWaiters.length === 0 || this.#turning) return;
    for (const resolve of this.#restWaiters.splice(0)) resolve();
  }
}
