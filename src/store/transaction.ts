/**
 * One unit of work on a replica. Reads are logged with their depth, own reads see own writes, writes are buffered until
 * `commit` applies them all at once. Lives until it is committed or aborted, across awaits if need be; what it read may
 * move meanwhile, and then its commit is stale.
 */
import type { Json } from "../message/json.ts";
import { arrayIndex, type Path } from "../message/path.ts";
import { admit, handOut } from "./admit.ts";
import type { CommitIdentity, CommitOutcome, LabelWrite, NodeBasis, Precondition, ReadDepth } from "./commit.ts";
import type { DocumentRef } from "./document.ts";
import { Draft } from "./draft.ts";
import type { DueChange } from "./due.ts";
import type { JournalEntry, Settlement } from "./journal.ts";
import { ReadLog } from "./read-log.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import { StoreError } from "./store.ts";

export interface TransactionOptions {
  /** Who runs it (a node); rides on the notification so that it does not wake itself. */
  readonly source?: object;
  /** Rides on the notification, for subscribers that filter their own edits. */
  readonly changeGroup?: string;
}

/** A commit that was applied to the replica; `outcome` says later whether it lasted. */
export interface Commit extends CommitIdentity {
  readonly outcome: Promise<CommitOutcome>;
}

/** What a transaction needs of its replica. */
export interface TransactionHome {
  /** The document, after asking for its load if it is not here. */
  touch(ref: DocumentRef): ReplicaDocument;
  /** The document as far as it is known, for whoever replaces it whole. */
  place(ref: DocumentRef): ReplicaDocument;
  /** Counts what was applied to the replica. */
  readonly tick: number;
  commit(transaction: Transaction): Commit;
  abandon(transaction: Transaction): void;
}

export class Transaction {
  readonly options: TransactionOptions;
  readonly reads = new ReadLog();
  readonly drafts = new Map<ReplicaDocument, Draft>();
  readonly preconditions: Precondition[] = [];
  readonly entries: JournalEntry[] = [];
  readonly settlements: Settlement[] = [];
  readonly due: DueChange[] = [];
  readonly basis: NodeBasis[] = [];
  readonly basisRemoved: string[] = [];
  readonly labels: LabelWrite[] = [];
  state: "open" | "committed" | "aborted" = "open";
  readonly #home: TransactionHome;

  constructor(home: TransactionHome, options: TransactionOptions) {
    this.#home = home;
    this.options = options;
  }

  /** The value at the path, frozen; undefined where there is none or where the document is still loading. */
  read(ref: DocumentRef, path: Path = [], depth: "deep" | "shallow" = "deep"): Json | undefined {
    const document = this.#logged(ref, path, depth);
    return handOut(this.#peek(document, path));
  }

  /** Puts a value. Its parent must be there; the empty path makes or replaces the document. */
  write(ref: DocumentRef, path: Path, value: unknown): void {
    const document = this.#parentOf(ref, path, "write");
    this.#draft(document).write({ op: "set", path, value: admit(value, this.#peek(document, path)) });
  }

  /** Removes an object's key, or with the empty path the document (a tombstone stays). Removing what is not there is fine. */
  remove(ref: DocumentRef, path: Path): void {
    const document = this.#parentOf(ref, path, "remove");
    if (this.#peek(document, path) === undefined) {
      // It was absent when we looked, which is all that was asked for: a read, so that a writer in between is noticed.
      this.reads.add(document, path, "deep", this.#home.tick);
      return;
    }
    if (path.length > 0 && Array.isArray(this.#peek(document, path.slice(0, -1)))) {
      throw misuse(`cannot remove ${show(ref, path)}: it is an array element; use splice`);
    }
    this.#draft(document).write({ op: "delete", path });
  }

  /** Replaces `remove` elements of the array at the path from `index` on. */
  splice(ref: DocumentRef, path: Path, index: number, remove: number, insert: readonly unknown[]): void {
    const document = this.#logged(ref, path, "shallow");
    const array = this.#peek(document, path);
    if (!Array.isArray(array)) throw misuse(`cannot splice ${show(ref, path)}: there is no array`);
    if (!isCount(index) || !isCount(remove) || index + remove > array.length) {
      throw misuse(`cannot splice ${show(ref, path)} at ${index} over ${remove}: it has ${array.length} elements`);
    }
    const items = insert.map((item, i) => admit(item, array[index + i]));
    this.#draft(document).write({ op: "splice", path, index, remove, insert: items });
  }

  /** Applies everything to the replica now; the backend's word comes with `outcome`. */
  commit(): Commit {
    this.#requireOpen();
    this.state = "committed";
    return this.#home.commit(this);
  }

  /** Gives up; nothing of it happens. Harmless when it is over already. */
  abort(): void {
    if (this.state !== "open") return;
    this.state = "aborted";
    this.#home.abandon(this);
  }

  [Symbol.dispose](): void {
    this.abort();
  }

  #peek(document: ReplicaDocument, path: Path): Json | undefined {
    const draft = this.drafts.get(document);
    return draft ? draft.read(path) : document.read(path);
  }

  #draft(document: ReplicaDocument): Draft {
    let draft = this.drafts.get(document);
    if (!draft) {
      draft = new Draft(() => document.value);
      this.drafts.set(document, draft);
    }
    return draft;
  }

  #logged(ref: DocumentRef, path: Path, depth: ReadDepth): ReplicaDocument {
    this.#requireOpen();
    const document = this.#home.touch(ref);
    this.reads.add(document, path, depth, this.#home.tick);
    return document;
  }

  /** Checks that the path can be written, and claims that its parent stays. */
  #parentOf(ref: DocumentRef, path: Path, verb: "write" | "remove"): ReplicaDocument {
    if (path.length === 0) {
      this.#requireOpen();
      return verb === "write" ? this.#home.place(ref) : this.#home.touch(ref);
    }
    const parentPath = path.slice(0, -1);
    const document = this.#logged(ref, parentPath, "reach");
    const parent = this.#peek(document, parentPath);
    if (typeof parent !== "object" || parent === null) {
      throw misuse(
        `cannot ${verb} ${show(ref, path)}: there is no container at ${show(ref, parentPath)}; write that first`,
      );
    }
    if (Array.isArray(parent)) {
      const index = arrayIndex(path.at(-1) as string);
      if (index === undefined || index > parent.length) {
        throw misuse(`cannot ${verb} ${show(ref, path)}: the array takes the indexes 0 to ${parent.length}`);
      }
      // Appending depends on where the end is.
      if (index === parent.length) this.reads.add(document, parentPath, "shallow", this.#home.tick);
    }
    return document;
  }

  #requireOpen(): void {
    if (this.state !== "open") throw misuse(`the transaction is ${this.state}; begin another`);
  }
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function show(ref: DocumentRef, path: Path): string {
  return `${ref.scope}/${ref.id} /${path.join("/")}`;
}

function misuse(message: string): StoreError {
  return new StoreError("STORE_MISUSE", message);
}
