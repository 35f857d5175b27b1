/**
 * A host whose time is virtual and whose choices come from a seed: a run is a function of its seed. SPEC: H12-H17.
 *
 * A *step* runs one callback: one of the ready tasks or the first due timer, chosen by the seed. When nothing is ready,
 * virtual time jumps to the earliest deadline. After each callback the step waits for one real task of the runtime, which
 * lets every promise chain run out; promise jobs are first in, first out, so they need no seed.
 *
 *     step()            one callback, moving time if it must
 *     advance(ms)       everything that is due within `ms`; `advance(0)` settles what is ready now
 *     runUntilIdle()    until no task and no keep-alive timer is left: where a real process would end
 *     run(main)         until `main` has finished
 *
 * Only code that gets everything through this host is replayed. It does not catch a real socket, file or worker, and it
 * does not forbid the runtime's own clock: `simulate()` does that.
 */

import { SIMULATION_STEPS_MAX, TIMER_DELAY_MS_MAX } from "../limits.ts";
import { asyncContext } from "./async-context.ts";
import { type Host, HostError, requireDelay, type Timer, type TimerOptions } from "./host.ts";
import { webPlatform } from "./platform.ts";
import { randomBytes, randomUnit } from "./random-source.ts";
import { SeededRandom } from "./seeded-random.ts";
import { TimerHeap } from "./timer-heap.ts";
import { TraceHash } from "./trace-hash.ts";
import { UuidV7Minter } from "./uuid-v7.ts";

/** Midnight UTC, 1 January 2026: where the wall clock of every simulation starts. */
export const SIMULATION_START_MS = 1_767_225_600_000;

export interface DriveOptions {
  /** More steps than this are a livelock. */
  readonly maxSteps?: number;
}

interface ReadyTask {
  readonly ordinal: number;
  readonly run: () => void;
}

/** One callback, taken from its queue and about to run. */
interface Step {
  readonly kind: "task" | "timer";
  readonly ordinal: number;
  readonly run: () => void;
}

const { macrotask: realTask, microtask: realMicrotask } = webPlatform();

export function simulatedHost(seed: number): SimulatedHost {
  return new SimulatedHost(seed);
}

export class SimulatedHost implements Host {
  readonly seed: number;

  /** Virtual milliseconds since the start. Only `#take`, `advance` and `elapse` move it, and only forward. */
  #monotonicMs = 0;
  /** Wall clock minus monotonic clock; `stepClock` changes it. */
  #wallOffsetMs = SIMULATION_START_MS;

  /** Tasks that may run now. The seed picks among them, so their places in the array mean nothing. */
  readonly #tasks: ReadyTask[] = [];
  #nextTaskOrdinal = 0;
  readonly #timers = new TimerHeap();

  /** What callbacks threw during the step that is running; the step rethrows it. */
  #thrown: unknown[] = [];
  #driving = false;

  /** Two streams, so that code which draws one number more does not run in another order. */
  readonly #order: SeededRandom;
  readonly #chance: SeededRandom;
  readonly #ids: UuidV7Minter;
  readonly #trace = new TraceHash();

  constructor(seed: number) {
    this.seed = seed;
    this.#order = new SeededRandom(seed, 1);
    this.#chance = new SeededRandom(seed, 2);
    this.#ids = new UuidV7Minter(() => this.now(), this.#chance);
  }

  now(): number {
    return Math.floor(this.#wallOffsetMs + this.#monotonicMs);
  }

  monotonic(): number {
    return this.#monotonicMs;
  }

  timer(delayMs: number, fire: () => void, options?: TimerOptions): Timer {
    requireDelay(delayMs);
    const entry = this.#timers.add(this.#monotonicMs + delayMs, options?.keepAlive ?? true, fire);
    return { cancel: () => this.#timers.remove(entry) };
  }

  task(run: () => void): void {
    this.#tasks.push({ ordinal: this.#nextTaskOrdinal++, run });
  }

  yield(): Promise<void> {
    return new Promise((resolve) => this.task(resolve));
  }

  microtask(run: () => void): void {
    asyncContext.clear(() => realMicrotask(() => this.#call(run)));
  }

  report(error: unknown): void {
    this.task(() => {
      throw error;
    });
  }

  id(nowMs?: number): string {
    return this.#ids.mint(nowMs);
  }

  random(): number {
    return randomUnit(this.#chance);
  }

  randomBytes(length: number): Uint8Array<ArrayBuffer> {
    return randomBytes(this.#chance, length);
  }

  /** Runs one callback. False if there was none. Rejects with what the callback, or a microtask after it, threw. */
  step(): Promise<boolean> {
    return this.#drive(() => this.#stepOnce(Number.POSITIVE_INFINITY));
  }

  /** Lets `durationMs` pass, running all that falls due, and ends exactly that much later (or more, see `elapse`). */
  advance(durationMs: number, options?: DriveOptions): Promise<void> {
    requireDuration(durationMs);
    return this.#drive(async () => {
      const untilMs = this.#monotonicMs + durationMs;
      await this.#repeat(() => this.#stepOnce(untilMs), `advance(${durationMs})`, options);
      this.#monotonicMs = Math.max(this.#monotonicMs, untilMs);
    });
  }

  /** Runs until no task and no keep-alive timer is left, moving time as far as that takes. */
  runUntilIdle(options?: DriveOptions): Promise<void> {
    return this.#drive(() =>
      this.#repeat(() => (this.idle ? false : this.#stepOnce(Number.POSITIVE_INFINITY)), "runUntilIdle()", options),
    );
  }

  /** Runs `main` inside the simulation until it has finished, and gives back what it gave. */
  async run<T>(main: () => Promise<T>, options?: DriveOptions): Promise<T> {
    let finished = false;
    const settle = () => {
      finished = true;
    };
    const result = main();
    result.then(settle, settle);
    await this.#drive(() =>
      this.#repeat(() => (finished ? false : this.#stepOnce(Number.POSITIVE_INFINITY)), "run()", options),
    );
    if (finished) return result;
    throw new HostError(
      "SIMULATION_STUCK",
      `Nothing is left to run at ${this.#monotonicMs} ms (seed ${this.seed}), and what was run has not finished: it waits for something that no task or timer of this host will bring.`,
    );
  }

  /** The running callback took this long: the clocks move, and nothing fires until it returns. */
  elapse(durationMs: number): void {
    requireDuration(durationMs);
    this.#monotonicMs += durationMs;
  }

  /** The wall clock jumps, either way; the monotonic clock and with it every timer goes on as if nothing happened. */
  stepClock(deltaMs: number): void {
    if (!Number.isFinite(deltaMs) || this.now() + deltaMs < 0) {
      throw new HostError(
        "INVALID_CLOCK",
        `The wall clock can step by any number of ms that leaves it after 1970, not by ${deltaMs}.`,
      );
    }
    this.#wallOffsetMs += deltaMs;
    this.note(`clock ${deltaMs}`);
  }

  /** Folds something that the run did or saw into its trace. */
  note(text: string): void {
    this.#trace.text(text);
  }

  /** Equal for two runs of one seed, or something in them did not come through this host. */
  traceHash(): string {
    return this.#trace.digest();
  }

  /** True where a real process would end by itself. */
  get idle(): boolean {
    return this.#tasks.length === 0 && this.#timers.keepAliveCount === 0;
  }

  get pendingTasks(): number {
    return this.#tasks.length;
  }

  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Throws if the host contradicts itself. */
  checkInvariants(): void {
    this.#timers.checkInvariants();
    const ordinals = new Set(this.#tasks.map((task) => task.ordinal));
    if (ordinals.size !== this.#tasks.length) throw new Error("Simulated host: a task is queued twice");
    if (!(this.#monotonicMs >= 0)) throw new Error(`Simulated host: monotonic clock at ${this.#monotonicMs}`);
    if (!(this.now() >= 0)) throw new Error(`Simulated host: wall clock at ${this.now()}`);
  }

  /** Keeps drivers apart, and lets promise chains that started outside a step run out before the first choice. */
  async #drive<T>(body: () => Promise<T>): Promise<T> {
    if (this.#driving) {
      throw new HostError(
        "SIMULATION_REENTERED",
        "This simulation is already being driven. Await the driver that runs, and inside simulated code await host.yield() or a timer.",
      );
    }
    this.#driving = true;
    try {
      await this.#drain();
      return await body();
    } finally {
      this.#driving = false;
    }
  }

  async #repeat(next: () => boolean | Promise<boolean>, what: string, options?: DriveOptions): Promise<void> {
    const maxSteps = options?.maxSteps ?? SIMULATION_STEPS_MAX;
    for (let steps = 0; await next(); steps++) {
      if (steps < maxSteps) continue;
      throw new HostError(
        "SIMULATION_OVERRUN",
        `${what} took more than ${maxSteps} steps (seed ${this.seed}, now at ${this.#monotonicMs} ms, ${this.pendingTasks} tasks and ${this.pendingTimers} timers pending). Something re-arms itself for ever: stop it first, give its timer keepAlive: false, or raise maxSteps.`,
      );
    }
  }

  async #stepOnce(untilMs: number): Promise<boolean> {
    const step = this.#take(untilMs);
    if (step === undefined) return false;
    this.#trace.text(step.kind);
    this.#trace.number(step.ordinal);
    this.#trace.number(this.#monotonicMs);
    this.#call(step.run);
    await this.#drain();
    this.#trace.number(this.#chance.drawn);
    return true;
  }

  /** Chooses what runs next and takes it out of its queue. */
  #take(untilMs: number): Step | undefined {
    const first = this.#timers.peek();
    const timerIsDue = first !== undefined && first.deadlineMs <= this.#monotonicMs;
    const readyCount = this.#tasks.length + (timerIsDue ? 1 : 0);
    const choice = readyCount > 1 ? this.#order.below(readyCount) : 0;
    if (choice < this.#tasks.length) return this.#takeTask(choice);
    if (first === undefined || first.deadlineMs > untilMs) return undefined;
    this.#monotonicMs = Math.max(this.#monotonicMs, first.deadlineMs);
    this.#timers.remove(first);
    return { kind: "timer", ordinal: first.ordinal, run: first.fire };
  }

  #takeTask(index: number): Step {
    const { ordinal, run } = this.#tasks[index]!;
    const last = this.#tasks.pop()!;
    if (index < this.#tasks.length) this.#tasks[index] = last;
    return { kind: "task", ordinal, run };
  }

  /** What a callback throws ends the step, not the host: it is kept here until the step has run out. */
  #call(run: () => void): void {
    try {
      asyncContext.clear(run);
    } catch (error) {
      this.#thrown.push(error);
    }
  }

  /** Waits for one real task, before which the runtime empties its microtask queue, however long it grows. */
  async #drain(): Promise<void> {
    await new Promise<void>((resolve) => realTask(resolve));
    if (this.#thrown.length === 0) return;
    const thrown = this.#thrown;
    this.#thrown = [];
    throw thrown.length === 1 ? thrown[0] : new AggregateError(thrown, "Several callbacks of one simulated step threw");
  }
}

function requireDuration(durationMs: number): void {
  if (durationMs >= 0 && durationMs <= TIMER_DELAY_MS_MAX) return;
  throw new HostError(
    "INVALID_CLOCK",
    `Virtual time can pass by 0 to ${TIMER_DELAY_MS_MAX} ms (100 years), not by ${durationMs}.`,
  );
}
