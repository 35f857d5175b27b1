/** Upkeep that takes several jobs, each of bounded length: `upkeep.ts` runs one such work at a time. */
import type { Space } from "./space-table.ts";

export interface SlicedWork {
  /** Of the document that it is about. */
  readonly row: number;
  readonly isDone: boolean;
  /** Does one slice; answers the bytes that it read and wrote. */
  advance(space: Space): number;
}
