/**
 * Upkeep in several bounded jobs: `upkeep.ts` runs one such work at a time.
 */

import type { DocumentRef } from "../document.ts";
import type { ChangedDocument } from "./change-table.ts";
import type { SpaceRow } from "./space-table.ts";

export interface SlicedWork {
  /** Row of its document. */
  readonly row: number;
  readonly isDone: boolean;
  /** Does one slice and returns the bytes that it read and wrote. */
  advance(space: SpaceRow): number;
}

/** Cost of finding one patch, in bytes: a block is about a page. */
export const PATCH_LOOK_BYTES = 512;

/** Parts removed per slice: each of their pages is read. */
export const PARTS_REMOVED_MAX = 4;

export interface LeftBase {
  /** The document before the new base, with its newest patch of that time. */
  readonly document: ChangedDocument;
  readonly ref: DocumentRef;
  /** Name of its space. */
  readonly space: string;
  /** Its patches come after this sequence. */
  readonly after: number;
}
