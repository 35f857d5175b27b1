/** A document as its row describes it: where it begins, where it ends, and what of it is still to be written. */
import { DOCUMENT_BYTES_MAX, SNAPSHOT_SLICE_BYTES } from "../../limits.ts";
import type { DocumentRef } from "../document.ts";
import type { Row } from "./connection.ts";
import type { Space } from "./space-table.ts";

export interface StoredDocument extends DocumentRef {
  /** 0 while it is absent. */
  row: number;
  readonly space: number;
  /** Of the last commit that changed it; 0 when it was only named so far. */
  sequence: number;
  /** Whether it has a value: it is no tombstone, and not only referenced. */
  present: boolean;
  baseSequence: number;
  baseBytes: number;
  /** Of the patches after the base. */
  patchBytes: number;
  /** Where the base is: a patch of its own among the changes, the text of one in the document's row, or a snapshot. */
  baseIn: "changes" | "row" | "snapshot";
  /** A base in the row that is still to be written there. */
  baseText: string | undefined;
  /** Of a receipt with an end that is still to be written: when what it is of was made. */
  madeAtMs: number | null;
  /** The session of every change after `soleSince`, as far as this process has seen them; undefined before it has. */
  soleSession: number | undefined;
  soleSince: number;
  /**
   * - `absent`: looked for and not there;
   * - `new`: not in the table before the batch ends;
   * - `moved`, `rebased`: its row is to be written before the batch ends, without its base or with it;
   * - `written`: its row says the same.
   */
  state: "absent" | "new" | "moved" | "rebased" | "written";
}

/** Columns of a document's row, as `documentOf` reads them. */
export const DOCUMENT_COLUMNS =
  "id, scope, name, sequence, base_sequence, base_bytes, patch_bytes, snapshot_sequence, present, base_sum IS NULL AS is_elsewhere";

/** Below this, patches are cheaper than a snapshot whatever the size of the document. */
const PATCH_BYTES_MIN = 4_096;
/** A snapshot of a document near its bound costs this many bytes of patches at least. */
const ROOM_BYTES_MIN = DOCUMENT_BYTES_MAX / 16;

/** Less of a large document: its patches may not fill the room that is left to it before they are measured. */
export function isOvergrown({ patchBytes, baseBytes }: StoredDocument): boolean {
  const room = Math.max((DOCUMENT_BYTES_MAX - baseBytes) / 2, ROOM_BYTES_MIN);
  return patchBytes > Math.max(PATCH_BYTES_MIN, Math.min(baseBytes, room));
}

/** Whether a snapshot of it is made in slices. */
export function isLarge({ patchBytes, baseBytes }: StoredDocument): boolean {
  return patchBytes + baseBytes > SNAPSHOT_SLICE_BYTES;
}

/** The sequence after which the changes lie that loading needs. */
export function lastBefore({ baseIn, baseSequence }: StoredDocument): number {
  return baseIn === "changes" ? baseSequence - 1 : baseSequence;
}

export function absentDocument(space: Space, { scope, id }: DocumentRef): StoredDocument {
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

export function documentOf(space: Space, row: Row): StoredDocument {
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
