/**
 * Waiting for a while before something is tried again. It cannot be cancelled, so it is for short waits that nobody needs to end; who
 * may have to stop waiting sets a timer.
 */
import type { Host, TimerOptions } from "./host.ts";

/** Resolves in a task of its own when so many milliseconds have passed. */
export function pause(host: Pick<Host, "timer">, ms: number, options?: TimerOptions): Promise<void> {
  return new Promise((resolve) => {
    host.timer(ms, resolve, options);
  });
}
