/**
 * One of several processes in a simulation: a separate host that shares virtual time and seed with the others, and can
 * be killed, paused and given a wrong clock. SPEC: H18.
 *
 *     running --pause--> paused --resume--> running        running or paused --kill--> killed, for good
 *
 * A paused process was stopped by the system or by a long garbage collection: callbacks that became due run when it
 * resumes. A killed one runs no further callback. A promise chain in progress continues until it next waits for the
 * host.
 */

import { type Host, HostError, requireDelay, type Timer, type TimerOptions } from "./host.ts";
import { randomBytes, randomUnit } from "./random-source.ts";
import { SeededRandom } from "./seeded-random.ts";
import type { SimulatedHost } from "./simulated-host.ts";
import { UuidV7Minter } from "./uuid-v7.ts";

export type ProcessStatus = "running" | "paused" | "killed";

interface ProcessTimer {
  readonly fire: () => void;
  readonly options: TimerOptions | undefined;
  /** Its timer in the simulation; undefined after it fired. */
  armed: Timer | undefined;
}

/** Makes a process of a simulated world. */
export function simulatedProcess(world: SimulatedHost): SimulatedProcess {
  return new SimulatedProcess(world);
}

/** A process of a simulated world, which can be paused and killed. */
export class SimulatedProcess implements Host {
  readonly #world: SimulatedHost;
  readonly #chance: SeededRandom;
  readonly #ids: UuidV7Minter;
  #status: ProcessStatus = "running";
  /** This process's wall clock minus that of the simulation. */
  #skewMs = 0;

  /** Timers that have neither fired nor been cancelled. */
  readonly #timers = new Set<ProcessTimer>();
  /** Timers that became due during a pause, in order. Some may have been cancelled since. */
  #dueTimers: ProcessTimer[] = [];
  /** Tasks and microtasks reached during a pause. */
  #heldTasks: Array<() => void> = [];

  constructor(world: SimulatedHost) {
    this.#world = world;
    this.#chance = new SeededRandom(world.seed, 3 + Math.floor(world.random() * 0x4000_0000));
    this.#ids = new UuidV7Minter(() => this.now(), this.#chance);
  }

  get status(): ProcessStatus {
    return this.#status;
  }

  now(): number {
    return Math.max(0, this.#world.now() + this.#skewMs);
  }

  monotonic(): number {
    return this.#world.monotonic();
  }

  timer(delayMs: number, fire: () => void, options?: TimerOptions): Timer {
    requireDelay(delayMs);
    const timer: ProcessTimer = { fire, options, armed: undefined };
    if (this.#status !== "killed") {
      this.#timers.add(timer);
      this.#arm(timer, delayMs);
    }
    return { cancel: () => this.#cancel(timer) };
  }

  task(run: () => void): void {
    if (this.#status !== "killed") this.#world.task(() => this.#enter(run));
  }

  yield(): Promise<void> {
    return new Promise((resolve) => this.task(resolve));
  }

  microtask(run: () => void): void {
    this.#world.microtask(() => this.#enter(run));
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

  /** Only this process's wall clock jumps. */
  stepClock(deltaMs: number): void {
    if (!Number.isFinite(deltaMs)) {
      throw new HostError("INVALID_CLOCK", `A wall clock can step by a finite number of ms, not by ${deltaMs}.`);
    }
    this.#skewMs += Math.trunc(deltaMs);
    this.#world.note(`process clock ${deltaMs}`);
  }

  pause(): void {
    if (this.#status === "running") this.#become("paused");
  }

  resume(): void {
    if (this.#status !== "paused") return;
    this.#become("running");
    const tasks = this.#heldTasks;
    const timers = this.#dueTimers;
    this.#heldTasks = [];
    this.#dueTimers = [];
    for (const run of tasks) this.task(run);
    // Armed again in the order they became due; equal deadlines keep it.
    for (const timer of timers) if (this.#timers.has(timer)) this.#arm(timer, 0);
  }

  kill(): void {
    if (this.#status === "killed") return;
    this.#become("killed");
    for (const timer of this.#timers) timer.armed?.cancel();
    this.#timers.clear();
    this.#heldTasks = [];
    this.#dueTimers = [];
  }

  #become(status: ProcessStatus): void {
    this.#status = status;
    this.#world.note(`process ${status}`);
  }

  #enter(run: () => void): void {
    if (this.#status === "running") run();
    else if (this.#status === "paused") this.#heldTasks.push(run);
  }

  #arm(timer: ProcessTimer, delayMs: number): void {
    timer.armed = this.#world.timer(delayMs, () => this.#expire(timer), timer.options);
  }

  #expire(timer: ProcessTimer): void {
    if (this.#status === "paused") {
      this.#dueTimers.push(timer);
      return;
    }
    this.#timers.delete(timer);
    timer.fire();
  }

  #cancel(timer: ProcessTimer): boolean {
    if (!this.#timers.delete(timer)) return false;
    timer.armed?.cancel();
    return true;
  }
}
