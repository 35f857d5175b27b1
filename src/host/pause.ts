/**
 * Waits before a retry. It cannot be cancelled, so it is only for short waits; otherwise use a timer.
 */
import type { Host, TimerOptions } from "./host.ts";

/** Resolves in its own task after this many milliseconds. */
export function pause(host: Pick<Host, "timer">, ms: number, options?: TimerOptions): Promise<void> {
  return new Promise((resolve) => {
    host.timer(ms, resolve, options);
  });
}
