/**
 * The store interface: all durable data goes through it. It is private to Millrace and may change. Every backend passes
 * one conformance suite (`test/store/conformance`), and callers do not depend on a particular backend.
 *
 * Rules for a backend:
 * - A resolved write is durable, under the durability that the store was opened with.
 * - Expected outcomes are values (`rejection.ts`). A method throws `StoreError` for misuse and after the store has
 *   stopped.
 * - A method never calls back synchronously: outcomes arrive in a later microtask or task.
 * - Writes are applied and answered in the order of the calls. An answer that shows a commit (a load, a page of the
 *   feed) comes after the answer to that commit.
 * - Order is promised per space (sequences) and per lane of the journal (ids), not over all writes of the data.
 * - A store may lose its data's server. Then it is `away`: writes are parked within bounds, reads fail with
 * `STORE_AWAY`,
 *   and every parked write is answered after the server is back (`connection.ts`).
 */
import type { Json } from "../message/json.ts";
import { MillraceError } from "../message/millrace-error.ts";
import type { Path } from "../message/path.ts";
import type {
  BasisInput,
  CommitIdentity,
  CommitOutcome,
  CommitRequest,
  DocumentPatch,
  LabelWrite,
  NodeBasis,
} from "./commit.ts";
import type { StoreConnection } from "./connection.ts";
import type { ConsumerDeclaration, ConsumerRemoval, ConsumerTable, RemovalResult } from "./consumer.ts";
import type { DocumentRef } from "./document.ts";
import type { DueChange, DueRow } from "./due.ts";
import type { Erased, EraseRequest } from "./erase.ts";
import type {
  Claim,
  ClaimRequest,
  Conclusion,
  JournalEntry,
  JournalQuery,
  JournalRow,
  JournalStatus,
  RemovedRange,
  Retention,
  Settlement,
  VerifyReport,
} from "./journal.ts";
import type { JournalPage, JournalPosition } from "./journal-position.ts";
import type { Rejection } from "./rejection.ts";

/** Documents, journal, consumers and timers behind one interface. */
export interface Store extends AsyncDisposable {
  readonly backend: "memory" | "sqlite" | "postgres";

  /** Tables of the user in the same database; undefined where commits cannot run statements on them. */
  readonly userTables?: UserTables;

  /** Whether the data can be reached now, which history they have, and how many writes are parked. */
  readonly connection: StoreConnection;

  /**
   * The store's clock in milliseconds: that of the database server, as last measured, or of the host for an embedded
   * store. Leases, due rows, retries and the receipt horizon are judged by it.
   */
  now(): number;

  // Documents --------------------------------------------------------------------------------------------------------

  /** Current values and labels of documents, all as of one sequence of the space. */
  load(space: string, refs: readonly DocumentRef[]): Promise<LoadResult>;

  /**
   * A page of the documents that have a value, in one scope, with ids that begin with a prefix, in UTF-8 order of ids.
   * The last page has fewer than `limit`. A commit can claim that the set has not changed (`MembershipClaim`).
   */
  list(space: string, request: ListRequest): Promise<ListPage>;

  /** One atomic change. `commit-rules.ts` has the order of the checks. */
  commit(request: CommitRequest): Promise<CommitOutcome>;

  /** Variant without a promise for frequent callers: a backend may call `listener` later and return undefined. */
  commit(request: CommitRequest, listener: CommitListener): Promise<CommitOutcome> | undefined;

  /** Whether the store has each of these commits; false also for a commit that it has forgotten. */
  hasCommits(commits: readonly CommitIdentity[]): Promise<readonly boolean[]>;

  /** Commits of a space after a sequence, oldest first, at most `limit`. */
  changesSince(space: string, sequence: number, limit: number): Promise<FeedPage>;

  /**
   * Calls the listener with the names of spaces that may have been changed by another process or another replica of
   * this store object, within 50 ms on one machine. Some calls are false alarms. Also called when the state or the
   * history of `connection` has changed.
   */
  watch(listener: (change: StoreChange) => void): () => void;

  /**
   * The recorded basis of nodes, in the order of `nodes`, and whether their inputs have changed since. Missing nodes
   * are left out.
   */
  basis(space: string, nodes: readonly string[]): Promise<readonly RecordedBasis[]>;

  // Journal ----------------------------------------------------------------------------------------------------------

  /**
   * Appends messages in order, outside of a space's commit: all or none. Ids are below 2^53, increase in each lane of
   * the journal, and are causal: greater than every id that this store object has answered with before. They have gaps,
   * and a row with a smaller id may appear later in another lane. With `"too-large"`, oversized entries are left out if
   * others remain; pass it when the entries are unrelated.
   */
  append(entries: readonly JournalEntry[], leaveOut?: "too-large"): Promise<AppendOutcome>;

  /**
   * Opens a lease for this process incarnation, by the store's clock. Its number is greater than all earlier ones of
   * this history and ends with random bits (`lease-number.ts`), so that two histories do not share numbers. `running`
   * has keys of consumers.
   */
  openLease(durationMs: number, running?: readonly string[]): Promise<Lease>;

  /** Extends a lease from now. Resolves with false if it has expired and its rows were recovered: open a new one. */
  renewLease(lease: number, durationMs: number): Promise<boolean>;

  /** Ends a lease; its rows go back to pending. Resolves with their number. */
  closeLease(lease: number): Promise<number>;

  /** Marks pending rows as processing, in order of id and in one transaction, and returns them. */
  claim(request: ClaimRequest): Promise<readonly Claim[]>;

  /** Settles claims. The result says for each claim whether it was still held. */
  settle(settlements: readonly Settlement[], urgency?: Urgency): Promise<readonly SettleResult[]>;

  /**
   * Sends rows whose lease has ended back to pending and resolves with their number. Rows of live leases are
   * unaffected.
   */
  recover(): Promise<number>;

  /**
   * Puts failed rows and `unheard` done rows back to pending, and resolves with their ids. Successful deliveries stay
   * done. With `onlyFor`, done rows go back for one consumer only.
   */
  requeue(ids: readonly number[], onlyFor?: RequeueTarget): Promise<readonly number[]>;

  /**
   * Closes rows without handling them and stores the reason. Resolves with the ids that were in the state of the
   * conclusion.
   */
  conclude(ids: readonly number[], conclusion: Conclusion): Promise<readonly number[]>;

  /** Makes rows claimable whose `nextAttemptAt` has come. Resolves with their number and the time of the next one. */
  releaseRetries(nowMs: number): Promise<{ readonly released: number; readonly nextAtMs: number | undefined }>;

  query(query: JournalQuery): Promise<readonly JournalRow[]>;

  /**
   * Rows after a position, of all lanes, in order of id, at most `limit`. For followers: a row that appears in one lane
   * behind a row of another is not missed. With `topic`, only rows of this topic, and `gone` is empty.
   */
  follow(after: JournalPosition, limit: number, topic?: string): Promise<JournalPage>;

  /** The position after all rows, also those that were removed. */
  journalEnd(): Promise<JournalPosition>;

  /** The number of rows per status. */
  count(): Promise<Readonly<Record<JournalStatus, number>>>;

  /** Removes done rows, at most `limit`, and resolves with their number. Dead letters stay. */
  retain(retention: Retention): Promise<number>;

  /**
   * Moves the horizon up to a time, at most to the store's clock; it never moves back. Receipts of messages made before
   * the horizon may be removed, and such a message without a receipt is refused (`too-old`). Removes at most `limit`
   * receipts, of commits that the feed no longer reaches.
   */
  forgetReceipts(request: ForgetRequest): Promise<Forgotten>;

  /**
   * Records journal rows that were removed by hand, so that `verify` no longer reports them. Resolves with their
   * ranges.
   */
  acceptRemoved(): Promise<readonly RemovedRange[]>;

  /**
   * Checks the hash chain of each lane, the checksums of documents and the backend's own structure. Reads the whole
   * store.
   */
  verify(): Promise<VerifyReport>;

  /**
   * Finds the data of a subject, and removes them if `apply` is true. Resolves when no file of the store has their
   * text. Replicas load their documents again, as after any gap of the feed.
   */
  erase(request: EraseRequest): Promise<Erased>;

  // Consumers --------------------------------------------------------------------------------------------------------

  /** Declares consumers and names those that run. Resolves with the resulting table. */
  declareConsumers(declaration: ConsumerDeclaration): Promise<ConsumerTable>;

  /** Every declared consumer. */
  consumers(): Promise<ConsumerTable>;

  /** Removes a consumer that no live lease runs. Rows that wait for it become claimable, with a `removing` delivery. */
  removeConsumer(removal: ConsumerRemoval): Promise<RemovalResult>;

  // Due table --------------------------------------------------------------------------------------------------------

  /**
   * Changes due rows outside of a space's commit. The result says for each change whether it was made: `take` and
   * `cancel` need an existing row, `add` a missing one. A failed `take` or `add` stops the list; all later changes
   * answer false.
   */
  changeDue(changes: readonly DueChange[]): Promise<readonly boolean[]>;

  /**
   * Rows due at or before `nowMs`, of one kind or of all, earliest first; equal deadlines in the order they were set.
   * They stay until they are taken.
   */
  dueRows(nowMs: number, limit: number, kind?: string): Promise<readonly DueRow[]>;

  /** One row; undefined if there is none. */
  dueRow(kind: string, key: string): Promise<DueRow | undefined>;

  /** The earliest deadline, of one kind or of all; undefined if there is no row. */
  earliestDue(kind?: string): Promise<number | undefined>;

  // Life -------------------------------------------------------------------------------------------------------------

  /** Why the store has stopped, in one sentence; undefined while it works. */
  readonly trouble: string | undefined;

  /** Work counted since the store was opened. */
  stats(): StoreStats;

  /** Writes the queued jobs, then closes. Later calls are refused. Closing twice is harmless. */
  close(): Promise<void>;
}

/** Receives the outcome of a commit. An `Error` replaces the rejection of a promise. */
export type CommitListener = (answer: CommitOutcome | Error) => void;

export interface UserTables {
  /** Whether a name, in lower case, is that of a table of the store. */
  isReserved(table: string): boolean;
}

export interface LoadResult {
  /** The space's sequence as of which the documents were read. */
  readonly sequence: number;
  /** Of the data (`connection.ts`). Sequences of two histories cannot be compared. */
  readonly history: string;
  readonly documents: readonly LoadedDocument[];
  /** Whether this or another space has labels. Present only if no document was requested. */
  readonly isLabelled?: boolean;
}

export interface LoadedDocument extends DocumentRef {
  /** Undefined if the document does not exist or only its tombstone is left. */
  readonly value: Json | undefined;
  /** The sequence of the last commit that changed it; 0 if there was none. */
  readonly sequence: number;
  readonly labels: readonly AddressLabels[];
}

/** The labels of one address of a document. */
export interface AddressLabels {
  readonly path: Path;
  readonly labels: readonly string[];
}

export interface ListRequest {
  readonly scope: string;
  /** An empty text lists all documents of the scope. */
  readonly prefix: string;
  /** Only ids after this one: the last id of the previous page. */
  readonly after?: string | undefined;
  /** At most `LIST_DOCUMENTS_MAX`. */
  readonly limit: number;
}

export interface ListPage {
  /** The space's sequence as of which the page was read. */
  readonly sequence: number;
  readonly documents: readonly ListedDocument[];
}

export interface ListedDocument {
  readonly id: string;
  /** Sequence of the last commit that changed it. */
  readonly sequence: number;
  readonly labels: readonly AddressLabels[];
}

export interface FeedPage {
  readonly commits: readonly FeedCommit[];
  /** The space's head sequence when the page was read. */
  readonly head: number;
  /** Of the data, when the page was read. */
  readonly history: string;
  /** True if commits after the requested sequence have been compacted away: reload instead. */
  readonly gap: boolean;
}

export interface FeedCommit {
  readonly sequence: number;
  readonly session: string;
  readonly localSequence: number;
  readonly patches: readonly DocumentPatch[];
  /** As written; each replaces the labels of its address. */
  readonly labels: readonly LabelWrite[];
}

export interface StoreChange {
  /** Spaces that may have changed; undefined if unknown. */
  readonly spaces: readonly string[] | undefined;
  /** Whether another process may have added journal or due rows. */
  readonly journal: boolean;
  /** Present if another store object or another process made one of the changes. */
  readonly isForeign?: true;
  /** Details that tell a listener whether it has to read. Only if this store object made all changes; may be absent. */
  readonly own?: OwnChange;
  /** Present if the state or the history of `Store.connection` has changed. */
  readonly connection?: true;
}

export interface OwnChange {
  /** The sequence of each changed space after the last change. */
  readonly sequences: ReadonlyMap<string, number>;
  /** Whether there may be new rows that a bus can claim. */
  readonly claimable: boolean;
  /** Whether due rows may have changed. */
  readonly due: boolean;
}

export interface ForgetRequest {
  readonly madeBeforeMs: number;
  readonly limit: number;
}

export interface Forgotten {
  readonly removed: number;
  /** The horizon after the call. */
  readonly horizonMs: number;
}

export interface RecordedBasis extends Omit<NodeBasis, "inputs"> {
  readonly inputs: readonly (BasisInput & {
    /** True if an input has changed since, if the document is labelled, or if the change log no longer reaches back. */
    readonly moved: boolean;
  })[];
}

export interface Lease {
  readonly lease: number;
  readonly expiresAtMs: number;
}

/** Done rows go back for these deliveries only; the deliveries of `others` count as done. */
export interface RequeueTarget {
  readonly subscribers: readonly string[];
  readonly others: readonly string[];
}

/** A repeated message id with the same content gets the stored id, so a repeated publish is harmless. */
export type AppendOutcome =
  | {
      readonly kind: "appended";
      /** 0 for an entry that was left out. */
      readonly ids: readonly number[];
      /** The reason for each entry that was left out, by its index. */
      readonly leftOut?: ReadonlyMap<number, Rejection>;
      /** Some entries were stored before; their rows are unchanged. */
      readonly repeated?: true;
    }
  | Rejection;

/** `consumers-moved`: decided by another version of the consumer table; the claim is still held. */
export type SettleResult = "settled" | "lease-lost" | "consumers-moved";

/** `soon`: no caller waits, so the write may join the next batch if one comes within milliseconds. Default: `now`. */
export type Urgency = "now" | "soon";

export interface StoreStats {
  /** Group commits that reached the disk. */
  readonly batches: number;
  /** Jobs (commits, appends, claims, settles, …) in these batches. */
  readonly jobs: number;
  /** SQL statements run, if the backend has any. */
  readonly statements: number;
  /** Bytes of payload, patch and snapshot text written. */
  readonly bytesWritten: number;
  /** The most bytes of documents that one upkeep job has read or written. */
  readonly upkeepBytesMax: number;
}

/** The codes of `StoreError`. */
export type StoreErrorCode =
  | "STORE_CLOSED"
  | "STORE_STOPPED"
  | "STORE_FULL"
  | "STORE_IO"
  | "STORE_BUSY"
  /** The server of the data cannot be reached now. No part of the call was done, and a later call may succeed. */
  | "STORE_AWAY"
  /** Acknowledged commits are gone since a restore or a failover; the message names them. */
  | "STORE_HISTORY_LOST"
  | "STORE_READ_ONLY"
  | "STORE_NOT_OURS"
  | "STORE_TOO_NEW"
  | "STORE_TOO_OLD"
  | "STORE_ENGINE_TOO_OLD"
  | "STORE_CORRUPT"
  | "STORE_OPEN_FAILED"
  /** An open transaction cannot continue because a document that it wrote to was replaced. Run it again. */
  | "STORE_STALE"
  | "STORE_MISUSE";

/** Misuse, or a store that cannot go on. The message has the remedy. */
export class StoreError extends MillraceError<StoreErrorCode> {
  override readonly name = "StoreError";
}
