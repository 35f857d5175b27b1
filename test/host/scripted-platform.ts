/** A runtime with a clock that a test moves by hand: it replaces the platform below `systemHost`. */

import type { Platform, Timeout } from "../../src/host/platform.ts";
import { TIMER_CHUNK_MS } from "../../src/limits.ts";

interface PendingTimeout {
  readonly atMs: number;
  readonly wake: () => void;
  keepsAlive: boolean;
}

export class ScriptedPlatform implements Platform {
  wall = 1_700_000_000_000;
  monotonic = 1_000;
  /** How much too early every timeout calls, as real runtimes do by rounding. */
  earlyMs = 0;
  /** The delays that were asked for, in order. */
  readonly requestedDelays: number[] = [];
  readonly timeouts = new Set<PendingTimeout>();
  readonly tasks: Array<() => void> = [];
  readonly complaints: unknown[] = [];
  #words = 0;

  wallMs(): number {
    return this.wall;
  }

  monotonicMs(): number {
    return this.monotonic;
  }

  startTimeout(delayMs: number, wake: () => void): Timeout {
    if (!(delayMs >= 0 && delayMs <= TIMER_CHUNK_MS)) throw new Error(`A runtime would call at once for ${delayMs} ms`);
    this.requestedDelays.push(delayMs);
    const timeout = { atMs: this.monotonic + delayMs, wake, keepsAlive: true };
    this.timeouts.add(timeout);
    return {
      stop: () => void this.timeouts.delete(timeout),
      keepAlive: (on) => {
        timeout.keepsAlive = on;
      },
    };
  }

  complain(_what: string, error: unknown): void {
    this.complaints.push(error);
  }

  macrotask(run: () => void): void {
    this.tasks.push(run);
  }

  microtask(run: () => void): void {
    queueMicrotask(run);
  }

  /** Counts instead of drawing: tests of ids look at the parts without randomness. */
  fillRandom(words: Uint32Array<ArrayBuffer>): void {
    for (let index = 0; index < words.length; index++) words[index] = this.#words++;
  }

  get staysAlive(): boolean {
    return this.tasks.length > 0 || [...this.timeouts].some((timeout) => timeout.keepsAlive);
  }

  /** Runs the next task, or else moves time to the next timeout and calls it. False if there is neither. */
  turn(): boolean {
    const task = this.tasks.shift();
    if (task !== undefined) {
      task();
      return true;
    }
    const [next] = [...this.timeouts].sort((one, other) => one.atMs - other.atMs);
    if (next === undefined) return false;
    this.timeouts.delete(next);
    this.monotonic = Math.max(this.monotonic, next.atMs - this.earlyMs);
    next.wake();
    return true;
  }

  turnUntilIdle(): void {
    for (let turns = 0; this.turn(); turns++) {
      if (turns > 10_000) throw new Error("The runtime was never left idle");
    }
  }
}
