/**
 * The real host, with a wall clock that stands still until a test moves it, either way. Timers and tasks are real, so
 * that backends with real files run on it; durations and ids do not notice.
 */
import type { Host, Timer, TimerOptions } from "../../src/host/host.ts";
import { systemHost } from "../../src/host/system-host.ts";

/** Midnight UTC, 1 January 2026. */
export const START_MS = 1_767_225_600_000;

export class ControlledHost implements Host {
  readonly #real = systemHost();
  /** Errors reported to the host. */
  readonly reported: unknown[] = [];
  #nowMs = START_MS;

  now(): number {
    return this.#nowMs;
  }

  /** Moves the wall clock; a negative number steps it back. */
  stepClock(deltaMs: number): void {
    this.#nowMs += deltaMs;
  }

  monotonic(): number {
    return this.#real.monotonic();
  }

  timer(delayMs: number, fire: () => void, options?: TimerOptions): Timer {
    return this.#real.timer(delayMs, fire, options);
  }

  task(run: () => void): void {
    this.#real.task(run);
  }

  yield(): Promise<void> {
    return this.#real.yield();
  }

  microtask(run: () => void): void {
    this.#real.microtask(run);
  }

  report(error: unknown): void {
    this.reported.push(error);
  }

  id(): string {
    return this.#real.id();
  }

  random(): number {
    return this.#real.random();
  }

  randomBytes(length: number): Uint8Array<ArrayBuffer> {
    return this.#real.randomBytes(length);
  }
}
