/**
 * The host: the only door to time, chance and the task queue. Everything else in `src/` takes a `Host` and touches no
 * clock, no random source and no timer of the runtime, so that a whole kernel can be replayed from a seed.
 *
 * Two hosts exist: `systemHost()` over the runtime's Web APIs, and `simulatedHost(seed)` over virtual time. SPEC: H2-H11, H20.
 *
 * It deliberately has no interval (re-arm a one-shot timer: an interval piles up behind a slow callback) and no promise
 * that sleeps (a sleep cannot be cancelled; a timer can).
 */

import { RANDOM_BYTES_MAX, TIMER_DELAY_MS_MAX } from "../limits.ts";
import { MillraceError } from "../message/millrace-error.ts";

export interface Host {
  /** Wall clock, whole milliseconds since 1970. It may step either way: use it for timestamps, never for durations. */
  now(): number;

  /** Milliseconds since some start, possibly fractional. It never steps back: use it for durations and deadlines. */
  monotonic(): number;

  /**
   * Calls `fire` once, in its own task, when `delayMs` have passed on the monotonic clock: never earlier. Timers fire
   * in the order of their deadlines, equal deadlines in the order they were set.
   */
  timer(delayMs: number, fire: () => void, options?: TimerOptions): Timer;

  /** Calls `run` in a task of its own. Between two tasks timers and sockets get in. Tasks promise no order. */
  task(run: () => void): void;

  /** Resolves in a task of its own: what a loop awaits to let timers and sockets in, which no settled promise does. */
  yield(): Promise<void>;

  /** Calls `run` after the current callback, before any other task, in the order queued. */
  microtask(run: () => void): void;

  /**
   * The last resort for what went wrong where nobody can be told: a line on the console that begins with `what`; in a simulation the error of
   * a step.
   */
  report(error: unknown, what?: string): void;

  /** A UUIDv7. Each is greater than all before it from this host, whatever the clock does. Give the time where it was just read. */
  id(nowMs?: number): string;

  /** A number in [0, 1). */
  random(): number;

  /** `length` random bytes, 0 to 65,536. */
  randomBytes(length: number): Uint8Array<ArrayBuffer>;
}

export interface TimerOptions {
  /** Whether the process stays alive for this timer. Default true; say false for background polls and renewals. */
  readonly keepAlive?: boolean;
}

export interface Timer {
  /** True if this call kept the timer from firing; false if it had fired or been cancelled before. */
  cancel(): boolean;
}

export type HostErrorCode =
  /** A timer's delay is no number of milliseconds between 0 and 100 years. */
  | "INVALID_DELAY"
  /** A number of random bytes is no whole number between 0 and 65,536. */
  | "INVALID_LENGTH"
  /** A seed is no safe integer. */
  | "INVALID_SEED"
  /** A simulated clock was moved by something that is no number, or to before 1970. */
  | "INVALID_CLOCK"
  /** A simulation was stepped from inside one of its own steps, or by two drivers at once. */
  | "SIMULATION_REENTERED"
  /** A simulation did not become idle within its step limit. */
  | "SIMULATION_OVERRUN"
  /** A simulation has nothing left to do, and what it was run for has not finished. */
  | "SIMULATION_STUCK"
  /** Code under simulation reached for the runtime's own clock, timers or random source. */
  | "REAL_TIME_IN_SIMULATION";

/** Misuse of a host. The message says what to do instead. */
export class HostError extends MillraceError<HostErrorCode> {
  override readonly name = "HostError";
}

export function requireDelay(delayMs: number): void {
  // Written so that NaN fails it too.
  if (typeof delayMs === "number" && delayMs >= 0 && delayMs <= TIMER_DELAY_MS_MAX) return;
  throw new HostError(
    "INVALID_DELAY",
    `A timer's delay must be 0 to ${TIMER_DELAY_MS_MAX} ms (100 years), not ${String(delayMs)}. For a moment that is already past, use 0.`,
  );
}

export function requireLength(length: number): void {
  if (Number.isInteger(length) && length >= 0 && length <= RANDOM_BYTES_MAX) return;
  throw new HostError(
    "INVALID_LENGTH",
    `Ask for a whole number of random bytes from 0 to ${RANDOM_BYTES_MAX}, not ${String(length)}.`,
  );
}
