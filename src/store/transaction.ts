/**
 * One unit of work on a replica. Reads are logged with their depth, own writes are visible to own reads, and writes are
 * buffered until `commit` applies them at once. A transaction may live across awaits; if its reads change meanwhile,
 * its commit is stale. SPEC: S40, S43-S45, S56.
 *
 * Every patch must fit the document in the backend, so a write also logs reads: the container exists (`reach`), a
 * removed value exists, the length of an array before an append. Values written by the transaction itself are not
 * logged.
 */
import { isCleanText, type Json } from "../message/json.ts";
import { arrayIndex, type Path, placeText } from "../message/path.ts";
import { admit, handOut, notAdmitted } from "./admit.ts";
import type { Commit, LabelWrite, NodeBasis, Precondition } from "./commit.ts";
import { type DocumentRef, SHARED_SCOPE } from "./document.ts";
import { Draft } from "./draft.ts";
import type { DueChange } from "./due.ts";
import type { JournalEntry, Settlement } from "./journal.ts";
import { type Container, childAt, isRange } from "./patch.ts";
import type { ReadDepth } from "./path-operation.ts";
import { movesElements, ownPath, type PathOperation } from "./path-operation.ts";
import { ReadLog } from "./read-log.ts";
import type { Receipt } from "./receipt.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import { NONE, withOne } from "./small-list.ts";
import type { SqlStatement } from "./sql-statement.ts";
import { StoreError } from "./store.ts";

/** Options of `replica.transaction`. */
export interface TransactionOptions {
  /** The node that runs it; included in the notification so that the node does not wake itself. */
  readonly source?: object;
  /** Included in the notification, for subscribers that filter their own edits. */
  readonly changeGroup?: string;
}

/** Optional parts of a commit besides reads and writes. */
export interface CommitExtras {
  preconditions: Precondition[];
  entries: JournalEntry[];
  settlements: Settlement[];
  due: DueChange[];
  basis: NodeBasis[];
  basisRemoved: string[];
  labels: LabelWrite[];
  statements: SqlStatement[];
}

/** The reads and writes of a transaction in one document. */
export interface DocumentPart {
  readonly document: ReplicaDocument;
  readonly log: ReadLog;
  draft: Draft | undefined;
}

/** Snapshot of the writes of a transaction. */
export interface TransactionMark {
  readonly operations: readonly (readonly PathOperation[] | undefined)[];
  readonly extras: CommitExtras | undefined;
}

/** The operations that a transaction needs from its replica. */
export interface TransactionHome {
  /** The document; starts its load if it is not in memory. */
  touch(ref: DocumentRef): ReplicaDocument;
  /** The document in its current state; for a write that replaces it whole. */
  place(ref: DocumentRef): ReplicaDocument;
  /** The document if it is in memory. */
  find(ref: DocumentRef): ReplicaDocument | undefined;
  /** Counts the changes applied to the replica. */
  readonly tick: number;
  commit(transaction: Transaction): Commit;
  abandon(transaction: Transaction): void;
}

/** Reads and writes of a replica that are committed together. */
export class Transaction {
  readonly options: TransactionOptions;
  /** Documents in order of first use; each stays in memory until the transaction ends. */
  parts: readonly DocumentPart[] = NONE;
  state: "open" | "committed" | "aborted" = "open";
  /** Created on first use: most transactions have only reads and writes. */
  extras: CommitExtras | undefined;
  /** The receipt written with the commit. */
  receipt: Receipt | undefined;
  readonly #home: TransactionHome;
  /** Created once there are many parts. */
  #index: Map<DocumentRef, DocumentPart> | undefined;

  constructor(home: TransactionHome, options: TransactionOptions) {
    this.#home = home;
    this.options = options;
  }

  /** The frozen value at the path; undefined if it does not exist or the document is still loading. */
  read(ref: DocumentRef, path: Path = [], depth: "deep" | "shallow" = "deep"): Json | undefined {
    const part = this.#reading(ref, path, depth);
    return handOut(this.#peek(part, path));
  }

  /** Logs a read without reading the value. */
  claim(ref: DocumentRef, path: Path, depth: "deep" | "shallow"): void {
    this.#reading(ref, path, depth);
  }

  /** Depends on a set of documents, as returned by `Replica.list`. */
  claimMembers(scope: string, prefix: string, sequence: number): void {
    this.preconditions.push({ kind: "members", scope, prefix, sequence });
  }

  /** Whether the transaction has written the whole document. */
  puts(document: DocumentRef): boolean {
    return this.#known(document)?.draft?.covers([]) ?? false;
  }

  /** The document object of the replica. */
  document(ref: DocumentRef): ReplicaDocument {
    return this.#place(ref);
  }

  /**
   * The value as the transaction sees it, without logging a read: used to follow links. It is not frozen, because
   * freezing would make the next write copy every container on its path. Do not keep it.
   */
  glance(ref: DocumentRef, path: Path): Json | undefined {
    return this.#peek(this.#part(this.#home.touch(ref)), path);
  }

  /** Writes a value. Its parent must exist; the empty path creates or replaces the document. */
  write(ref: DocumentRef, path: Path, value: unknown): void {
    const part = path.length === 0 ? this.#partOf(ref) : this.#writingInto(ref, path, "write");
    let admitted: Json;
    try {
      admitted = admit(value, this.#peek(part, path), path.length);
    } catch (error) {
      throw notAdmitted(error, show(ref, path));
    }
    this.#draft(part).write({ op: "set", path: ownPath(path), value: admitted }, this.#home.tick);
  }

  /**
   * Removes a key of an object, or the document if the path is empty (a tombstone stays). A missing value is not an
   * error.
   */
  remove(ref: DocumentRef, path: Path): void {
    if (path.length > 0) this.#writingInto(ref, path, "remove");
    // Log its presence or absence: another session may create or remove it meanwhile.
    const part = this.#reading(ref, path, "reach");
    if (this.#peek(part, path) === undefined) return;
    this.#draft(part).write({ op: "delete", path: ownPath(path) }, this.#home.tick);
  }

  /** Replaces `remove` elements of the array at the path from `index` on. */
  splice(ref: DocumentRef, path: Path, index: number, remove: number, insert: readonly unknown[]): void {
    const part = this.#reading(ref, path, "shallow");
    const array = this.#peek(part, path);
    if (!Array.isArray(array)) throw misuse(`cannot splice ${show(ref, path)}: there is no array`);
    if (!isRange(index, remove, array.length)) {
      throw misuse(`cannot splice ${show(ref, path)} at ${index} over ${remove}: it has ${array.length} elements`);
    }
    if (movesElements(array, index, remove, insert)) this.#reading(ref, path, "deep");
    const admitItem = (item: unknown, i: number) => {
      try {
        return admit(item, i < remove ? array[index + i] : undefined, path.length + 1);
      } catch (error) {
        throw notAdmitted(error, show(ref, [...path, String(index + i)]));
      }
    };
    // `Array.from` visits holes, which `map` would skip; `admit` then refuses them.
    const items = Array.from(insert, admitItem);
    this.#draft(part).write({ op: "splice", path: ownPath(path), index, remove, insert: items }, this.#home.tick);
  }

  get preconditions(): Precondition[] {
    return this.#list("preconditions");
  }

  get entries(): JournalEntry[] {
    return this.#list("entries");
  }

  get hasEntries(): boolean {
    return this.extras !== undefined && this.extras.entries.length > 0;
  }

  get settlements(): Settlement[] {
    return this.#list("settlements");
  }

  get due(): DueChange[] {
    return this.#list("due");
  }

  get basis(): NodeBasis[] {
    return this.#list("basis");
  }

  get basisRemoved(): string[] {
    return this.#list("basisRemoved");
  }

  get labels(): LabelWrite[] {
    return this.#list("labels");
  }

  get statements(): SqlStatement[] {
    return this.#list("statements");
  }

  /** Snapshot of the writes so far, for `backTo`. */
  mark(): TransactionMark {
    const { parts, extras } = this;
    return { operations: parts.map(({ draft }) => draft?.operations.slice()), extras: extras && copyOf(extras) };
  }

  /** Discards the writes made since the snapshot. The reads stay logged. */
  backTo({ operations, extras }: TransactionMark): void {
    this.parts.forEach((part, at) => {
      const before = operations[at];
      if (before === undefined) part.draft = undefined;
      else part.draft?.backTo(before);
    });
    this.extras = extras;
  }

  /** Adds a receipt: a document that must be absent and is not kept in memory. At most one per transaction. */
  leave(receipt: Receipt): void {
    this.#requireOpen();
    this.receipt = receipt;
  }

  /** Applies all writes to the replica now; `outcome` has the backend's answer. */
  commit(): Commit {
    this.#requireOpen();
    if (this.receipt !== undefined && this.#home.find(this.receipt) !== undefined) this.#write(this.receipt);
    this.state = "committed";
    return this.#home.commit(this);
  }

  /**
   * Discards all writes and commits only the reads. If they validate and the receipt is absent, the handler's throw
   * counts as a failure. Otherwise the handler runs again, or was done before.
   */
  commitReads(...conditions: readonly Precondition[]): Commit {
    for (const part of this.parts) part.draft = undefined;
    const members = this.extras?.preconditions.filter(({ kind }) => kind === "members") ?? NONE;
    this.extras = undefined;
    this.receipt = undefined;
    this.preconditions.push(...members, ...conditions);
    return this.commit();
  }

  /** Discards the transaction. No effect if it has ended. */
  abort(): void {
    if (this.state !== "open") return;
    this.state = "aborted";
    this.#home.abandon(this);
  }

  [Symbol.dispose](): void {
    this.abort();
  }

  /** The receipt's document is in memory here: write it normally, so that its observers are notified. */
  #write(receipt: Receipt): void {
    const { kind, scope, id, madeAtMs, value } = receipt;
    this.preconditions.push({ kind, scope, id, madeAtMs });
    this.write(receipt, [], value);
    this.receipt = undefined;
  }

  #peek(part: DocumentPart, path: Path): Json | undefined {
    return part.draft ? part.draft.read(path, this.#home.tick) : part.document.read(path);
  }

  #draft(part: DocumentPart): Draft {
    part.draft ??= new Draft(part.document);
    return part.draft;
  }

  #extras(): CommitExtras {
    this.#requireOpen();
    this.extras ??= noExtras();
    return this.extras;
  }

  /** Creates the list on first use. */
  #list<Name extends keyof CommitExtras>(name: Name): CommitExtras[Name] {
    const extras = this.#extras();
    if (extras[name] === NOTHING) extras[name] = [];
    return extras[name];
  }

  #place(ref: DocumentRef): ReplicaDocument {
    this.#requireOpen();
    return this.#home.place(ref);
  }

  #partOf(ref: DocumentRef): DocumentPart {
    this.#requireOpen();
    // A known document is held by its part, so no lookup is needed.
    return this.#known(ref) ?? this.#part(this.#home.place(ref));
  }

  #part(document: ReplicaDocument): DocumentPart {
    const known = this.#known(document);
    if (known) return known;
    const part = { document, log: new ReadLog(), draft: undefined };
    document.observers++;
    this.parts = withOne(this.parts, part);
    this.#index?.set(document, part);
    return part;
  }

  #known(document: DocumentRef): DocumentPart | undefined {
    if (this.parts.length <= LISTED_PARTS_MAX) {
      for (const part of this.parts) if (part.document === document) return part;
      return undefined;
    }
    this.#index ??= new Map(this.parts.map((part) => [part.document, part]));
    return this.#index.get(document);
  }

  /** Logs a read unless the transaction has written the value itself, and returns the part. */
  #reading(ref: DocumentRef, path: Path, depth: ReadDepth): DocumentPart {
    const part = this.#partOf(ref);
    if (part.draft?.covers(path)) return part;
    if (part.document.state === "absent") this.#home.touch(ref);
    part.log.add(part.document, path, depth, this.#seenAt(part));
    return part;
  }

  #seenAt(part: DocumentPart): number {
    const { tick } = this.#home;
    return part.draft ? part.draft.seenAt(tick) : tick;
  }

  /** Checks that the path can be written, and logs that its container exists. */
  #writingInto(ref: DocumentRef, path: Path, verb: "write" | "remove"): DocumentPart {
    const parentPath = path.slice(0, -1);
    const key = path[path.length - 1] as string;
    const part = this.#reading(ref, parentPath, "reach");
    const { draft, document } = part;
    const parent = draft ? draft.container(parentPath, this.#home.tick) : document.read(parentPath);
    if (typeof parent !== "object" || parent === null) {
      const where = show(ref, parentPath);
      throw misuse(`cannot ${verb} ${show(ref, path)}: there is no container at ${where}; write that first`);
    }
    if (Array.isArray(parent)) {
      if (verb === "remove") throw misuse(`cannot remove ${show(ref, path)}: it is an array element; use splice`);
      const index = arrayIndex(key) ?? Number.POSITIVE_INFINITY;
      // An append depends on the length.
      if (index >= parent.length) this.#reading(ref, parentPath, "shallow");
      if (index > parent.length) {
        throw misuse(`cannot write ${show(ref, path)}: the array takes the indexes 0 to ${parent.length}`);
      }
    } else if (childAt(parent as Container, key) === undefined && !isCleanText(key)) {
      throw misuse(`cannot ${verb} in ${show(ref, parentPath)}: a key must not contain NUL or a lone surrogate`);
    }
    return part;
  }

  #requireOpen(): void {
    if (this.state !== "open") throw misuse(`the transaction is ${this.state}; begin another`);
  }
}

/** Up to this many documents of a transaction are scanned linearly. */
const LISTED_PARTS_MAX = 8;

/** Placeholder for a list that was not created yet. */
const NOTHING: never[] = [];

function noExtras(): CommitExtras {
  return {
    preconditions: NOTHING,
    entries: NOTHING,
    settlements: NOTHING,
    due: NOTHING,
    basis: NOTHING,
    basisRemoved: NOTHING,
    labels: NOTHING,
    statements: NOTHING,
  };
}

function copyOf(extras: CommitExtras): CommitExtras {
  return {
    preconditions: [...extras.preconditions],
    entries: [...extras.entries],
    settlements: [...extras.settlements],
    due: [...extras.due],
    basis: [...extras.basis],
    basisRemoved: [...extras.basisRemoved],
    labels: [...extras.labels],
    statements: [...extras.statements],
  };
}

function show(ref: DocumentRef, path: Path): string {
  return placeText(ref.scope === SHARED_SCOPE ? ref.id : `${ref.scope}:${ref.id}`, path);
}

function misuse(message: string): StoreError {
  return new StoreError("STORE_MISUSE", message);
}
