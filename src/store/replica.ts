/**
 * A replica of one space in memory: confirmed state plus the pending commits of this process. Reads never wait for a
 * disk. A commit is applied at once and sent to the backend, which confirms or rejects it later. Every change of
 * visible state is announced (`change.ts`).
 *
 * Composes `document-table` (documents in memory), `confirmation` (outcomes of commits) and `notifier` (listeners).
 * SPEC: S40-S75. Not here: the rows of a commit (backends) and the retry of stale transactions (their callers).
 */
import type { Grace } from "../host/grace.ts";
import type { Host } from "../host/host.ts";
import { systemHost } from "../host/system-host.ts";
import { LAST_ANSWERS_MS, RESIDENT_DOCUMENTS_MAX } from "../limits.ts";
import type { Json } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import { handOut } from "./admit.ts";
import { type Application, applyDraft } from "./apply-draft.ts";
import type { NotificationListener } from "./change.ts";
import type { Commit, CommitOutcome, CommitRequest, DocumentPatch, NodeBasis, ReadClaim } from "./commit.ts";
import {
  buildRequest,
  firstMoved,
  isNothing,
  NOTHING_ELSE,
  patchesOf,
  readClaims,
  standsOn,
} from "./commit-request.ts";
import { Confirmation, type ReceiptListener } from "./confirmation.ts";
import type { DocumentRef } from "./document.ts";
import type { LabelChange } from "./document-labels.ts";
import { type OpenTurn, ReplicaDocuments } from "./document-table.ts";
import { FeedWatch } from "./feed-watch.ts";
import { Notifier } from "./notifier.ts";
import type { PathOperation } from "./path-operation.ts";
import { type DocumentShare, PendingCommit } from "./pending-commit.ts";
import { Foundation } from "./pending-index.ts";
import type { Receipt } from "./receipt.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import { checkDocument, checkPending } from "./replica-invariants.ts";
import { NONE, withOne } from "./small-list.ts";
import {
  type ListPage,
  type ListRequest,
  type LoadResult,
  type RecordedBasis,
  type Store,
  StoreError,
  type UserTables,
} from "./store.ts";
import { type CommitExtras, type DocumentPart, Transaction, type TransactionOptions } from "./transaction.ts";

/** The operations applied in place to one document, and their inverses. */
export interface Share {
  readonly operations: PathOperation[];
  readonly inverses: PathOperation[];
}

/** Options of `Replica.open`. */
export interface ReplicaOptions {
  readonly store: Store;
  readonly space: string;
  /** Clock and randomness; defaults to those of the process. */
  readonly host?: Host;
  /** Limit of documents in memory; unobserved ones are dropped first. */
  readonly residentDocumentsMax?: number;
}

/** Derived values to be stored. */
export interface DerivedRows {
  readonly patches: readonly DocumentPatch[];
  readonly basis: NodeBasis[];
  readonly basisRemoved: string[];
  readonly reads: readonly ReadClaim[];
}

export interface AdoptOptions extends TransactionOptions {
  readonly reads: readonly ReadClaim[];
  /** Further parts of the commit. All listeners are notified of its labels. */
  readonly extras?: Readonly<CommitExtras>;
  /** This listener already knows the changes. */
  readonly except: NotificationListener;
}

/** The documents of a space in the memory of a process. */
export class Replica implements AsyncDisposable {
  readonly space: string;
  readonly #store: Store;
  readonly #notifier: Notifier;
  readonly #documents: ReplicaDocuments;
  readonly #confirmation: Confirmation;
  readonly #feed: FeedWatch;
  #localSequence = 0;
  #closed = false;

  /** Opens a replica at the current sequence of the space. Documents are loaded when they are read. */
  static async open(options: ReplicaOptions): Promise<Replica> {
    return new Replica(options, await options.store.load(options.space, []));
  }

  private constructor(options: ReplicaOptions, start: LoadResult) {
    const { sequence: position, history, isLabelled = false } = start;
    const { store, space, host = systemHost(), residentDocumentsMax: residentMax = RESIDENT_DOCUMENTS_MAX } = options;
    const notifier = new Notifier(host);
    this.#notifier = notifier;
    this.space = space;
    this.#store = store;
    this.#documents = new ReplicaDocuments({ store, space, host, residentMax, notifier, history });
    this.#documents.isLabelled = isLabelled;
    this.#confirmation = new Confirmation({ space, host, store, documents: this.#documents, notifier, position });
    this.#feed = new FeedWatch({ host, store, space, follower: this.#confirmation });
  }

  /** Tables of the user that a commit can run statements on. */
  get userTables(): UserTables | undefined {
    return this.#store.userTables;
  }

  // Reading ----------------------------------------------------------------------------------------------------------

  /** The current value, unlogged; undefined while it is loading. For tools and tests; nodes read in a transaction. */
  peek(ref: DocumentRef, path: Path = []): Json | undefined {
    return handOut(this.touch(ref).read(path));
  }

  /** The document; starts its load if it is not in memory. */
  touch(ref: DocumentRef): ReplicaDocument {
    return this.#documents.touch(ref);
  }

  /** The document in its current state; does not start a load. */
  place(ref: DocumentRef): ReplicaDocument {
    return this.#documents.place(ref);
  }

  /** The document if it is in memory. */
  find(ref: DocumentRef): ReplicaDocument | undefined {
    return this.#documents.find(ref);
  }

  /** A page of documents by a prefix of their ids, as stored: without commits that are pending here. */
  list(request: ListRequest): Promise<ListPage> {
    return this.#store.list(this.space, request);
  }

  /** Loads documents and waits for them; throws if one of them cannot be loaded. */
  async load(refs: readonly DocumentRef[]): Promise<void> {
    const documents = refs.map((ref) => this.touch(ref));
    for (const document of documents) document.observers++;
    await this.loadsSettled();
    for (const document of documents) document.observers--;
    const failed = documents.find((document) => document.state !== "loaded");
    if (failed) throw failed.loadError;
  }

  /** Stored values, bypassing the documents in memory. */
  loadStored(refs: readonly DocumentRef[]): Promise<LoadResult> {
    return this.#store.load(this.space, refs);
  }

  /** The first stored id of a scope after `after` that begins with the prefix. */
  async firstStoredAfter(scope: string, prefix: string, after: string): Promise<string | undefined> {
    const { documents } = await this.#store.list(this.space, { scope, prefix, after, limit: 1 });
    return documents[0]?.id;
  }

  /** For each receipt the pending commit of this replica that carries it, if there is one. */
  pendingReceipts(refs: readonly DocumentRef[]): readonly (Commit | undefined)[] {
    const names = new Set(refs.map(({ id }) => id));
    const commits = new Map<string, PendingCommit>();
    for (const commit of this.#confirmation.pending) {
      const { receipt } = commit;
      if (receipt !== undefined && names.has(receipt.id)) commits.set(receipt.id, commit);
    }
    return refs.map((ref) => {
      const commit = commits.get(ref.id);
      return commit?.receipt?.scope === ref.scope ? commit : this.find(ref)?.pending[0]?.commit;
    });
  }

  /** Notified of receipts in commits of other sessions, by name, and of a gap in the feed that may hide some. */
  set foreignReceipts(listener: ReceiptListener) {
    this.#confirmation.foreignReceipts = listener;
  }

  /** Increases with every load that a read starts, so that a caller can detect whether its reads started one. */
  get loadGeneration(): number {
    return this.#documents.loader.generation;
  }

  /** Resolves when no load is outstanding. A failed load leaves its error on the document and is retried. */
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

  /**
   * Keeps a document in memory once it is loaded, without loading it now. It is re-checked when another session writes
   * it. Returns the document if it is in memory.
   */
  hold(ref: DocumentRef): ReplicaDocument | undefined {
    return this.#documents.hold(ref);
  }

  letGo(ref: DocumentRef): void {
    this.#documents.letGo(ref);
  }

  /** Counts the changes applied to the replica, from any source. */
  get tick(): number {
    return this.#documents.tick;
  }

  /** All commits up to this sequence are integrated. */
  get position(): number {
    return this.#confirmation.position;
  }

  /** Identifies new commits. Changes with every replica, and after a commit with unknown outcome. */
  get session(): string {
    return this.#confirmation.session;
  }

  get pendingCommits(): number {
    return this.#confirmation.pending.size;
  }

  /** Increases with every rollback, so that a caller can detect whether its reads may have been rolled back. */
  get reverts(): number {
    return this.#confirmation.reverts;
  }

  /** Why acknowledged commits of this process are missing, since a restore or failover; undefined if none is. */
  get historyLost(): string | undefined {
    return this.#confirmation.historyLost;
  }

  get residentDocuments(): number {
    return this.#documents.size;
  }

  /** Notifies the listener of every change, synchronously. An error of the listener does not affect the change. */
  subscribe(listener: NotificationListener): () => void {
    return this.#notifier.subscribe(listener);
  }

  /** Receives errors that no caller waits for; defaults to the host. */
  set onTrouble(tell: (trouble: unknown) => void) {
    this.#confirmation.tell = tell;
  }

  /** Integrates the commits of other sessions made so far. */
  catchUp(): Promise<void> {
    return this.#confirmation.catchUp();
  }

  // Committing -------------------------------------------------------------------------------------------------------

  transaction(options: TransactionOptions = NO_OPTIONS): Transaction {
    this.requireOpen();
    this.#documents.transactionOpened();
    return new Transaction(this, options);
  }

  /** Called when a transaction is aborted. */
  abandon({ parts }: Transaction): void {
    this.#documents.transactionEnded(parts);
  }

  /** Applies a transaction and sends it to the backend. Called by the transaction itself. */
  commit({ parts, extras, options, receipt }: Transaction): Commit {
    this.#documents.turn?.seal();
    const rejection = firstMoved(parts);
    this.#documents.transactionEnded(parts);
    this.requireOpen();
    const identity = { session: this.session, localSequence: ++this.#localSequence };
    if (rejection) return { ...identity, outcome: Promise.resolve(rejection), rejection };
    const dependsOn = standsOn(parts);
    const { position, tick } = this;
    const application: Application = { changes: NONE, claims: readClaims(parts, position), position, tick };
    const shares = this.#apply(parts, application);
    const { changes, claims } = application;
    if (shares.length === 0 && receipt === undefined && isNothing(extras))
      return { ...identity, outcome: this.#confirmation.outcomeOfReading(claims, dependsOn) };
    const { history } = this.#documents;
    const made = { reads: claims, patches: patchesOf(shares, receipt), dependsOn, receipt, history, isAdmitted: true };
    const pending = this.#send(buildRequest(this.space, identity, made, extras), shares, receipt);
    const labels = this.#label(pending);
    const { source, changeGroup } = options;
    this.#notifier.tell({ kind: "commit", changes, labels, commit: identity, source, changeGroup });
    return pending;
  }

  /**
   * Resolves once it is known whether reads of code without writes stand; undefined if they rest only on stored
   * commits.
   */
  standingOf(reads: readonly ReadClaim[]): Promise<CommitOutcome> | undefined {
    const { localSequences } = this.#beneath(reads);
    return localSequences.length === 0 ? undefined : this.#confirmation.outcomeOfReading(NONE, localSequences);
  }

  #beneath(reads: readonly ReadClaim[]): Foundation {
    const foundation = new Foundation();
    for (const read of reads) this.find(read)?.addPendingBeneath(read.path, read.depth, foundation);
    return foundation;
  }

  /**
   * Commits changes that synchronous code has already made in place to documents of this replica
   * (`ReplicaDocument.value`). The values in the operations are frozen.
   */
  adopt(done: ReadonlyMap<ReplicaDocument, Share>, { except, reads, extras, ...options }: AdoptOptions): Commit {
    const identity = { session: this.session, localSequence: ++this.#localSequence };
    const foundation = this.#beneath(reads);
    const shares: DocumentShare[] = [];
    for (const [document, { operations, inverses }] of done) {
      shares.push({ commit: undefined, document, operations, inverses });
      for (const { path } of operations) {
        document.addPendingBeneath(path, "deep", foundation);
        this.#documents.writtenAt(document, path);
      }
    }
    const { history } = this.#documents;
    const parts = { reads, patches: patchesOf(shares), dependsOn: foundation.localSequences, history };
    const pending = this.#send(buildRequest(this.space, identity, parts, extras), shares);
    this.#notifier.tellOthers(except, () => ({
      kind: "commit",
      changes: shares.flatMap((share) => share.document.changesOf(share)),
      commit: identity,
      ...options,
    }));
    const labels = this.#label(pending);
    if (labels.length > 0) this.#notifier.tell({ kind: "commit", changes: [], labels, commit: identity });
    return pending;
  }

  /** Adds the label writes of a commit to the documents; they are pending like its other writes. */
  #label(pending: PendingCommit): readonly LabelChange[] {
    if (pending.request.labels.length === 0) return NONE;
    this.#documents.isLabelled = true;
    return pending.request.labels.flatMap(
      (write) => this.place(write).relabel((of) => of.addPending(pending, write)) ?? [],
    );
  }

  /**
   * Stores derived values that are already in memory, with their basis. They stay in memory even if the store rejects
   * them.
   */
  record({ patches, reads, ...rows }: DerivedRows): Commit {
    this.requireOpen();
    this.#documents.turn?.seal();
    const identity = { session: this.session, localSequence: ++this.#localSequence };
    const extras = { ...NOTHING_ELSE, ...rows };
    const parts = { reads, patches, dependsOn: [], history: this.#documents.history };
    return this.#send(buildRequest(this.space, identity, parts, extras), []);
  }

  /** The recorded basis of nodes, and whether their inputs have changed since. */
  basis(nodes: readonly string[]): Promise<readonly RecordedBasis[]> {
    return this.#store.basis(this.space, nodes);
  }

  /** Calls `work` when no running code can hold a looked-up document or its attachment. */
  whenUnused(work: () => void): void {
    this.#documents.whenUnused(work);
  }

  /** The code that changes documents in place. It is asked to seal before any other change is made to them. */
  set turn(turn: OpenTurn | undefined) {
    this.#documents.turn = turn;
  }

  /** The commit is sent before listeners are notified, so that commits of listeners come after it. */
  #send(request: CommitRequest, shares: readonly DocumentShare[], receipt?: Receipt): PendingCommit {
    const commit = new PendingCommit(request, shares, receipt);
    for (const share of commit.shares) share.document.addPending(share);
    this.#confirmation.send(commit);
    return commit;
  }

  /** Applies the drafts in place; unchanged documents are left out. */
  #apply(parts: readonly DocumentPart[], application: Application): readonly DocumentShare[] {
    let shares: readonly DocumentShare[] = NONE;
    for (const { document, draft } of parts) {
      if (!draft) continue;
      const share = applyDraft(document, draft, application);
      if (share) shares = withOne(shares, share);
    }
    this.#documents.written(application.changes);
    return shares;
  }

  // Life -------------------------------------------------------------------------------------------------------------

  /** Resolves when every commit made so far is confirmed or rolled back. */
  async settled(): Promise<void> {
    await Promise.all([...this.#confirmation.pending].map((pending) => pending.outcome));
  }

  /** Whether all that can be read here stands, once that is known; undefined where the store has it all. */
  standing(): Promise<boolean> | undefined {
    this.#documents.turn?.seal();
    return this.#confirmation.standing();
  }

  /**
   * Waits for the pending commits, at most for the grace period if given, then closes. Returns the number of commits
   * that the store has not answered: they are rolled back here but may be stored.
   */
  async close(grace?: Grace): Promise<number> {
    this.#documents.turn?.seal();
    this.#closed = true;
    const settled = this.settled();
    await (grace === undefined ? settled : grace.outlasts(settled, LAST_ANSWERS_MS));
    this.#feed.close();
    this.#documents.loader.close();
    const why = `the store had not answered when space "${this.space}" was closed; it may be there`;
    return this.#confirmation.giveUp(why);
  }

  /** Throws if the replica is inconsistent. */
  checkInvariants(): void {
    checkPending(this.#confirmation.pending);
    for (const document of this.#documents.all()) checkDocument(document, this.#confirmation.pending);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Throws after `close`. */
  requireOpen(): void {
    if (this.#closed) throw new StoreError("STORE_CLOSED", `the replica of space "${this.space}" is closed`);
  }
}

const NO_OPTIONS: TransactionOptions = {};
