/**
 * The seam: the only door to durable data. Private to Millrace and allowed to change; every backend passes one conformance
 * suite (`test/store/conformance`). Nothing above this file knows which backend it is on.
 *
 * Rules of the house for a backend:
 * - What resolved is durable, under the durability the store was opened with.
 * - Expected outcomes are values (`rejection.ts`). A method throws `StoreError` for misuse and when the store has stopped.
 * - A method never calls back synchronously: outcomes arrive in a later microtask or task.
 * - Writes are applied in the order in which they were asked for, and answered in that order. An answer that shows a
 *   commit (a load, a page of the feed) comes after the answer to that commit.
 */

import type { Json } from "../message/json.ts";
import { MillraceError } from "../message/millrace-error.ts";
import type { Path } from "../message/path.ts";
import type { BasisInput, CommitOutcome, CommitRequest, DocumentPatch, LabelWrite, NodeBasis } from "./commit.ts";
import type { ConsumerDeclaration, ConsumerRemoval, ConsumerTable, RemovalResult } from "./consumer.ts";
import type { DocumentRef } from "./document.ts";
import type { DueChange, DueRow } from "./due.ts";
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
import type { Rejection } from "./rejection.ts";

export interface Store extends AsyncDisposable {
  readonly backend: "memory" | "sqlite" | "postgres";

  // Documents --------------------------------------------------------------------------------------------------------

  /** Current values and labels of documents, all as of one sequence of the space. */
  load(space: string, refs: readonly DocumentRef[]): Promise<LoadResult>;

  /**
   * A page of the documents that have a value, of one scope, with ids that begin with a prefix; in order of their ids as UTF-8. A page with
   * fewer than `limit` is the last. A commit can claim that the set is still the same (`MembershipClaim`).
   */
  list(space: string, request: ListRequest): Promise<ListPage>;

  /** One atomic unit of change; see `commit-rules.ts` for the order in which it is decided. */
  commit(request: CommitRequest): Promise<CommitOutcome>;

  /** The same for whoever makes very many: a backend may call him back, later, and then gives no promise. */
  commit(request: CommitRequest, listener: CommitListener): Promise<CommitOutcome> | undefined;

  /** Commits of a space after a sequence, oldest first, at most `limit`. */
  changesSince(space: string, sequence: number, limit: number): Promise<FeedPage>;

  /**
   * Calls the listener with the names of spaces that may have moved through somebody else (another process, another replica
   * of this store object). May call for nothing; never fails to call within 50 ms on one machine.
   */
  watch(listener: (change: StoreChange) => void): () => void;

  /** The recorded basis of nodes in the order asked, and whether what they read has moved since. Missing nodes are left out. */
  basis(space: string, nodes: readonly string[]): Promise<readonly RecordedBasis[]>;

  // Journal ----------------------------------------------------------------------------------------------------------

  /**
   * Appends messages in order, outside any space's commit. Ids are contiguous and increasing. All or none; but whoever has gathered what has nothing to
   * do with each other may have those left out that are too large, if others are left.
   */
  append(entries: readonly JournalEntry[], leaveOut?: "too-large"): Promise<AppendOutcome>;

  /** A new lease for this process incarnation; its number is greater than every earlier one. `running` are keys of consumers. */
  openLease(durationMs: number, running?: readonly string[]): Promise<Lease>;

  /** Extends a lease from now; false when it had expired and somebody recovered its rows: open a new one. */
  renewLease(lease: number, durationMs: number): Promise<boolean>;

  /** Ends a lease; its rows go back to pending. Resolves with how many. */
  closeLease(lease: number): Promise<number>;

  /** Hands out pending rows in order of id and marks them processing, in one transaction. */
  claim(request: ClaimRequest): Promise<readonly Claim[]>;

  /** Settles claims. The result says, claim by claim, whether it was still held. */
  settle(settlements: readonly Settlement[], urgency?: Urgency): Promise<readonly SettleResult[]>;

  /** Sends rows whose lease is not live back to pending; resolves with how many. Never touches a live process's rows. */
  recover(): Promise<number>;

  /**
   * Puts rows back to pending: those that failed, and those that are done as `unheard`. Deliveries
   * that succeeded stay. Resolves with the ids that were put back. With `onlyFor`, rows that are done go back for one consumer alone.
   */
  requeue(ids: readonly number[], onlyFor?: RequeueTarget): Promise<readonly number[]>;

  /** Closes rows without handling them, and keeps the reason; resolves with the ids that were in the state of the conclusion. */
  conclude(ids: readonly number[], conclusion: Conclusion): Promise<readonly number[]>;

  /** Makes rows claimable whose `nextAttemptAt` has come; resolves with how many, and when the next one comes. */
  releaseRetries(nowMs: number): Promise<{ readonly released: number; readonly nextAtMs: number | undefined }>;

  query(query: JournalQuery): Promise<readonly JournalRow[]>;

  /** The id that was given last, whether its row is still there or not; 0 where none was. */
  lastId(): Promise<number>;

  /** How many rows stand at each status. */
  count(): Promise<Readonly<Record<JournalStatus, number>>>;

  /** Removes done rows, at most `limit`; resolves with how many went. Dead letters stay. */
  retain(retention: Retention): Promise<number>;

  /**
   * Moves the horizon up to a time, if it is not beyond: receipts of what was made before may go, and what was made before and has none is taken no
   * more (`too-old`). Removes such receipts of commits that the feed no longer reaches, at most `limit`.
   */
  forgetReceipts(request: ForgetRequest): Promise<Forgotten>;

  /** Takes note of journal rows that were removed by hand: `verify` reports them no more. Resolves with their ranges. */
  acceptRemoved(): Promise<readonly RemovedRange[]>;

  /** Checks the hash chain, the documents' checksums and the backend's own structure. Reads everything. */
  verify(): Promise<VerifyReport>;

  // Consumers --------------------------------------------------------------------------------------------------------

  /** Declares consumers and names those that run; resolves with the table after it. */
  declareConsumers(declaration: ConsumerDeclaration): Promise<ConsumerTable>;

  /** Every declared consumer. */
  consumers(): Promise<ConsumerTable>;

  /** Removes a consumer that no live lease runs. Rows that wait for it become claimable, with a `removing` delivery. */
  removeConsumer(removal: ConsumerRemoval): Promise<RemovalResult>;

  // Due table --------------------------------------------------------------------------------------------------------

  /**
   * Changes due rows outside any space's commit. Each answers whether it was done: the row of a `take` or `cancel` was there, that
   * of an `add` was not. After a `take` or `add` that was not done nothing more is changed, and the rest is answered with false.
   */
  changeDue(changes: readonly DueChange[]): Promise<readonly boolean[]>;

  /** Rows due at or before `nowMs`, of one kind or of all, earliest first, equal deadlines in the order they were set. They stay until taken. */
  dueRows(nowMs: number, limit: number, kind?: string): Promise<readonly DueRow[]>;

  /** One row; undefined if there is none. */
  dueRow(kind: string, key: string): Promise<DueRow | undefined>;

  /** The earliest deadline, of one kind or of all, or undefined when nothing is due ever. */
  earliestDue(kind?: string): Promise<number | undefined>;

  // Life -------------------------------------------------------------------------------------------------------------

  /** Why the store has stopped, in one sentence; undefined while it works. */
  readonly trouble: string | undefined;

  /** Counted work since the store was opened. */
  stats(): StoreStats;

  /** Writes what is queued, then closes. Later calls are refused. Closing twice is fine. */
  close(): Promise<void>;
}

/** Hears what became of a commit; an error stands for a promise that is rejected with it. */
export type CommitListener = (answer: CommitOutcome | Error) => void;

export interface LoadResult {
  /** The space's sequence as of which the documents were read. */
  readonly sequence: number;
  readonly documents: readonly LoadedDocument[];
  /** Whether anything is labelled, in this space or in another; told to whoever asks for no document. */
  readonly isLabelled?: boolean;
}

export interface LoadedDocument extends DocumentRef {
  /** Undefined when there is none, and when only a tombstone is left. */
  readonly value: Json | undefined;
  /** The sequence of the last commit that changed it; 0 when there never was one. */
  readonly sequence: number;
  readonly labels: readonly AddressLabels[];
}

/** What one address of a document is labelled with. */
export interface AddressLabels {
  readonly path: Path;
  readonly labels: readonly string[];
}

export interface ListRequest {
  readonly scope: string;
  /** The empty text for all documents of the scope. */
  readonly prefix: string;
  /** Only ids after this one: the last id of the page before. */
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
  /** Of the last commit that changed it. */
  readonly sequence: number;
  readonly labels: readonly AddressLabels[];
}

export interface FeedPage {
  readonly commits: readonly FeedCommit[];
  /** The space's head sequence when the page was read. */
  readonly head: number;
  /** True when commits after the asked sequence have been compacted away: reload instead. */
  readonly gap: boolean;
}

export interface FeedCommit {
  readonly sequence: number;
  readonly session: string;
  readonly localSequence: number;
  readonly patches: readonly DocumentPatch[];
  /** As they were made; each replaces the labels of its address. */
  readonly labels: readonly LabelWrite[];
}

export interface StoreChange {
  /** Spaces that may have moved; undefined when it is not known which. */
  readonly spaces: readonly string[] | undefined;
  /** Whether journal or due rows may have come from somebody else. */
  readonly journal: boolean;
}

export interface ForgetRequest {
  readonly madeBeforeMs: number;
  readonly limit: number;
}

export interface Forgotten {
  readonly removed: number;
  /** As it stands now. */
  readonly horizonMs: number;
}

export interface RecordedBasis extends Omit<NodeBasis, "inputs"> {
  readonly inputs: readonly (BasisInput & {
    /** True when something the node read has changed since, when the document is labelled, or when it can no longer be told. */
    readonly moved: boolean;
  })[];
}

export interface Lease {
  readonly lease: number;
  readonly expiresAtMs: number;
}

/** Rows that are done go back for these deliveries alone; the deliveries of `others` count as done. */
export interface RequeueTarget {
  readonly subscribers: readonly string[];
  readonly others: readonly string[];
}

/** Same message id and same content: the stored id again, so that a repeated publish is harmless. */
export type AppendOutcome =
  | {
      readonly kind: "appended";
      /** 0 for one that was left out. */
      readonly ids: readonly number[];
      /** Why, by its place. */
      readonly leftOut?: ReadonlyMap<number, Rejection>;
      /** Some of them were there already; their rows are as they were. */
      readonly repeated?: true;
    }
  | Rejection;

/** `consumers-moved`: decided by another version of the consumer table; the claim is still held. */
export type SettleResult = "settled" | "lease-lost" | "consumers-moved";

/** `soon`: nobody waits for it, so that it may go with whatever is written next, if that comes within milliseconds. `now` unless given. */
export type Urgency = "now" | "soon";

export interface StoreStats {
  /** Group commits that reached the disk. */
  readonly batches: number;
  /** Jobs (commits, appends, claims, settles, …) in them. */
  readonly jobs: number;
  /** SQL statements run, where there are any. */
  readonly statements: number;
  /** Bytes of payload, patch and snapshot text written. */
  readonly bytesWritten: number;
  /** The most bytes of documents that one job of the store's own upkeep has read or written. */
  readonly upkeepBytesMax: number;
}

export type StoreErrorCode =
  | "STORE_CLOSED"
  | "STORE_STOPPED"
  | "STORE_FULL"
  | "STORE_IO"
  | "STORE_BUSY"
  | "STORE_READ_ONLY"
  | "STORE_NOT_OURS"
  | "STORE_TOO_NEW"
  | "STORE_TOO_OLD"
  | "STORE_ENGINE_TOO_OLD"
  | "STORE_CORRUPT"
  | "STORE_OPEN_FAILED"
  /** An open transaction cannot go on: what it wrote into has been replaced. Run it again. */
  | "STORE_STALE"
  | "STORE_MISUSE";

/** Misuse, or a store that cannot go on. The message says what to do. */
export class StoreError extends MillraceError<StoreErrorCode> {
  override readonly name = "StoreError";
}
