/**
 * Waits that grow by a factor with each failure in a row, up to a bound. `jittered` draws a wait between half of it and
 * the whole, so that callers which failed together do not come back together.
 */
import type { Host } from "./host.ts";

export interface BackoffGrowth {
  /** The wait after the first failure. */
  readonly startMs: number;
  /** 2 unless given. */
  readonly factor?: number;
  readonly maxMs: number;
}

/** The wait after so many failures, counted from 1. */
export function backoffMs(failures: number, { startMs, factor = 2, maxMs }: BackoffGrowth): number {
  // The power may be infinite, and 0 times infinity is no number.
  return startMs === 0 ? 0 : Math.min(startMs * factor ** (failures - 1), maxMs);
}

export function jittered(waitMs: number, host: Pick<Host, "random">): number {
  return waitMs * (0.5 + host.random() / 2);
}
