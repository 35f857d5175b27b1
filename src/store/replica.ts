/**
 * A replica of one space: confirmed state plus this process's pending commits, in memory. Readers never wait for a disk;
 * a commit is applied here at once and goes to the backend, whose word (confirmed, rejected) comes later. Everything that
 * changes what readers see is announced (`change.ts`).
 *
 * Composes `document-table` (what is here), `confirmation` (what becomes of commits) and `notifier` (who is told).
 * SPEC: S8-S17. Not here: which rows a commit becomes (backends), who runs a stale transaction again (its author).
 */
import type { Host } from "../host/host.ts";
import { RESIDENT_DOCUMENTS_MAX } from "../limits.ts";
import type { Json } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import { admit, handOut } from "./admit.ts";
import type { Change, NotificationListener } from "./change.ts";
import type { CommitOutcome, CommitRequest, ReadClaim } from "./commit.ts";
import { buildRequest, isEmpty, NOTHING_ELSE, readClaims, sequenceSeen, standsOn } from "./commit-request.ts";
import { Confirmation } from "./confirmation.ts";
import type { DocumentRef } from "./document.ts";
import { DocumentTable, type OpenTurn } from "./document-table.ts";
import { narrow } from "./narrow.ts";
import { Notifier } from "./notifier.ts";
import type { PathOperation } from "./path-operation.ts";
import { PendingCommit } from "./pending-commit.ts";
import { type Rejection, rejected } from "./rejection.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import { type Store, StoreError } from "./store.ts";
import { type Commit, Transaction, type TransactionOptions } from "./transaction.ts";

export interface ReplicaOptions {
  readonly store: Store;
  readonly space: string;
  readonly host: Host;
  /** Documents kept in memory; those that nobody observes go first. */
  readonly residentDocumentsMax?: number;
}

/** What a commit did to one document, and how to take it back. */
export interface Share {
  readonly operations: PathOperation[];
  readonly inverses: PathOperation[];
}

export interface AdoptOptions extends TransactionOptions {
  readonly reads: readonly ReadClaim[];
  /** Knows of the changes already. */
  readonly except: NotificationListener;
}

export class Replica implements AsyncDisposable {
  readonly space: string;
  /** Identifies this replica's commits; new for every replica object. */
  readonly session: string;
  readonly #notifier = new Notifier();
  readonly #documents: DocumentTable;
  readonly #confirmation: Confirmation;
  readonly #unwatch: () => void;
  #localSequence = 0;
  #closed = false;

  /** Opens a replica at the space's present sequence. Documents are loaded as they are read. */
  static async open(options: ReplicaOptions): Promise<Replica> {
    const { sequence } = await options.store.load(options.space, []);
    return new Replica(options, sequence);
  }

  private constructor(options: ReplicaOptions, position: number) {
    const { store, space, host, residentDocumentsMax: residentMax = RESIDENT_DOCUMENTS_MAX } = options;
    const notifier = this.#notifier;
    this.space = space;
    this.session = host.id();
    this.#documents = new DocumentTable({ store, space, host, residentMax, notifier });
    const { session } = this;
    this.#confirmation = new Confirmation({ space, session, store, documents: this.#documents, notifier, position });
    this.#unwatch = store.watch(({ spaces }) => {
      if (spaces !== undefined && !spaces.includes(space)) return;
      // What cannot be read now is read on the next occasion: the position has not moved.
      this.catchUp().catch(() => undefined);
    });
  }

  // Reading ----------------------------------------------------------------------------------------------------------

  /** The current value, unlogged; undefined while it is loading. For tools and tests; nodes read in a transaction. */
  peek(ref: DocumentRef, path: Path = []): Json | undefined {
    return handOut(this.touch(ref).read(path));
  }

  /** The document, after asking for its load if it is not here. */
  touch(ref: DocumentRef): ReplicaDocument {
    return this.#documents.touch(ref);
  }

  /** The document as far as it is known here; asks for no load. */
  place(ref: DocumentRef): ReplicaDocument {
    return this.#documents.place(ref);
  }

  find(ref: DocumentRef): ReplicaDocument | undefined {
    return this.#documents.find(ref);
  }

  /** Loads documents and waits for them; throws when one of them cannot be loaded. */
  async load(refs: readonly DocumentRef[]): Promise<void> {
    const documents = refs.map((ref) => this.touch(ref));
    await this.loadsSettled();
    const failed = documents.find((document) => document.state !== "loaded");
    if (failed) throw failed.loadError;
  }

  /** Grows whenever a read starts a load, so that a caller can tell whether what he did started one. */
  get loadGeneration(): number {
    return this.#documents.loader.generation;
  }

  /** Resolves when no load is outstanding. A load that failed leaves its reason on the document and is tried again by the next read. */
  loadsSettled(): Promise<void> {
    return this.#documents.loader.settled();
  }

  /** Keeps a document in memory until the returned function is called. */
  observe(ref: DocumentRef): () => void {
    const document = this.touch(ref);
    document.observers++;
    let held = true;
    return () => {
      if (held) document.observers--;
      held = false;
    };
  }

  /** Counts what was applied to the replica, by whomever. */
  get tick(): number {
    return this.#documents.tick;
  }

  /** The commit sequence up to which everything is integrated. */
  get position(): number {
    return this.#confirmation.position;
  }

  get pendingCommits(): number {
    return this.#confirmation.pending.length;
  }

  get residentDocuments(): number {
    return this.#documents.size;
  }

  subscribe(listener: NotificationListener): () => void {
    return this.#notifier.subscribe(listener);
  }

  /** Integrates what others have committed by now. */
  catchUp(): Promise<void> {
    return this.#confirmation.catchUp();
  }

  // Committing -------------------------------------------------------------------------------------------------------

  transaction(options: TransactionOptions = {}): Transaction {
    if (this.#closed) throw new StoreError("STORE_CLOSED", `the replica of space "${this.space}" is closed`);
    this.#documents.transactionOpened();
    return new Transaction(this, options);
  }

  /** Called by a transaction that gives up. */
  abandon(_transaction: Transaction): void {
    this.#documents.transactionEnded();
  }

  /** Applies a transaction and sends it on its way. Called by the transaction itself. */
  commit(transaction: Transaction): Commit {
    this.#documents.turn?.seal();
    const identity = { session: this.session, localSequence: ++this.#localSequence };
    const moved = firstMoved(transaction);
    this.#documents.transactionEnded();
    if (moved) return { ...identity, outcome: Promise.resolve(moved) };

    const dependsOn = standsOn(transaction);
    const reads = readClaims(transaction, this.position);
    const { shares, changes } = this.#apply(transaction, reads);
    const patches = [...shares].map(([{ scope, id }, { operations }]) => ({ scope, id, operations }));
    const request = buildRequest({ space: this.space, ...identity }, transaction, { reads, patches, dependsOn });
    if (isEmpty(request)) return { ...identity, outcome: this.#outcomeOfReading(dependsOn) };

    const pending = this.#send(request, shares);
    this.#notifier.tell({ kind: "commit", changes, commit: identity, ...transaction.options });
    return pending;
  }

  /**
   * Makes one commit of changes that were already made in place to documents of this replica (`ReplicaDocument.value`), by
   * synchronous code that nothing came between. Values in the operations are frozen by now.
   */
  adopt(shares: ReadonlyMap<ReplicaDocument, Share>, { except, reads, ...options }: AdoptOptions): Commit {
    const identity = { session: this.session, localSequence: ++this.#localSequence };
    const dependsOn = new Set<number>();
    const patches = [...shares].map(([document, { operations }]) => {
      if (document.pending.length > 0) {
        for (const { path } of operations) {
          for (const commit of document.pendingBeneath(path, "deep")) dependsOn.add(commit.localSequence);
        }
      }
      for (const { path } of operations) this.#documents.writtenAt(document, path);
      return { scope: document.scope, id: document.id, operations };
    });
    const request = buildRequest({ space: this.space, ...identity }, NOTHING_ELSE, {
      reads,
      patches,
      dependsOn: [...dependsOn].sort((a, b) => a - b),
    });
    const pending = this.#send(request, shares);
    this.#notifier.tellOthers(except, () => ({
      kind: "commit",
      changes: [...shares].flatMap(([document, share]) => document.changesOf(share)),
      commit: identity,
      ...options,
    }));
    return pending;
  }

  /** Whoever changes documents in place; asked to seal before anything else happens to them. */
  set turn(turn: OpenTurn | undefined) {
    this.#documents.turn = turn;
  }

  /** Sent before it is told: what a listener commits upon it comes after it. */
  #send(request: CommitRequest, shares: ReadonlyMap<ReplicaDocument, Share>): PendingCommit {
    const pending = new PendingCommit(request, [...shares.keys()]);
    for (const [document, share] of shares) document.pending.push({ commit: pending, ...share });
    this.#confirmation.send(pending);
    return pending;
  }

  /** Applies the drafts in place. Writes that change nothing are left out; wide replacements become their differences. */
  #apply(transaction: Transaction, reads: ReadClaim[]): { shares: Map<ReplicaDocument, Share>; changes: Change[] } {
    const shares = new Map<ReplicaDocument, Share>();
    const changes: Change[] = [];
    for (const [document, draft] of transaction.drafts) {
      const share: Share = { operations: [], inverses: [] };
      for (const operation of draft.operations) {
        for (const effective of this.#effective(document, operation, reads)) {
          const { change, inverse } = document.apply(effective);
          share.operations.push(effective);
          share.inverses.push(inverse);
          changes.push(change);
        }
      }
      if (share.operations.length > 0) shares.set(document, share);
    }
    this.#documents.written(changes);
    return { shares, changes };
  }

  /** What an operation comes to against the present value. */
  #effective(document: ReplicaDocument, operation: PathOperation, reads: ReadClaim[]): readonly PathOperation[] {
    if (operation.op !== "set") return [operation];
    const before = document.read(operation.path);
    const value = admit(operation.value, before);
    if (Object.is(before, value)) return [];
    const differences = narrow(operation.path, before, value);
    if (!differences) return [{ op: "set", path: operation.path, value }];
    // The differences stand for the whole only as long as the rest is what it was.
    const { scope, id } = document;
    const sequence = sequenceSeen(document, this.position);
    reads.push({ scope, id, path: operation.path, depth: "deep", sequence });
    return differences;
  }

  /** A transaction that only read is as good as the commits it read from. */
  async #outcomeOfReading(dependsOn: readonly number[]): Promise<CommitOutcome> {
    const beneath = this.#confirmation.pending.filter((pending) => dependsOn.includes(pending.localSequence));
    for (const pending of beneath) {
      const outcome = await pending.outcome;
      if (outcome.kind !== "rejected") continue;
      return rejected(outcome.class, "fell-with", `read from a commit that was rejected: ${outcome.message}`);
    }
    return { kind: "committed", sequence: this.position, journalIds: [], replayed: false };
  }

  // Life -------------------------------------------------------------------------------------------------------------

  /** Resolves when every commit made so far is confirmed or has fallen. */
  async settled(): Promise<void> {
    await Promise.all(this.#confirmation.pending.map((pending) => pending.outcome));
  }

  /** Waits for the pending commits, then stops listening. Transactions cannot be begun any more. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.settled();
    this.#unwatch();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** The first read that somebody in this process has written since. */
function firstMoved(transaction: Transaction): Rejection | undefined {
  for (const [document, reads] of transaction.reads.entries()) {
    for (const read of reads) {
      if (!document.hasMoved(read)) continue;
      const where = `${document.scope}/${document.id} /${read.path.join("/")}`;
      return rejected("stale", "read-moved", `${where} changed while the transaction was open; run it again`);
    }
  }
  return undefined;
}
