/**
 * Documents as logs of patches: where each begins and ends; the patches themselves are in `change-table.ts`. SPEC: S2, S3, S14, S17.
 *
 * A document's value is what its _base_ gives plus the patches after it. The base is a snapshot, or a patch that begins by
 * setting or removing the whole document. So writing appends a patch and evaluates nothing; when the patches outgrow the base,
 * the document is due for a snapshot (`compact`). Patches at or before the base are kept only as long as the feed needs them.
 */
import type { Json } from "../../message/json.ts";
import type { Path } from "../../message/path.ts";
import type { DocumentHead } from "../commit-rules.ts";
import type { DocumentRef } from "../document.ts";
import { applyOperation, type Own } from "../patch.ts";
import { ChangeTable, damaged } from "./change-table.ts";
import { checksum } from "./checksum.ts";
import type { Connection, Row } from "./connection.ts";
import type { Space } from "./space-table.ts";
import type { TableCache } from "./table-cache.ts";

export interface Document extends DocumentRef {
  /** 0 while it is absent. */
  row: number;
  readonly space: number;
  /** Of the last commit that changed it; 0 when it was only named so far. */
  sequence: number;
  baseSequence: number;
  baseBytes: number;
  /** Of the patches after the base. */
  patchBytes: number;
  /** 0 when it has none; otherwise it is the base. */
  snapshotSequence: number;
  /** The session of every change after `soleSince`, as far as this process has seen them; undefined before it has. */
  soleSession: number | undefined;
  soleSince: number;
  /** `absent`: looked for and not there. `new`: not in the table before the batch ends. */
  state: "absent" | "new" | "moved" | "written";
}

/** A patch with its operations as text, made before the transaction. */
export interface EncodedPatch extends DocumentRef {
  readonly text: string;
  readonly bytes: number;
  /** Whether it begins by setting or removing the whole document. */
  readonly isBase: boolean;
}

export interface Overgrown {
  readonly space: string;
  readonly ref: DocumentRef;
}

/** Below this, patches are cheaper than a snapshot whatever the size of the document. */
const PATCH_BYTES_MIN = 4_096;
const DOCUMENTS_REMEMBERED_MAX = 50_000;

export class DocumentTable implements TableCache {
  readonly changes: ChangeTable;
  readonly #connection: Connection;
  /** By space row, scope and id: three look-ups of texts that are there are cheaper than making one text of them. */
  readonly #documents = new Map<number, Map<string, Map<string, Document>>>();
  /** How many are in the map. */
  #remembered = 0;
  /** New and moved documents: what is to be written before the batch ends. */
  readonly #moved = new Set<Document>();
  /** The greatest row, given or in the table; undefined when it has to be looked up. */
  #lastRow: number | undefined;
  /** Documents whose patches have outgrown their base, by row. */
  readonly #overgrown = new Map<number, Overgrown>();
  readonly #sql;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.changes = new ChangeTable(connection);
    this.#sql = statements(connection);
  }

  head(space: Space, ref: DocumentRef): DocumentHead | undefined {
    const document = this.find(space, ref);
    return document && document.sequence > 0 ? document : undefined;
  }

  find(space: Space, ref: DocumentRef): Document | undefined {
    const document = this.#lookUp(space, ref);
    return document.state === "absent" ? undefined : document;
  }

  /** The document, whose name need not have been seen before. Its row is written with everything else of the batch. */
  make(space: Space, ref: DocumentRef): Document {
    const document = this.#lookUp(space, ref);
    if (document.state === "absent") {
      this.#lastRow ??= Number(this.#sql.lastRow.get()?.["last"] ?? 0);
      document.row = ++this.#lastRow;
      document.state = "new";
      this.#moved.add(document);
    }
    return document;
  }

  /** Adds the patch of the space's newest commit. */
  append(space: Space, document: Document, patch: EncodedPatch, session: number): void {
    const { text, bytes } = patch;
    const { sequence } = space;
    this.changes.append(document, sequence, session, text);
    if (patch.isBase) this.#leaveBase(space, document);
    if (session !== document.soleSession) {
      document.soleSession = session;
      document.soleSince = document.sequence;
    }
    document.sequence = sequence;
    if (patch.isBase) {
      document.baseSequence = sequence;
      document.baseBytes = bytes;
      document.patchBytes = 0;
    } else {
      document.patchBytes += bytes;
      if (isOvergrown(document)) this.#overgrown.set(document.row, { space: space.name, ref: document });
    }
    this.#touch(document);
    this.#connection.work.bytesWritten += bytes;
  }

  /** The paths that others wrote after the sequence. */
  writtenSince(document: Document, sequence: number, exceptSession: number): Path[] {
    // Commits of one session stacked on each other, the usual case, need not be looked through by each of them.
    if (exceptSession === document.soleSession && sequence >= document.soleSince) return [];
    const paths: Path[] = [];
    for (const { session, operations } of this.changes.after(document, sequence)) {
      if (session !== exceptSession) for (const operation of operations) paths.push(operation.path);
    }
    return paths;
  }

  value(document: Document): Json | undefined {
    const { row, snapshotSequence } = document;
    let value = snapshotSequence > 0 ? this.#snapshot(row, snapshotSequence) : undefined;
    for (const { operations } of this.changes.after(document, lastBefore(document))) {
      for (const operation of operations) value = applyOperation(value, operation, inPlace).root;
    }
    return value;
  }

  /** Documents that are due for a snapshot, once each. */
  takeOvergrown(): Overgrown[] {
    const documents = [...this.#overgrown.values()];
    this.#overgrown.clear();
    return documents;
  }

  /** Writes a snapshot if the document still is due for one, and drops what the snapshot makes superfluous. */
  compact(space: Space, ref: DocumentRef): void {
    const document = this.find(space, ref);
    if (!document || !isOvergrown(document)) return;
    const value = this.value(document);
    if (value === undefined) return;
    const text = JSON.stringify(value);
    this.#leaveBase(space, document);
    this.#sql.putSnapshot.run(document.row, text, snapshotSum(text, document.row, document.sequence));
    document.baseSequence = document.sequence;
    document.snapshotSequence = document.sequence;
    document.baseBytes = Buffer.byteLength(text);
    document.patchBytes = 0;
    this.#touch(document);
    this.#connection.work.bytesWritten += document.baseBytes;
  }

  /** Drops the patches of commits up to a sequence that the feed leaves behind, but for those that loading still needs. */
  dropChanges(space: Space, upTo: number): void {
    // The statement looks at rows of documents, which a commit of the same batch may have moved.
    this.#writeMoved();
    this.changes.dropUnneeded(space.id, space.floor, upTo);
  }

  flush(): void {
    this.#writeMoved();
    this.trim();
  }

  forget(): void {
    this.#documents.clear();
    this.#remembered = 0;
    this.#moved.clear();
    this.#lastRow = undefined;
    this.#overgrown.clear();
  }

  /** Bounds what is remembered. Only between transactions: inside one, a document must be one object. */
  trim(): void {
    if (this.#remembered <= DOCUMENTS_REMEMBERED_MAX) return;
    this.#documents.clear();
    this.#remembered = 0;
  }

  #lookUp(space: Space, ref: DocumentRef): Document {
    const known = this.#documents.get(space.id)?.get(ref.scope)?.get(ref.id);
    if (known) return known;
    const row = this.#sql.document.get(space.id, ref.scope, ref.id);
    return this.#remember(row ? documentOf(space, row) : absentDocument(space, ref));
  }

  #writeMoved(): void {
    for (const document of this.#moved) {
      const { row, space, scope, id, sequence, baseSequence, baseBytes, patchBytes, snapshotSequence } = document;
      const heads = [sequence, baseSequence, baseBytes, patchBytes, snapshotSequence] as const;
      if (document.state === "new") this.#sql.makeDocument.run(row, space, scope, id, ...heads);
      else this.#sql.writeDocument.run(...heads, row);
      document.state = "written";
    }
    this.#moved.clear();
  }

  /** Another base takes over: drops the snapshot, and the changes since that only loading has kept from being dropped. */
  #leaveBase(space: Space, document: Document): void {
    if (document.baseSequence > 0 && document.baseSequence <= space.floor) {
      for (const { sequence } of this.changes.after(document, lastBefore(document))) {
        if (sequence <= space.floor) this.changes.drop(document, sequence);
      }
    }
    if (document.snapshotSequence > 0) this.#sql.dropSnapshot.run(document.row);
    document.snapshotSequence = 0;
  }

  #touch(document: Document): void {
    if (document.state !== "written") return;
    document.state = "moved";
    this.#moved.add(document);
  }

  #snapshot(row: number, sequence: number): Json {
    const found = this.#sql.snapshot.get(row);
    const text = String(found?.["value"]);
    if (!found || snapshotSum(text, row, sequence) !== found["sum"]) throw damaged(row, sequence);
    return JSON.parse(text);
  }

  #remember(document: Document): Document {
    const ofSpace = this.#documents.get(document.space) ?? new Map<string, Map<string, Document>>();
    const ofScope = ofSpace.get(document.scope) ?? new Map<string, Document>();
    this.#documents.set(document.space, ofSpace.set(document.scope, ofScope.set(document.id, document)));
    this.#remembered++;
    return document;
  }
}

/** What was parsed just now is nobody else's: copying a wide document for each of its patches took a millisecond each. */
const inPlace: Own = (container) => container;

function isOvergrown({ patchBytes, baseBytes }: Document): boolean {
  return patchBytes > Math.max(PATCH_BYTES_MIN, baseBytes);
}

/** The sequence after which the changes lie that make the document of its base. */
function lastBefore({ snapshotSequence, baseSequence }: Document): number {
  return snapshotSequence > 0 ? snapshotSequence : baseSequence - 1;
}

function snapshotSum(text: string, document: number, sequence: number): number {
  return checksum(text, { document, sequence, previous: 0 });
}

function absentDocument(space: Space, { scope, id }: DocumentRef): Document {
  return {
    row: 0,
    space: space.id,
    scope,
    id,
    sequence: 0,
    baseSequence: 0,
    baseBytes: 0,
    patchBytes: 0,
    snapshotSequence: 0,
    soleSession: undefined,
    soleSince: 0,
    state: "absent",
  };
}

function documentOf(space: Space, row: Row): Document {
  return {
    space: space.id,
    row: Number(row["id"]),
    scope: String(row["scope"]),
    id: String(row["name"]),
    sequence: Number(row["sequence"]),
    baseSequence: Number(row["base_sequence"]),
    baseBytes: Number(row["base_bytes"]),
    patchBytes: Number(row["patch_bytes"]),
    snapshotSequence: Number(row["snapshot_sequence"]),
    soleSession: undefined,
    soleSince: 0,
    state: "written",
  };
}

function statements(connection: Connection) {
  const prepare = (sql: string) => connection.prepare(sql);
  const columns = "id, scope, name, sequence, base_sequence, base_bytes, patch_bytes, snapshot_sequence";
  return {
    document: prepare(`SELECT ${columns} FROM document WHERE space = ? AND scope = ? AND name = ?`),
    makeDocument: prepare(
      "INSERT INTO document (id, space, scope, name, sequence, base_sequence, base_bytes, patch_bytes, snapshot_sequence) " +
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    lastRow: prepare("SELECT max(id) AS last FROM document"),
    writeDocument: prepare(
      "UPDATE document SET sequence = ?, base_sequence = ?, base_bytes = ?, patch_bytes = ?, snapshot_sequence = ? WHERE id = ?",
    ),
    snapshot: prepare("SELECT value, sum FROM snapshot WHERE document = ?"),
    putSnapshot: prepare("REPLACE INTO snapshot (document, value, sum) VALUES (?, ?, ?)"),
    dropSnapshot: prepare("DELETE FROM snapshot WHERE document = ?"),
  };
}
