/**
 * The host: the only source of time, randomness and tasks. All other code in `src/` takes a `Host` and uses no clock,
 * random source or timer of the runtime, so that a whole kernel can be replayed from a seed.
 *
 * There are two hosts: `systemHost()` over the runtime's Web APIs, and `simulatedHost(seed)` over virtual time. SPEC:
 * H2-H11, H20.
 *
 * It has no interval (an interval piles up behind a slow callback; re-arm a timer instead) and no sleeping promise (a
 * sleep cannot be cancelled; a timer can).
 */

import { RANDOM_BYTES_MAX, TIMER_DELAY_MS_MAX } from "../limits.ts";
import { MillraceError } from "../message/millrace-error.ts";

/** The only source of time, randomness and tasks; a simulated one makes a run a function of its seed. */
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

  /** Calls `run` in its own task. Timers and sockets run between two tasks. The order of tasks is not guaranteed. */
  task(run: () => void): void;

  /** Resolves in its own task. A loop awaits it to let timers and sockets run; a settled promise would not. */
  yield(): Promise<void>;

  /** Calls `run` after the current callback, before any other task, in the order queued. */
  microtask(run: () => void): void;

  /**
   * The last resort for errors that no caller receives: a line on the console that begins with `what`; in a simulation
   * the error of a step.
   */
  report(error: unknown, what?: string): void;

  /**
   * A UUIDv7. Each is greater than all earlier ones of this host, even if the clock steps back. Pass the time if just
   * read.
   */
  id(nowMs?: number): string;

  /** A number in [0, 1). */
  random(): number;

  /** `length` random bytes, 0 to 65,536. */
  randomBytes(length: number): Uint8Array<ArrayBuffer>;
}

/** Options of `host.timer`. */
export interface TimerOptions {
  /** Whether the process stays alive for this timer. Default true; use false for background polls and renewals. */
  readonly keepAlive?: boolean;
}

/** A timer that has not fired yet. */
export interface Timer {
  /** True if this call cancelled the timer; false if it had fired or been cancelled before. */
  cancel(): boolean;
}

/** The codes of `HostError`. */
export type HostErrorCode =
  /** A timer's delay is not a number of milliseconds between 0 and 100 years. */
  | "INVALID_DELAY"
  /** A number of random bytes is not a whole number between 0 and 65,536. */
  | "INVALID_LENGTH"
  /** A seed is not a safe integer. */
  | "INVALID_SEED"
  /** A simulated clock was moved by a value that is not a number, or to before 1970. */
  | "INVALID_CLOCK"
  /** A simulation was stepped from inside one of its own steps, or by two drivers at once. */
  | "SIMULATION_REENTERED"
  /** A simulation did not become idle within its step limit. */
  | "SIMULATION_OVERRUN"
  /** A simulation has no task or timer left, and its main function has not finished. */
  | "SIMULATION_STUCK"
  /** Simulated code used the runtime's own clock, timers or random source. */
  | "REAL_TIME_IN_SIMULATION";

/** Misuse of a host. The message has the remedy. */
export class HostError extends MillraceError<HostErrorCode> {
  override readonly name = "HostError";
}

export function requireDelay(delayMs: number): void {
  // This form also rejects NaN.
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
