/**
 * A host with virtual time and seeded choices: a run is a function of its seed. SPEC: H12-H17.
 *
 * A *step* runs one callback: a ready task or the first due timer, chosen by the seed. If none is ready, virtual time
 * jumps to the earliest deadline. After each callback the step waits for one real task of the runtime, so that every
 * promise chain finishes; promise jobs run in order and need no seed.
 *
 *     step()            one callback, moving time if it must
 *     advance(ms)       runs all callbacks due within `ms`; `advance(0)` runs those ready now
 *     runUntilIdle()    until no task and no keep-alive timer is left: where a real process would end
 *     run(main)         until `main` has finished
 *
 * Only code that uses this host is replayed. Real sockets, files and workers are not, and the runtime's own clock is
 * forbidden only by `simulate()`.
 */

import { SIMULATION_STEPS_MAX, TIMER_DELAY_MS_MAX } from "../limits.ts";
import { asyncContext } from "./async-context.ts";
import { type Host, HostError, requireDelay, type Timer, type TimerOptions } from "./host.ts";
import { webPlatform } from "./platform.ts";
import { randomBytes, randomUnit } from "./random-source.ts";
import { forbidRealTime } from "./real-time-guard.ts";
import { SeededRandom } from "./seeded-random.ts";
import { TimerHeap } from "./timer-heap.ts";
import { UuidV7Minter } from "./uuid-v7.ts";

/** Midnight UTC, 1 January 2026: the wall clock at the start of every simulation. */
export const SIMULATION_START_MS = 1_767_225_600_000;

/** Options of a run of simulated time. */
export interface DriveOptions {
  /** More steps than this count as a livelock. */
  readonly maxSteps?: number;
}

interface ReadyTask {
  readonly ordinal: number;
  readonly run: () => void;
}

/** A callback taken from its queue, about to run. */
interface Step {
  readonly kind: "task" | "timer";
  readonly ordinal: number;
  readonly run: () => void;
}

const { macrotask: realTask, microtask: realMicrotask } = webPlatform();

/** Makes a host with simulated time and randomness from a seed. */
export function simulatedHost(seed: number): SimulatedHost {
  return new SimulatedHost(seed);
}

/** A host whose time passes only when a test says so. */
export class SimulatedHost implements Host {
  readonly seed: number;

  /** Virtual milliseconds since the start. Only `#take`, `advance` and `elapse` move it, and only forward. */
  #monotonicMs = 0;
  /** Wall clock minus monotonic clock; `stepClock` changes it. */
  #wallOffsetMs = SIMULATION_START_MS;

  /** Ready tasks. The seed picks among them, so their order in the array is arbitrary. */
  readonly #tasks: ReadyTask[] = [];
  #nextTaskOrdinal = 0;
  readonly #timers = new TimerHeap();

  /** Errors of callbacks during the current step; the step rethrows them. */
  #thrown: unknown[] = [];
  #driving = false;

  /** Two streams, so that an additional random number does not change the order of tasks. */
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

  /** Runs one callback; false if there was none. Rejects with an error of the callback or of a microtask after it. */
  step(): Promise<boolean> {
    return this.#drive(() => this.#stepOnce(Number.POSITIVE_INFINITY));
  }

  /**
   * Advances time by `durationMs`, runs all callbacks that become due, and ends exactly then (or later, see `elapse`).
   */
  advance(durationMs: number, options?: DriveOptions): Promise<void> {
    requireDuration(durationMs);
    return this.#drive(async () => {
      const untilMs = this.#monotonicMs + durationMs;
      await this.#repeat(() => this.#stepOnce(untilMs), `advance(${durationMs})`, options);
      this.#monotonicMs = Math.max(this.#monotonicMs, untilMs);
    });
  }

  /** Runs until no task and no keep-alive timer is left, advancing time as needed. */
  runUntilIdle(options?: DriveOptions): Promise<void> {
    return this.#drive(() =>
      this.#repeat(() => (this.idle ? false : this.#stepOnce(Number.POSITIVE_INFINITY)), "runUntilIdle()", options),
    );
  }

  /** Runs `main` inside the simulation until it has finished, and returns its result. */
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
      `No work is left at ${this.#monotonicMs} ms (seed ${this.seed}), and the run has not finished: it waits for an event that no task or timer of this host will bring.`,
    );
  }

  /** The running callback took this long: the clocks advance, and no callback runs until it returns. */
  elapse(durationMs: number): void {
    requireDuration(durationMs);
    this.#monotonicMs += durationMs;
  }

  /** The wall clock jumps in either direction; the monotonic clock and all timers are unaffected. */
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

  /** Adds a text to the trace of the run. */
  note(text: string): void {
    this.#trace.text(text);
  }

  /** Equal for two runs of one seed, unless they used a source outside of this host. */
  traceHash(): string {
    return this.#trace.digest();
  }

  /** True when a real process would end by itself. */
  get idle(): boolean {
    return this.#tasks.length === 0 && this.#timers.keepAliveCount === 0;
  }

  get pendingTasks(): number {
    return this.#tasks.length;
  }

  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Throws if the host is inconsistent. */
  checkInvariants(): void {
    this.#timers.checkInvariants();
    const ordinals = new Set(this.#tasks.map((task) => task.ordinal));
    if (ordinals.size !== this.#tasks.length) throw new Error("Simulated host: a task is queued twice");
    if (!(this.#monotonicMs >= 0)) throw new Error(`Simulated host: monotonic clock at ${this.#monotonicMs}`);
    if (!(this.now() >= 0)) throw new Error(`Simulated host: wall clock at ${this.now()}`);
  }

  /** Prevents concurrent drivers, and lets earlier promise chains finish before the first choice. */
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
        `${what} took more than ${maxSteps} steps (seed ${this.seed}, now at ${this.#monotonicMs} ms, ${this.pendingTasks} tasks and ${this.pendingTimers} timers pending). Some code re-arms itself forever: stop it first, give its timer keepAlive: false, or raise maxSteps.`,
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

  /** Chooses the next callback and removes it from its queue. */
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

  /** An error of a callback is collected until the end of the step. */
  #call(run: () => void): void {
    try {
      asyncContext.clear(run);
    } catch (error) {
      this.#thrown.push(error);
    }
  }

  /** Waits for one real task, before which the runtime empties its microtask queue. */
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

/** The result of `simulate`, and the hash of its trace. */
export interface Simulated<T> {
  readonly value: T;
  readonly traceHash: string;
}

/**
 * One simulated run: a fresh host, with the runtime's own time and randomness forbidden meanwhile. Rejects with the
 * error of `drive`, or with the first forbidden call even if the calling code caught the error. SPEC: H16.
 *
 *     const { value, traceHash } = await simulate(7, (host) => host.run(() => program(host)));
 *
 * `drive` is outside of the simulated program: it calls `step`, `advance`, `runUntilIdle` or `run`.
 */
export async function simulate<T>(seed: number, drive: (host: SimulatedHost) => T | Promise<T>): Promise<Simulated<T>> {
  const host = simulatedHost(seed);
  const guard = forbidRealTime();
  try {
    const value = await drive(host);
    if (guard.violation !== undefined) throw guard.violation;
    return { value, traceHash: host.traceHash() };
  } finally {
    guard.release();
  }
}

const scratch = new Float64Array(1);

const scratchWords = new Uint32Array(scratch.buffer);

/**
 * A running 64-bit hash of the steps of a simulated run, to compare two runs of one seed. SPEC: H12.
 *
 * It detects accidental differences and is not cryptographic.
 */
class TraceHash {
  #left = 0x243f_6a88;
  #right = 0x85a3_08d3;

  number(value: number): void {
    scratch[0] = value;
    this.#word(scratchWords[0]!);
    this.#word(scratchWords[1]!);
  }

  /** The length comes first, so that "a" then "bc" differs from "ab" then "c". */
  text(value: string): void {
    this.#word(value.length);
    for (let index = 0; index < value.length; index++) this.#word(value.charCodeAt(index));
  }

  /** 16 hexadecimal digits. More data may be added afterwards. */
  digest(): string {
    const left = finish(this.#left ^ (this.#right >>> 7));
    const right = finish(this.#right ^ left);
    return left.toString(16).padStart(8, "0") + right.toString(16).padStart(8, "0");
  }

  #word(word: number): void {
    this.#left = Math.imul(rotate(this.#left, 5) ^ word, 0x9e37_79b1);
    this.#right = Math.imul(rotate(this.#right, 13) ^ word ^ this.#left, 0x85eb_ca77);
  }
}

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}

/** Spreads every bit over all 32. */
function finish(word: number): number {
  let mixed = Math.imul(word ^ (word >>> 16), 0x7feb_352d);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846c_a68b);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
