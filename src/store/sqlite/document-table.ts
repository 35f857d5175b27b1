/**
 * Documents as logs of patches: where each begins and ends. The patches are in `change-table.ts`. SPEC: S2, S3, S14,
 * S17.
 *
 * The value of a document is its _base_ plus the patches after it. The base is a snapshot, or a patch that begins by
 * setting or removing the whole document. A write appends a patch and evaluates no value. When the patches outgrow the
 * base, the document is due for a snapshot (`compact`). Older patches stay only as long as the feed needs them.
 *
 * A small base is also stored in the document's row. Most documents are small and written whole (a receipt only once),
 * so they need no patches that the feed has passed.
 */
import type { Json } from "../../message/json.ts";
import type { Path } from "../../message/path.ts";
import type { MembershipClaim } from "../commit.ts";
import type { DocumentHead } from "../commit-rules.ts";
import type { DocumentRef } from "../document.ts";
import { prefixEnd } from "../document-list.ts";
import { PatchError } from "../patch.ts";
import type { PathOperation } from "../path-operation.ts";
import { type ListRequest, StoreError } from "../store.ts";
import { ROW_BASE_BYTES_MAX } from "./change-block.ts";
import { ChangeTable, type Patch } from "./change-table.ts";
import { checksum } from "./checksum.ts";
import type { Row, SqliteConnection } from "./connection.ts";
import { damaged } from "./damage.ts";
import { DocumentMemory, RecentPatches } from "./document-memory.ts";
import { type LeftBase, PARTS_REMOVED_MAX } from "./sliced-work.ts";
import { applyPart } from "./snapshot-part.ts";
import { SnapshotTable } from "./snapshot-table.ts";
import type { SpaceRow } from "./space-table.ts";
import {
  absentDocument,
  DOCUMENT_COLUMNS,
  documentOf,
  isLarge,
  isOvergrown,
  lastBefore,
  type StoredDocument,
} from "./stored-document.ts";
import type { TableCache } from "./table-cache.ts";

/** A patch with its operations as text, encoded before the transaction. */
export interface EncodedPatch extends DocumentRef {
  readonly text: string;
  readonly bytes: number;
  /** Whether it begins by setting or removing the whole document. */
  readonly isBase: boolean;
  /** Whether the document has a value afterwards; undefined if unchanged. */
  readonly leaves: boolean | undefined;
  /** Whether it creates a small document that must be absent. */
  readonly isBirth: boolean;
  /** For a receipt that can expire: the creation time of its message. */
  readonly madeAtMs: number | null;
}

/** A document row inserted for the current commit, which may still be refused. */
interface Birth {
  readonly row: number;
  readonly patch: EncodedPatch;
}

export interface Overgrown {
  readonly space: string;
  readonly row: number;
  readonly ref: DocumentRef;
  readonly isLarge: boolean;
  /** Bytes of base and patches. */
  readonly bytes: number;
}

export class DocumentTable implements TableCache {
  readonly changes: ChangeTable;
  readonly snapshots: SnapshotTable;
  readonly #connection: SqliteConnection;
  readonly #memory = new DocumentMemory();
  readonly #recent = new RecentPatches();
  /** Documents whose rows must be written before the batch ends. */
  readonly #moved = new Set<StoredDocument>();
  /** Documents created by the current commit, with their patches. */
  readonly #born: Birth[] = [];
  /** The greatest row, assigned or in the table; undefined if it must be read. */
  #lastRow: number | undefined;
  /** Documents whose patches have outgrown their base, by row. */
  readonly #overgrown = new Map<number, Overgrown>();
  /** Replaced bases of large documents. */
  readonly #left: LeftBase[] = [];
  readonly #sql;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.changes = new ChangeTable(connection);
    this.snapshots = new SnapshotTable(connection);
    this.#sql = statements(connection);
  }

  head(space: SpaceRow, ref: DocumentRef): DocumentHead | undefined {
    const document = this.find(space, ref);
    return document && document.sequence > 0 ? document : undefined;
  }

  find(space: SpaceRow, ref: DocumentRef): StoredDocument | undefined {
    const document = this.#lookUp(space, ref);
    return document.state === "absent" ? undefined : document;
  }

  /** Scopes and ids of documents, by their rows. */
  refsOf(rows: Iterable<number>): ReadonlyMap<number, DocumentRef> {
    const refs = new Map<number, DocumentRef>();
    for (const { id, scope, name } of this.#sql.names.all(JSON.stringify([...rows]))) {
      refs.set(Number(id), { scope: String(scope), id: String(name) });
    }
    return refs;
  }

  /** The row of a document, created if its name is new. */
  rowOf(space: SpaceRow, ref: DocumentRef): number {
    return this.#birthOf(ref)?.row ?? this.#make(space, ref, null).row;
  }

  /**
   * The head of a document that must be absent and that the current commit creates with this patch. If it is not
   * cached, inserting its row also tests for its absence: one statement instead of two.
   */
  headOrBirth(space: SpaceRow, patch: EncodedPatch): DocumentHead | undefined {
    if (this.#birthOf(patch)) return undefined;
    if (this.#memory.get(space.id, patch)) return this.head(space, patch);
    const row = this.#nextRow();
    if (this.#insertBorn(space, row, patch) === 0) {
      this.#lastRow = row - 1;
      return this.head(space, patch);
    }
    this.#born.push({ row, patch });
    return undefined;
  }

  /**
   * Ends the current commit: if it is not committed, the rows it created are removed. They are not cached, because
   * their rows are complete and receipts are rarely read again.
   */
  endBirths(isCommitted: boolean): void {
    if (this.#born.length === 0) return;
    if (!isCommitted) for (const { row } of this.#born) this.#sql.remove.run(row);
    this.#born.length = 0;
  }

  /** Adds a patch of the space's newest commit. A document created by it needs only a line in the changes. */
  write(space: SpaceRow, patch: EncodedPatch, session: number): void {
    const birth = patch.isBirth ? this.#birthOf(patch) : undefined;
    if (birth === undefined) this.#append(space, this.#make(space, patch, patch.madeAtMs), patch, session);
    else {
      const { text, leaves } = patch;
      this.changes.add(space.id, { document: birth.row, previous: 0, turns: leaves === true, text }, false);
    }
    this.#connection.work.bytesWritten += patch.bytes;
  }

  #append(space: SpaceRow, document: StoredDocument, patch: EncodedPatch, session: number): void {
    const { text, bytes } = patch;
    const { sequence } = space;
    const isInRow = fitsRow(patch);
    const present = patch.leaves ?? document.present;
    const turns = present !== document.present;
    this.changes.add(space.id, { document: document.row, previous: document.sequence, turns, text }, !isInRow);
    document.present = present;
    if (patch.isBase) this.#leaveBase(space, document, document.sequence, 0);
    if (session !== document.soleSession) {
      document.soleSession = session;
      document.soleSince = document.sequence;
    }
    document.sequence = sequence;
    if (patch.isBase) {
      document.baseSequence = sequence;
      document.baseBytes = bytes;
      document.patchBytes = 0;
      document.baseIn = isInRow ? "row" : "changes";
      document.baseText = isInRow ? text : undefined;
      this.#recent.drop(document);
    } else {
      document.patchBytes += bytes;
      this.#recent.add(document, text);
      if (isOvergrown(document)) this.#noteOvergrown(space, document);
    }
    this.#touch(document, patch.isBase ? "rebased" : "moved");
  }

  /** Whether a commit after the sequence created or removed a document of the set. */
  membersChanged(space: SpaceRow, { scope, prefix, sequence }: MembershipClaim): boolean {
    if (sequence >= space.sequence) return false;
    const turned = this.changes.turnedAfter(space.id, sequence);
    if (turned.size === 0) return false;
    // `refsOf` reads names from the table.
    this.#writeMoved();
    for (const ref of this.refsOf(turned).values()) if (ref.scope === scope && ref.id.startsWith(prefix)) return true;
    return false;
  }

  /** Upper bound of the text size of a document with a patch: base and patch, and the patches between. */
  bytesWith(space: SpaceRow | undefined, patch: EncodedPatch): { measured: number; patches: number } {
    const document = patch.isBase || space === undefined ? undefined : this.find(space, patch);
    if (document === undefined) return { measured: patch.bytes, patches: 0 };
    return { measured: document.baseBytes + patch.bytes, patches: document.patchBytes };
  }

  /** A document was refused for its size, counting patches that a snapshot would absorb. */
  measureSoon(space: SpaceRow, ref: DocumentRef): void {
    const document = this.find(space, ref);
    if (document && document.patchBytes > 0) this.#noteOvergrown(space, document);
  }

  #noteOvergrown(space: SpaceRow, document: StoredDocument): void {
    const { row, baseBytes, patchBytes } = document;
    const bytes = baseBytes + patchBytes;
    this.#overgrown.set(row, { space: space.name, row, ref: document, isLarge: isLarge(document), bytes });
  }

  /** A page of documents with a value. */
  list(space: SpaceRow, { scope, prefix, after, limit }: ListRequest): { row: number; id: string; sequence: number }[] {
    // In SQLite a blob sorts after every text.
    const end = prefixEnd(prefix) ?? NO_TEXT;
    const rows =
      after === undefined
        ? this.#sql.list.all(space.id, scope, prefix, end, limit)
        : this.#sql.listAfter.all(space.id, scope, prefix, end, limit, after);
    return rows.map(({ id, name, sequence }) => ({ row: Number(id), id: String(name), sequence: Number(sequence) }));
  }

  /** The paths that other sessions wrote after the sequence. */
  writtenSince(document: StoredDocument, sequence: number, exceptSession: number): Path[] {
    // Common case: stacked commits of one session need no scan.
    if (exceptSession === document.soleSession && sequence >= document.soleSince) return [];
    const paths: Path[] = [];
    for (const { session, operations } of this.changes.after(document, sequence)) {
      if (session !== exceptSession) for (const operation of operations) paths.push(operation.path);
    }
    return paths;
  }

  value(document: StoredDocument): Json | undefined {
    const patches = this.#recent.of(document) ?? this.#patchesOf(document);
    try {
      return patches.reduce<Json | undefined>(applyPart, this.baseOf(document));
    } catch (error) {
      if (!(error instanceof PatchError)) throw error;
      throw damaged(`document row ${document.row}: ${error.message}`);
    }
  }

  /** Documents that are due for a snapshot, once each. */
  takeOvergrown(): Overgrown[] {
    const documents = [...this.#overgrown.values()];
    this.#overgrown.clear();
    return documents;
  }

  /** Replaced bases that are too large to remove at once. */
  takeLeft(): LeftBase[] {
    return this.#left.splice(0);
  }

  /** The sequence of the current snapshot of the document; 0 if its base is not a snapshot. */
  snapshotInForce(space: SpaceRow, ref: DocumentRef): number {
    const document = this.find(space, ref);
    return document?.baseIn === "snapshot" ? document.baseSequence : 0;
  }

  /** Writes a snapshot of a small document if it is still due for one, and drops the patches that become obsolete. */
  compact(space: SpaceRow, ref: DocumentRef): void {
    const document = this.find(space, ref);
    if (!document || !isOvergrown(document)) return;
    const value = this.value(document);
    if (value === undefined) return;
    const text = JSON.stringify([{ op: "set", path: [], value }]);
    const { row, sequence, patchBytes } = document;
    this.snapshots.put({ row, sequence }, 0, text, true);
    this.rebase(space, document, { sequence, bytes: Buffer.byteLength(text), patchBytes });
  }

  /** The document, if it is due for a sliced snapshot. */
  dueForSnapshot(space: SpaceRow, ref: DocumentRef): StoredDocument | undefined {
    const document = this.find(space, ref);
    return document && document.patchBytes > 0 ? document : undefined;
  }

  /** Makes a snapshot at a sequence the base; `patchBytes` is the size of the patches that it includes. */
  rebase(
    space: SpaceRow,
    document: StoredDocument,
    snapshot: { sequence: number; bytes: number; patchBytes: number },
  ): void {
    const { sequence, bytes, patchBytes } = snapshot;
    this.#leaveBase(space, document, sequence, sequence);
    document.baseSequence = sequence;
    document.baseBytes = bytes;
    document.patchBytes -= patchBytes;
    document.baseIn = "snapshot";
    document.baseText = undefined;
    if (sequence === document.sequence) this.#recent.begin(document);
    else this.#recent.drop(document);
    this.#touch(document, "rebased");
    this.#connection.work.bytesWritten += bytes;
  }

  /** Drops the patches of commits up to a sequence that the feed leaves behind, except those needed by loads. */
  dropChanges(space: SpaceRow, upTo: number): void {
    // The decision reads rows of documents, which a commit of the same batch may have changed.
    this.#writeMoved();
    this.changes.dropUnneeded(space.id, space.floor, upTo);
  }

  /** Removes a document without a trace; the feed must have passed all its changes. */
  erase(space: SpaceRow, ref: DocumentRef): void {
    const document = this.find(space, ref);
    if (!document) return;
    this.#leaveBase(space, document, document.sequence, 0);
    this.#recent.drop(document);
    this.#moved.delete(document);
    this.#memory.delete(document);
    this.#sql.remove.run(document.row);
  }

  flush(): void {
    this.changes.flush();
    this.#writeMoved();
    this.trim();
  }

  forget(): void {
    this.changes.forget();
    this.#memory.clear();
    this.#recent.clear();
    this.#moved.clear();
    this.#born.length = 0;
    this.#left.length = 0;
    this.#lastRow = undefined;
    this.#overgrown.clear();
  }

  /** Bounds the cache. Only between transactions: inside one, a document must be one object. */
  trim(): void {
    if (this.#memory.trim()) this.#recent.clear();
  }

  #lookUp(space: SpaceRow, ref: DocumentRef): StoredDocument {
    const known = this.#memory.get(space.id, ref);
    if (known) return known;
    const row = this.#sql.document.get(space.id, ref.scope, ref.id);
    return this.#memory.add(row ? documentOf(space, row) : absentDocument(space, ref));
  }

  #birthOf({ scope, id }: DocumentRef): Birth | undefined {
    for (const birth of this.#born) if (birth.patch.id === id && birth.patch.scope === scope) return birth;
    return undefined;
  }

  /** Creates the document if it is absent. Its row is written at the end of the batch. */
  #make(space: SpaceRow, ref: DocumentRef, madeAtMs: number | null): StoredDocument {
    const document = this.#lookUp(space, ref);
    if (document.state === "absent") {
      document.row = this.#nextRow();
      document.madeAtMs = madeAtMs;
      document.state = "new";
      this.#moved.add(document);
    }
    // Its name was stored before it had a value, by a node that read it or by a label.
    else if (document.sequence === 0) document.madeAtMs = madeAtMs;
    return document;
  }

  #nextRow(): number {
    this.#lastRow = (this.#lastRow ?? Number(this.#sql.lastRow.get()?.["last"] ?? 0)) + 1;
    return this.#lastRow;
  }

  #writeMoved(): void {
    for (const document of this.#moved) {
      const { row, sequence, baseSequence, baseBytes, patchBytes } = document;
      if (document.state === "new") this.#insert(document);
      else if (document.state === "moved") this.#sql.writeHead.run(sequence, patchBytes, Number(document.present), row);
      else {
        const [snapshotSequence, base, sum] = this.#baseColumns(document);
        const madeAt = document.madeAtMs;
        this.#sql.writeBase.run(
          sequence,
          patchBytes,
          baseSequence,
          baseBytes,
          snapshotSequence,
          base,
          sum,
          Number(document.present),
          madeAt,
          row,
        );
      }
      document.state = "written";
      document.baseText = undefined;
    }
    this.#moved.clear();
  }

  #insert(document: StoredDocument): void {
    const { row, space, scope, id, sequence, baseSequence, baseBytes, patchBytes } = document;
    const [snapshotSequence, base, sum] = this.#baseColumns(document);
    const head = [sequence, patchBytes, baseSequence, baseBytes, snapshotSequence, base, sum] as const;
    this.#sql.insert.run(row, space, scope, id, ...head, Number(document.present), document.madeAtMs);
  }

  /** The number of inserted rows: 0 if the name is taken. */
  #insertBorn(space: SpaceRow, row: number, { scope, id, text, bytes, leaves, madeAtMs }: EncodedPatch): number {
    const sequence = space.sequence + 1;
    this.#connection.work.bytesWritten += bytes;
    const sum = checksum(text, row, sequence);
    const present = leaves === true ? 1 : 0;
    return this.#sql.insert.run(
      row,
      space.id,
      scope,
      id,
      sequence,
      0,
      sequence,
      bytes,
      0,
      text,
      sum,
      present,
      madeAtMs,
    );
  }

  #baseColumns(document: StoredDocument): [snapshotSequence: number, base: string | null, sum: number | null] {
    const { baseText, baseSequence, row } = document;
    if (baseText === undefined) return [document.baseIn === "snapshot" ? baseSequence : 0, null, null];
    this.#connection.work.bytesWritten += document.baseBytes;
    return [0, baseText, checksum(baseText, row, baseSequence)];
  }

  /**
   * Replaces the base for patches up to a sequence: drops the old snapshot, and patches that were kept only for loads.
   * `snapshotSequence` is that of the new snapshot, 0 if there is none.
   */
  #leaveBase(space: SpaceRow, document: StoredDocument, upTo: number, snapshotSequence: number): void {
    const { row, baseSequence, baseIn } = document;
    const hasKept = baseSequence > 0 && baseSequence <= space.floor;
    if (isLarge(document) && (hasKept || baseIn === "snapshot")) {
      const left = { space: document.space, row, sequence: upTo };
      const ref = { scope: document.scope, id: document.id };
      this.#left.push({ document: left, ref, space: space.name, after: hasKept ? lastBefore(document) : upTo });
      return;
    }
    if (hasKept) {
      for (const { sequence } of this.#soundChanges(document))
        if (sequence <= space.floor) this.changes.drop(document, sequence, space.floor);
    }
    if (baseIn === "snapshot") this.snapshots.removeOthers({ row, sequence: snapshotSequence }, PARTS_REMOVED_MAX);
  }

  /** Empty if a change is damaged: a damaged document can still be replaced, and `verify` reports the remains. */
  #soundChanges(document: StoredDocument): readonly Patch[] {
    try {
      return this.changes.after(document, lastBefore(document));
    } catch (error) {
      if (error instanceof StoreError && error.code === "STORE_CORRUPT") return [];
      throw error;
    }
  }

  #touch(document: StoredDocument, as: "moved" | "rebased"): void {
    if (document.state === "written") {
      document.state = as;
      this.#moved.add(document);
    } else if (document.state === "moved") {
      document.state = as;
    }
  }

  /** The patches that a load needs, oldest first. */
  #patchesOf(document: StoredDocument): readonly (readonly PathOperation[])[] {
    return this.changes.after(document, lastBefore(document)).map(({ operations }) => operations);
  }

  /** The value of the base; undefined if the base is the first of the patches. */
  baseOf({ row, baseIn, baseText, baseSequence }: StoredDocument): Json | undefined {
    switch (baseIn) {
      case "changes":
        return undefined;
      case "row":
        return applyPart(
          undefined,
          JSON.parse(baseText ?? this.#soundText(this.#sql.base.get(row), row, baseSequence)),
        );
      case "snapshot":
        return this.snapshots.value({ row, sequence: baseSequence });
    }
  }

  #soundText(found: Row | undefined, row: number, sequence: number): string {
    const text = String(found?.["text"]);
    if (!found || checksum(text, row, sequence) !== found["sum"]) {
      throw damaged(`document row ${row}, sequence ${sequence}`);
    }
    return text;
  }
}

const NO_TEXT = new Uint8Array();

/** Whether it is a base that is stored in the document's row. */
function fitsRow({ isBase, bytes }: EncodedPatch): boolean {
  return isBase && bytes <= ROW_BASE_BYTES_MAX;
}

const LISTED = "space = ?1 AND scope = ?2 AND present = 1";

function statements(connection: SqliteConnection) {
  const prepare = (sql: string) => connection.prepare(sql);
  return {
    document: prepare(`SELECT ${DOCUMENT_COLUMNS} FROM document WHERE space = ? AND scope = ? AND name = ?`),
    insert: prepare(
      "INSERT INTO document (id, space, scope, name, sequence, patch_bytes, base_sequence, base_bytes, snapshot_sequence, base, base_sum, " +
        "present, made_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (space, scope, name) DO NOTHING",
    ),
    list: prepare(
      `SELECT id, name, sequence FROM document WHERE ${LISTED} AND name >= ?3 AND name < ?4 ORDER BY name LIMIT ?5 + 0`,
    ),
    listAfter: prepare(
      `SELECT id, name, sequence FROM document WHERE ${LISTED} AND +name >= ?3 AND name < ?4 AND name > ?6 ORDER BY name LIMIT ?5 + 0`,
    ),
    names: prepare(
      "SELECT document.id AS id, scope, name FROM json_each(?) AS one CROSS JOIN document ON document.id = one.value",
    ),
    remove: prepare("DELETE FROM document WHERE id = ?"),
    lastRow: prepare("SELECT max(id) AS last FROM document"),
    writeHead: prepare("UPDATE document SET sequence = ?, patch_bytes = ?, present = ? WHERE id = ?"),
    writeBase: prepare(
      "UPDATE document SET sequence = ?, patch_bytes = ?, base_sequence = ?, base_bytes = ?, snapshot_sequence = ?, " +
        "base = ?, base_sum = ?, present = ?, made_at = coalesce(?, made_at) WHERE id = ?",
    ),
    base: prepare("SELECT base AS text, base_sum AS sum FROM document WHERE id = ?"),
  };
}
