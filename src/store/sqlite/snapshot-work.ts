/**
 * A snapshot of a large document in slices: each is a job of the writer and reads or writes at most about
 * `SNAPSHOT_SLICE_BYTES`, so that other writes continue in between. SPEC: S127, S128.
 *
 *   collect ──> base ──> apply ──> sweep ──> write ──> done
 *   patches,    parts    patches   parts     parts
 *   newest      of the   oldest    left      of the
 *   first       base     first     over      value
 *
 * The document is unchanged until the last part is written; then its row names the new base. Patches that arrive
 * meanwhile stay patches. If the document gets another base, the work stops and removes its parts. It also stops after
 * a rollback and when the store closes; then the next snapshot removes the parts.
 */
import { SNAPSHOT_SLICE_BYTES } from "../../limits.ts";
import type { Json } from "../../message/json.ts";
import type { DocumentRef } from "../document.ts";
import type { PathOperation } from "../path-operation.ts";
import { StoreError } from "../store.ts";
import type { DocumentTable } from "./document-table.ts";
import type { LeftBase, SlicedWork } from "./sliced-work.ts";
import { PARTS_REMOVED_MAX, PATCH_LOOK_BYTES } from "./sliced-work.ts";
import { applyPart, PartWriter } from "./snapshot-part.ts";
import type { SpaceRow } from "./space-table.ts";
import { lastBefore, type StoredDocument } from "./stored-document.ts";

type Phase = "collect" | "base" | "apply" | "sweep" | "write" | "done";

export class SnapshotWork implements SlicedWork {
  readonly ref: DocumentRef;
  #phase: Phase = "collect";
  readonly #documents: DocumentTable;
  /** The document's row and base when the work began. */
  readonly #row: number;
  readonly #base: Pick<StoredDocument, "baseIn" | "baseSequence">;
  /** The snapshot contains the document after this commit. */
  readonly #sequence: number;
  readonly #patchBytes: number;
  /** The next patch to collect. */
  #at: number;
  /** Texts of patches, newest first. */
  readonly #patches: string[] = [];
  #basePart = 0;
  #value: Json | undefined;
  #writer: PartWriter | undefined;
  #part = 0;
  #bytes = 0;

  constructor(documents: DocumentTable, document: StoredDocument) {
    const { row, scope, id, baseIn, baseSequence, sequence, patchBytes } = document;
    this.ref = { scope, id };
    this.#documents = documents;
    this.#row = row;
    this.#base = { baseIn, baseSequence };
    this.#sequence = sequence;
    this.#patchBytes = patchBytes;
    this.#at = sequence;
  }

  get row(): number {
    return this.#row;
  }

  get isDone(): boolean {
    return this.#phase === "done";
  }

  /** One slice; returns the bytes that it read and wrote. */
  advance(space: SpaceRow): number {
    const document = this.#documents.find(space, this.ref);
    if (document === undefined || !this.#isCurrent(document)) return this.#giveUp(space);
    switch (this.#phase) {
      case "collect":
        return this.#collect(document);
      case "base":
        return this.#readBase(document);
      case "apply":
        return this.#apply();
      case "write":
        return this.#write(space, document);
      case "sweep":
        return this.#sweep();
      case "done":
        return 0;
    }
  }

  /** Removes the parts that were written before the document got another base. */
  #giveUp(space: SpaceRow): number {
    const inForce = { row: this.#row, sequence: this.#documents.snapshotInForce(space, this.ref) };
    if (this.#part > 0 && this.#documents.snapshots.removeOthers(inForce, PARTS_REMOVED_MAX))
      return PARTS_REMOVED_MAX * PATCH_LOOK_BYTES;
    this.#phase = "done";
    return 0;
  }

  #isCurrent({ row, baseIn, baseSequence }: StoredDocument): boolean {
    return row === this.#row && baseIn === this.#base.baseIn && baseSequence === this.#base.baseSequence;
  }

  #collect(document: StoredDocument): number {
    const end = lastBefore(document);
    let bytes = 0;
    while (this.#at > end && bytes < SNAPSHOT_SLICE_BYTES) {
      const { text, previous } = this.#documents.changes.patchAt(document, this.#at);
      this.#patches.push(text);
      this.#at = previous;
      bytes += text.length + PATCH_LOOK_BYTES;
    }
    if (this.#at <= end) this.#phase = "base";
    return bytes;
  }

  #readBase(document: StoredDocument): number {
    if (document.baseIn !== "snapshot") {
      this.#value = this.#documents.baseOf(document);
      this.#phase = "apply";
      return document.baseIn === "row" ? document.baseBytes : 0;
    }
    const part = this.#documents.snapshots.part(
      { row: this.#row, sequence: this.#base.baseSequence },
      this.#basePart++,
    );
    this.#value = applyPart(this.#value, part.operations);
    if (part.isLast) this.#phase = "apply";
    return part.bytes;
  }

  /** At least one patch per slice: a large patch was also written in one piece. */
  #apply(): number {
    let bytes = 0;
    while (this.#patches.length > 0 && bytes < SNAPSHOT_SLICE_BYTES) {
      const text = this.#patches.pop() as string;
      this.#value = applyPart(this.#value, JSON.parse(text) as PathOperation[]);
      bytes += text.length;
    }
    if (this.#patches.length > 0) return bytes;
    this.#phase = this.#value === undefined ? "done" : "sweep";
    return bytes;
  }

  /** Removes parts of an unfinished snapshot. */
  #sweep(): number {
    const { baseIn, baseSequence } = this.#base;
    const inForce = { row: this.#row, sequence: baseIn === "snapshot" ? baseSequence : 0 };
    if (this.#documents.snapshots.removeOthers(inForce, PARTS_REMOVED_MAX)) return PARTS_REMOVED_MAX * PATCH_LOOK_BYTES;
    this.#writer = new PartWriter(this.#value as Json, SNAPSHOT_SLICE_BYTES);
    this.#phase = "write";
    return 0;
  }

  #write(space: SpaceRow, document: StoredDocument): number {
    const place = { row: this.#row, sequence: this.#sequence };
    const writer = this.#writer as PartWriter;
    const text = JSON.stringify(writer.next());
    const bytes = Buffer.byteLength(text);
    this.#documents.snapshots.put(place, this.#part++, text, writer.isDone);
    this.#bytes += bytes;
    if (!writer.isDone) return bytes;
    // Another process may have removed parts that it considered left over.
    if (this.#documents.snapshots.count(place) === this.#part)
      this.#documents.rebase(space, document, {
        sequence: this.#sequence,
        bytes: this.#bytes,
        patchBytes: this.#patchBytes,
      });
    this.#phase = "done";
    return bytes;
  }
}

/** Cost of dropping one patch: its block is rewritten. */
const PATCH_DROP_BYTES = 4_096;

/**
 * Removes the remains of a replaced base: parts of its snapshot, and patches that were kept only for loading. Works in
 * slices, because a large document has many of both. If the process ends first, they stay in the file unused.
 */
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

  advance(space: SpaceRow): number {
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

  #dropPatches(space: SpaceRow): number {
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
