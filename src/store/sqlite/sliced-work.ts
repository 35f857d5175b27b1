/**
 * Upkeep in several bounded jobs: `upkeep.ts` runs one such work at a time.
 */
import type { Space } from "./space-table.ts";

export interface SlicedWork {
  /** Row of its document. */
  readonly row: number;
  readonly isDone: boolean;
  /** Does one slice and returns the bytes that it read and wrote. */
  advance(space: Space): number;
}
