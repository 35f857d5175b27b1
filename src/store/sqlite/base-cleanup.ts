/**
 * Removes the remains of a replaced base: parts of its snapshot, and patches that were kept only for loading. Works in
 * slices, because a large document has many of both. If the process ends first, they stay in the file unused.
 */
import { SNAPSHOT_SLICE_BYTES } from "../../limits.ts";
import { StoreError } from "../store.ts";
import type { DocumentTable } from "./document-table.ts";
import type { LeftBase, SlicedWork } from "./sliced-work.ts";
import { PARTS_REMOVED_MAX, PATCH_LOOK_BYTES } from "./sliced-work.ts";
import type { Space } from "./space-table.ts";

/** Cost of dropping one patch: its block is rewritten. */
const PATCH_DROP_BYTES = 4_096;

export class BaseCleanup implements SlicedWork {
  readonly row: number;
  readonly space: string;
  isDone = false;
  readonly #documents: DocumentTable;
  readonly #left: LeftBase;
  #at: number;

  constructor(documents: DocumentTable, left: LeftBase) {
    this.row = left.document.row;
    this.space = left.space;
    this.#documents = documents;
    this.#left = left;
    this.#at = left.document.sequence;
  }

  advance(space: Space): number {
    // Read for each slice: a commit may have given the document another snapshot meanwhile.
    const inForce = { row: this.row, sequence: this.#documents.snapshotInForce(space, this.#left.ref) };
    if (this.#documents.snapshots.removeOthers(inForce, PARTS_REMOVED_MAX)) return PARTS_REMOVED_MAX * PATCH_LOOK_BYTES;
    try {
      return this.#dropPatches(space);
    } catch (error) {
      // A damaged block stays for `verify` to find.
      if (!(error instanceof StoreError && error.code === "STORE_CORRUPT")) throw error;
      this.isDone = true;
      return 0;
    }
  }

  #dropPatches(space: Space): number {
    const { document, after } = this.#left;
    let bytes = 0;
    while (this.#at > after && bytes < SNAPSHOT_SLICE_BYTES) {
      const at = this.#at;
      this.#at = this.#documents.changes.patchAt(document, at).previous;
      bytes += PATCH_LOOK_BYTES;
      if (at > space.floor) continue;
      this.#documents.changes.drop(document, at, space.floor);
      bytes += PATCH_DROP_BYTES;
    }
    this.isDone = this.#at <= after;
    return bytes;
  }
}
