/**
 * A document as described by its row: its base, its last change, and the parts that are not written yet.
 */
import { DOCUMENT_BYTES_MAX, SNAPSHOT_SLICE_BYTES } from "../../limits.ts";
import type { DocumentRef } from "../document.ts";
import type { Row } from "./connection.ts";
import type { SpaceRow } from "./space-table.ts";

export interface StoredDocument extends DocumentRef {
  /** 0 while it is absent. */
  row: number;
  readonly space: number;
  /** Sequence of the last commit that changed it; 0 if it is only referenced. */
  sequence: number;
  /** Whether it has a value: not a tombstone and not only referenced. */
  present: boolean;
  baseSequence: number;
  baseBytes: number;
  /** Bytes of the patches after the base. */
  patchBytes: number;
  /** The location of the base: a patch among the changes, a text in the document's row, or a snapshot. */
  baseIn: "changes" | "row" | "snapshot";
  /** A base in the row that is not written yet. */
  baseText: string | undefined;
  /** For an unwritten receipt that can expire: the creation time of its message. */
  madeAtMs: number | null;
  /** The session of every change after `soleSince` that this process has seen; undefined before the first. */
  soleSession: number | undefined;
  soleSince: number;
  /**
   * - `absent`: looked up and not found;
   * - `new`: not in the table before the batch ends;
   * - `moved`, `rebased`: its row must be written before the batch ends, without or with its base;
   * - `written`: its row is up to date.
   */
  state: "absent" | "new" | "moved" | "rebased" | "written";
}

/** Columns of a document's row, as `documentOf` reads them. */
export const DOCUMENT_COLUMNS =
  "id, scope, name, sequence, base_sequence, base_bytes, patch_bytes, snapshot_sequence, present, base_sum IS NULL AS is_elsewhere";

/** Below this size, patches are always cheaper than a snapshot. */
const PATCH_BYTES_MIN = 4_096;
/** Minimum of patch bytes before a snapshot of a document near its size limit. */
const ROOM_BYTES_MIN = DOCUMENT_BYTES_MAX / 16;

/** The limit is lower for a large document: its patches must be measured before they fill the remaining room. */
export function isOvergrown({ patchBytes, baseBytes }: StoredDocument): boolean {
  const room = Math.max((DOCUMENT_BYTES_MAX - baseBytes) / 2, ROOM_BYTES_MIN);
  return patchBytes > Math.max(PATCH_BYTES_MIN, Math.min(baseBytes, room));
}

/** Whether a snapshot of it is made in slices. */
export function isLarge({ patchBytes, baseBytes }: StoredDocument): boolean {
  return patchBytes + baseBytes > SNAPSHOT_SLICE_BYTES;
}

/** A load needs the changes after this sequence. */
export function lastBefore({ baseIn, baseSequence }: StoredDocument): number {
  return baseIn === "changes" ? baseSequence - 1 : baseSequence;
}

export function absentDocument(space: SpaceRow, { scope, id }: DocumentRef): StoredDocument {
  return {
    row: 0,
    space: space.id,
    scope,
    id,
    sequence: 0,
    present: false,
    baseSequence: 0,
    baseBytes: 0,
    patchBytes: 0,
    baseIn: "changes",
    baseText: undefined,
    madeAtMs: null,
    soleSession: undefined,
    soleSince: 0,
    state: "absent",
  };
}

export function documentOf(space: SpaceRow, row: Row): StoredDocument {
  return {
    row: Number(row["id"]),
    space: space.id,
    scope: String(row["scope"]),
    id: String(row["name"]),
    sequence: Number(row["sequence"]),
    present: row["present"] === 1,
    baseSequence: Number(row["base_sequence"]),
    baseBytes: Number(row["base_bytes"]),
    patchBytes: Number(row["patch_bytes"]),
    baseIn: row["is_elsewhere"] === 0 ? "row" : row["snapshot_sequence"] === 0 ? "changes" : "snapshot",
    baseText: undefined,
    madeAtMs: null,
    soleSession: undefined,
    soleSince: 0,
    state: "written",
  };
}
