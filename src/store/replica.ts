/**
 * A replica of one space: confirmed state plus this process's pending commits, in memory. Readers never wait for a disk;
 * a commit is applied here at once and goes to the backend, whose word (confirmed, rejected) comes later. Everything that
 * changes what readers see is announced (`change.ts`).
 *
 * Composes `document-table` (what is here), `confirmation` (what becomes of commits) and `notifier` (who is told).
 * SPEC: S40-S75. Not here: which rows a commit becomes (backends), who runs a stale transaction again (its author).
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
import type { CommitOutcome, CommitRequest, DocumentPatch, NodeBasis, ReadClaim } from "./commit.ts";
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
import { DocumentTable, type OpenTurn } from "./document-table.ts";
import { FeedWatch } from "./feed-watch.ts";
import { NONE, withOne } from "./few.ts";
import { Notifier } from "./notifier.ts";
import type { PathOperation } from "./path-operation.ts";
import { type DocumentShare, PendingCommit } from "./pending-commit.ts";
import { Foundation } from "./pending-index.ts";
import type { Receipt } from "./receipt.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import { checkDocument, checkPending } from "./replica-invariants.ts";
import {
  type ListPage,
  type ListRequest,
  type LoadResult,
  type RecordedBasis,
  type Store,
  StoreError,
} from "./store.ts";
import {
  type Commit,
  type CommitExtras,
  type DocumentPart,
  Transaction,
  type TransactionOptions,
} from "./transaction.ts";

/** What was done in place to one document, and how to take it back. */
export interface Share {
  readonly operations: PathOperation[];
  readonly inverses: PathOperation[];
}

export interface ReplicaOptions {
  readonly store: Store;
  readonly space: string;
  /** Time and chance; those of the process unless given. */
  readonly host?: Host;
  /** Documents kept in memory; those that nobody observes go first. */
  readonly residentDocumentsMax?: number;
}

/** Derived values on their way to the store. */
export interface DerivedRows {
  readonly patches: readonly DocumentPatch[];
  readonly basis: NodeBasis[];
  readonly basisRemoved: string[];
  readonly reads: readonly ReadClaim[];
}

export interface AdoptOptions extends TransactionOptions {
  readonly reads: readonly ReadClaim[];
  /** What the commit carries besides; labels are told to everybody. */
  readonly extras?: Readonly<CommitExtras>;
  /** Knows of the changes already. */
  readonly except: NotificationListener;
}

export class Replica implements AsyncDisposable {
  readonly space: string;
  readonly #store: Store;
  readonly #notifier: Notifier;
  readonly #documents: DocumentTable;
  readonly #confirmation: Confirmation;
  readonly #feed: FeedWatch;
  #localSequence = 0;
  #closed = false;

  /** Opens a replica at the space's present sequence. Documents are loaded as they are read. */
  static async open(options: ReplicaOptions): Promise<Replica> {
    const { sequence, isLabelled = false } = await options.store.load(options.space, []);
    return new Replica(options, sequence, isLabelled);
  }

  private constructor(options: ReplicaOptions, position: number, isLabelled: boolean) {
    const { store, space, host = systemHost(), residentDocumentsMax: residentMax = RESIDENT_DOCUMENTS_MAX } = options;
    const notifier = new Notifier(host);
    this.#notifier = notifier;
    this.space = space;
    this.#store = store;
    this.#documents = new DocumentTable({ store, space, host, residentMax, notifier });
    this.#documents.isLabelled = isLabelled;
    this.#confirmation = new Confirmation({ space, host, store, documents: this.#documents, notifier, position });
    this.#feed = new FeedWatch({ host, store, space, follower: this.#confirmation });
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

  /** The document if it is known here. */
  find(ref: DocumentRef): ReplicaDocument | undefined {
    return this.#documents.find(ref);
  }

  /** A page of documents by a prefix of their ids, as the store has them: without commits that are still pending here. */
  list(request: ListRequest): Promise<ListPage> {
    return this.#store.list(this.space, request);
  }

  /** Loads documents and waits for them; throws when one of them cannot be loaded. */
  async load(refs: readonly DocumentRef[]): Promise<void> {
    const documents = refs.map((ref) => this.touch(ref));
    for (const document of documents) document.observers++;
    await this.loadsSettled();
    for (const document of documents) document.observers--;
    const failed = documents.find((document) => document.state !== "loaded");
    if (failed) throw failed.loadError;
  }

  /** Values as the store has them, past the documents in memory. */
  loadStored(refs: readonly DocumentRef[]): Promise<LoadResult> {
    return this.#store.load(this.space, refs);
  }

  /** The first stored id of a scope after this one, among those that begin with a prefix. */
  async firstStoredAfter(scope: string, prefix: string, after: string): Promise<string | undefined> {
    const { documents } = await this.#store.list(this.space, { scope, prefix, after, limit: 1 });
    return documents[0]?.id;
  }

  /** A commit of this replica that has no answer yet and leaves this receipt. */
  pendingReceipt({ scope, id }: DocumentRef): Commit | undefined {
    for (const commit of this.#confirmation.pending)
      if (commit.receipt?.id === id && commit.receipt.scope === scope) return commit;
    return this.find({ scope, id })?.pending[0]?.commit;
  }

  /** Told of receipts that others leave, by name, and of a gap in the feed in which some may have been missed. */
  set foreignReceipts(listener: ReceiptListener) {
    this.#confirmation.foreignReceipts = listener;
  }

  /** Grows whenever a read starts a load, so that a caller can tell whether what he did started one. */
  get loadGeneration(): number {
    return this.#documents.loader.generation;
  }

  /** Resolves when no load is outstanding. A load that failed leaves its reason on the document and is tried again. */
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

  /** Holds a document without making it: it stays once it is here, and what others write to it is looked at. Gives it if it is here. */
  hold(ref: DocumentRef): ReplicaDocument | undefined {
    return this.#documents.hold(ref);
  }

  letGo(ref: DocumentRef): void {
    this.#documents.letGo(ref);
  }

  /** Counts what was applied to the replica, by whomever. */
  get tick(): number {
    return this.#documents.tick;
  }

  /** The commit sequence up to which everything is integrated. */
  get position(): number {
    return this.#confirmation.position;
  }

  /** Identifies the commits that are made now; new for every replica, and after a commit whose fate is unknown. */
  get session(): string {
    return this.#confirmation.session;
  }

  get pendingCommits(): number {
    return this.#confirmation.pending.size;
  }

  /** Grows whenever a commit falls, so that a caller can tell whether what he has read may have been taken back. */
  get reverts(): number {
    return this.#confirmation.reverts;
  }

  get residentDocuments(): number {
    return this.#documents.size;
  }

  /** Tells of every change, synchronously; the listener takes no part in it, whatever it throws. */
  subscribe(listener: NotificationListener): () => void {
    return this.#notifier.subscribe(listener);
  }

  /** Who is told of what goes wrong where nobody waits for it; the host, unless somebody is given. */
  set onTrouble(tell: (trouble: unknown) => void) {
    this.#confirmation.tell = tell;
  }

  /** Integrates what others have committed by now. */
  catchUp(): Promise<void> {
    return this.#confirmation.catchUp();
  }

  // Committing -------------------------------------------------------------------------------------------------------

  transaction(options: TransactionOptions = NO_OPTIONS): Transaction {
    this.requireOpen();
    this.#documents.transactionOpened();
    return new Transaction(this, options);
  }

  /** Called by a transaction that gives up. */
  abandon({ parts }: Transaction): void {
    this.#documents.transactionEnded(parts);
  }

  /** Applies a transaction and sends it on its way. Called by the transaction itself. */
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
    const made = { reads: claims, patches: patchesOf(shares, receipt), dependsOn, receipt, isAdmitted: true };
    const pending = this.#send(buildRequest(this.space, identity, made, extras), shares, receipt);
    const labels = this.#label(pending);
    const { source, changeGroup } = options;
    this.#notifier.tell({ kind: "commit", changes, labels, commit: identity, source, changeGroup });
    return pending;
  }

  /** Whether what was read by code that has written nothing stands, once that is known; undefined where the store has it all. */
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
   * Makes one commit of changes that were already made in place to documents of this replica (`ReplicaDocument.value`), by
   * synchronous code that nothing came between. Values in the operations are frozen by now.
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
    const parts = { reads, patches: patchesOf(shares), dependsOn: foundation.localSequences };
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

  /** Puts the labels that a commit writes on the documents; they are as pending as what it wrote. */
  #label(pending: PendingCommit): readonly LabelChange[] {
    if (pending.request.labels.length === 0) return NONE;
    this.#documents.isLabelled = true;
    return pending.request.labels.flatMap(
      (write) => this.place(write).relabel((of) => of.addPending(pending, write)) ?? [],
    );
  }

  /**
   * Sends what is here already and is not to be taken back: derived values, with what they rest on. The documents stay as they are
   * whatever the answer is.
   */
  record({ patches, reads, ...rows }: DerivedRows): Commit {
    this.requireOpen();
    this.#documents.turn?.seal();
    const identity = { session: this.session, localSequence: ++this.#localSequence };
    const extras = { ...NOTHING_ELSE, ...rows };
    return this.#send(buildRequest(this.space, identity, { reads, patches, dependsOn: [] }, extras), []);
  }

  /** The recorded basis of nodes, and whether what they read has moved since. */
  basis(nodes: readonly string[]): Promise<readonly RecordedBasis[]> {
    return this.#store.basis(this.space, nodes);
  }

  /** Calls back when no code is under way that may have looked a document up, or anything that is kept beside one. */
  whenUnused(work: () => void): void {
    this.#documents.whenUnused(work);
  }

  /** Whoever changes documents in place; asked to seal before anything else happens to them. */
  set turn(turn: OpenTurn | undefined) {
    this.#documents.turn = turn;
  }

  /** Sent before it is told: what a listener commits upon it comes after it. */
  #send(request: CommitRequest, shares: readonly DocumentShare[], receipt?: Receipt): PendingCommit {
    const commit = new PendingCommit(request, shares, receipt);
    for (const share of commit.shares) share.document.addPending(share);
    this.#confirmation.send(commit);
    return commit;
  }

  /** Applies the drafts in place; documents that nothing happened to are left out. */
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

  /** Resolves when every commit made so far is confirmed or has fallen. */
  async settled(): Promise<void> {
    await Promise.all([...this.#confirmation.pending].map((pending) => pending.outcome));
  }

  /** Whether all that can be read here stands, once that is known; undefined where the store has it all. */
  standing(): Promise<boolean> | undefined {
    this.#documents.turn?.seal();
    return this.#confirmation.standing();
  }

  /**
   * Waits for the pending commits, as long as the grace lasts where one is given, then stops listening. Nothing can be committed any more.
   * Gives how many commits the store has not answered: they have fallen here, and may be there.
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

  /** Throws if the replica contradicts itself. */
  checkInvariants(): void {
    checkPending(this.#confirmation.pending);
    for (const document of this.#documents.all()) checkDocument(document, this.#confirmation.pending);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Throws once it is closed. */
  requireOpen(): void {
    if (this.#closed) throw new StoreError("STORE_CLOSED", `the replica of space "${this.space}" is closed`);
  }
}

const NO_OPTIONS: TransactionOptions = {};
