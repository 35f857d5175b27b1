/**
 * The store on SQLite: every method of `Store` as a job of the writer or a read of one snapshot. `*-table.ts` has the
 * tables, `group-commit.ts` the writer, `open.ts` the checks of the file.
 *
 *   open ──close()──> closed        open ──I/O error, newer format──> stopped ──close()──> closed
 */

import type { Host } from "../../host/host.ts";
import type { CommitIdentity, CommitOutcome, CommitRequest } from "../commit.ts";
import type { StoreConnection } from "../connection.ts";
import {
  type ConsumerDeclaration,
  type ConsumerRemoval,
  type ConsumerTable,
  consumerKey,
  type RemovalResult,
} from "../consumer.ts";
import type { DocumentRef } from "../document.ts";
import { changeInOrder, type DueChange, type DueRow } from "../due.ts";
import type { Erased, EraseRequest } from "../erase.ts";
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
} from "../journal.ts";
import type { JournalPage, JournalPosition } from "../journal-position.ts";
import { withLeftOut } from "../left-out.ts";
import type { Rejection } from "../rejection.ts";
import {
  checkConsumers,
  checkCount,
  checkDueChanges,
  checkEnding,
  checkErase,
  checkForget,
  checkList,
  checkName,
  checkRef,
  checkTime,
} from "../request-check.ts";
import {
  type AppendOutcome,
  type CommitListener,
  type FeedPage,
  type ForgetRequest,
  type Forgotten,
  type Lease,
  type ListPage,
  type ListRequest,
  type LoadResult,
  type RecordedBasis,
  type RequeueTarget,
  type SettleResult,
  type Store,
  type StoreChange,
  StoreError,
  type StoreStats,
  type Urgency,
} from "../store.ts";
import { ALL_ROWS, CLAIMABLE, DUE, noteOfAppend, noteOfSettle, SETTLED, type WriteNote } from "../write-note.ts";
import { BatchChanges } from "./batch-changes.ts";
import { CommitJob, promised } from "./commit-job.ts";
import { CommitWriter, encodeCommit, ownSettlement } from "./commit-writer.ts";
import type { SqliteConnection } from "./connection.ts";
import { DocumentReads } from "./document-reads.ts";
import { encodeDueChange } from "./due-table.ts";
import { eraseSubject } from "./erase.ts";
import { GroupCommit } from "./group-commit.ts";
import { errorOf, PendingJob } from "./job-queue.ts";
import { encodeEntries } from "./journal-entry.ts";
import { countJournal, followJournal, journalEnd, queryJournal } from "./journal-query.ts";
import { acceptRemoved, JournalRetention, startRetention } from "./journal-retention.ts";
import type { OpenMark } from "./open-mark.ts";
import type { ResolvedOptions } from "./options.ts";
import { loadInSlices, openReader, PatientReads } from "./reader.ts";
import { ReceiptRemoval, startForgetting } from "./receipt-removal.ts";
import { engineTrouble } from "./sqlite-error.ts";
import { Tables } from "./tables.ts";
import { Upkeep } from "./upkeep.ts";
import { USER_TABLES } from "./user-statements.ts";
import { verifyStore } from "./verify.ts";
import { ChangeWatch } from "./watch.ts";

/** Larger loads use their own connection, in slices, so that they do not block the event loop. */
const LOAD_AT_ONCE_MAX = 500;
/** Nodes whose basis is read at once. */
const BASIS_AT_ONCE_MAX = 1_000;

export class SqliteStore implements Store {
  readonly backend = "sqlite";
  readonly userTables = USER_TABLES;
  readonly #options: ResolvedOptions;
  readonly #host: Host;
  readonly #connection: SqliteConnection;
  readonly #tables: Tables;
  readonly #writer: GroupCommit;
  readonly #commits: CommitWriter;
  readonly #reads: DocumentReads;
  readonly #patience: PatientReads;
  readonly #retention: JournalRetention;
  readonly #forgetting: ReceiptRemoval;
  readonly #upkeep: Upkeep;
  readonly #watch: ChangeWatch;
  readonly #news: BatchChanges;
  readonly #mark: OpenMark | undefined;
  readonly #lack: string | undefined;
  #closing: Promise<void> | undefined;

  /** `lack`: why commits of the file may be missing. */
  constructor(
    connection: SqliteConnection,
    options: ResolvedOptions,
    mark: OpenMark | undefined,
    lack: string | undefined,
  ) {
    this.#options = options;
    this.#mark = mark;
    this.#lack = lack;
    this.#host = options.host;
    this.#connection = connection;
    this.#tables = new Tables(connection);
    this.#watch = new ChangeWatch(options.host, options.path, () => this.#look());
    this.#news = new BatchChanges(this.#tables, this.#watch, (spaces, commits) =>
      this.#upkeep.queue(this.#writer, spaces, commits),
    );
    this.#writer = new GroupCommit(connection, this.#tables, this.#news, options);
    this.#commits = new CommitWriter(connection, this.#tables, this.#news, options);
    this.#reads = new DocumentReads(this.#tables, options.tuning.feedCommits);
    this.#patience = new PatientReads(options.host, options.tuning.lockWaitMs);
    this.#retention = new JournalRetention(connection);
    this.#forgetting = new ReceiptRemoval(connection, this.#tables);
    this.#upkeep = new Upkeep(this.#tables, options.tuning, connection.work);
  }

  get connection(): StoreConnection {
    return { state: "connected", history: this.#tables.knownHistory, parked: 0 };
  }

  now(): number {
    return this.#host.now();
  }

  // Documents --------------------------------------------------------------------------------------------------------

  async load(space: string, refs: readonly DocumentRef[]): Promise<LoadResult> {
    checkName("a space's name", space);
    for (const ref of refs) checkRef(ref);
    if (refs.length <= LOAD_AT_ONCE_MAX) return this.#read(() => this.#reads.load(space, refs));
    const own = refs.map(({ scope, id }) => ({ scope, id }));
    // The separate connection does not notice that the store has stopped, or must stop.
    await this.#read(() => undefined);
    return loadInSlices(this.#options, space, own, LOAD_AT_ONCE_MAX);
  }

  async list(space: string, request: ListRequest): Promise<ListPage> {
    checkName("a space's name", space);
    checkList(request);
    return this.#read(() => this.#reads.list(space, request));
  }

  commit(request: CommitRequest): Promise<CommitOutcome>;
  commit(request: CommitRequest, listener: CommitListener): Promise<CommitOutcome> | undefined;
  commit(request: CommitRequest, listener?: CommitListener): Promise<CommitOutcome> | undefined {
    if (listener === undefined) return promised((answered) => this.commit(request, answered));
    try {
      this.#requireWritable();
      const commit = encodeCommit(request, this.#host, this.#options.tuning.payloadBytesMax);
      if (commit.kind === "rejected") return Promise.resolve(commit);
      const job = new CommitJob(this.#commits, commit, listener);
      this.#writer.submit(job);
      job.state = "queued";
      return undefined;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async hasCommits(commits: readonly CommitIdentity[]): Promise<readonly boolean[]> {
    const own = commits.map(({ session, localSequence }) => ({ session, localSequence }));
    return this.#read(() => own.map((commit) => this.#tables.commits.commitOf(commit) !== undefined));
  }

  async changesSince(space: string, sequence: number, limit: number): Promise<FeedPage> {
    checkName("a space's name", space);
    checkCount("a limit", limit);
    return this.#read(() => this.#reads.changesSince(space, sequence, limit));
  }

  watch(listener: (change: StoreChange) => void): () => void {
    this.#requireOpen();
    return this.#watch.add(listener);
  }

  async basis(space: string, nodes: readonly string[]): Promise<readonly RecordedBasis[]> {
    const own = [...nodes];
    const found: RecordedBasis[] = [];
    for (let from = 0; from < own.length || from === 0; from += BASIS_AT_ONCE_MAX) {
      if (from > 0) await this.#host.yield();
      const slice = own.slice(from, from + BASIS_AT_ONCE_MAX);
      found.push(...(await this.#read(() => this.#reads.basis(space, slice))));
    }
    return found;
  }

  // Journal ----------------------------------------------------------------------------------------------------------

  append(entries: readonly JournalEntry[], leaveOut?: "too-large"): Promise<AppendOutcome> {
    return this.#submit(() => {
      const encoded = encodeEntries(entries, this.#host.now(), this.#options.tuning.payloadBytesMax, leaveOut);
      if (encoded.kind === "rejected") return encoded;
      const { leftOut } = encoded;
      const work = (): AppendOutcome => {
        this.#news.journal(noteOfAppend(entries));
        const outcome = this.#tables.append(encoded.entries);
        return leftOut === undefined ? outcome : withLeftOut(outcome, leftOut);
      };
      return { bytes: encoded.bytes, work };
    });
  }

  openLease(durationMs: number, running?: readonly string[]): Promise<Lease> {
    return this.#write("nothing", () => {
      checkTime("a lease's duration", durationMs);
      const own = running && [...running];
      return () => this.#tables.leases.open(this.#host, durationMs, own);
    });
  }

  renewLease(lease: number, durationMs: number): Promise<boolean> {
    return this.#write("nothing", () => {
      checkTime("a lease's duration", durationMs);
      return () => this.#tables.leases.renew(lease, this.#host.now(), durationMs);
    });
  }

  closeLease(lease: number): Promise<number> {
    return this.#write(CLAIMABLE, () => () => {
      this.#tables.leases.end(lease);
      return this.#tables.journal.abandonHeldBy(lease);
    });
  }

  claim(request: ClaimRequest): Promise<readonly Claim[]> {
    return this.#write("nothing", () => {
      checkCount("a limit", request.limit);
      const { kinds, consumers = [], exceptTopics = [] } = request;
      const own = { ...request, kinds: [...kinds], consumers: [...consumers], exceptTopics: [...exceptTopics] };
      return () => (this.#tables.leases.isLive(own.lease, this.#host.now()) ? this.#tables.journal.claim(own) : []);
    });
  }

  settle(settlements: readonly Settlement[], urgency: Urgency = "now"): Promise<readonly SettleResult[]> {
    const prepare = () => {
      const own = settlements.map(ownSettlement);
      return () => {
        const isOutdated = ({ consumers }: Settlement) =>
          consumers !== undefined && consumers !== this.#tables.consumers.version;
        return own.some(isOutdated) ? this.#settleCurrent(own, isOutdated) : this.#settleAll(own);
      };
    };
    return this.#write(noteOfSettle(settlements), prepare, urgency);
  }

  #settleAll(settlements: readonly Settlement[]): SettleResult[] {
    const held = this.#tables.journal.settleAll(settlements, this.#host.now());
    return held.map((isHeld) => (isHeld ? "settled" : "lease-lost"));
  }

  /** Settles those that were decided by the current version of the consumer table. */
  #settleCurrent(settlements: readonly Settlement[], isOutdated: (settlement: Settlement) => boolean): SettleResult[] {
    return settlements.map((one) => {
      if (!isOutdated(one)) return this.#settleAll([one])[0]!;
      return this.#tables.journal.holdsClaim(one) ? "consumers-moved" : "lease-lost";
    });
  }

  recover(): Promise<number> {
    return this.#write(CLAIMABLE, () => () => {
      this.#tables.leases.endDead(this.#host.now());
      return this.#tables.journal.abandonUnheld();
    });
  }

  conclude(ids: readonly number[], conclusion: Conclusion): Promise<readonly number[]> {
    return this.#write(SETTLED, () => {
      checkEnding(conclusion.ending);
      const [own, how] = [[...ids], { ...conclusion, ending: { ...conclusion.ending } }];
      return () => this.#tables.journal.conclude(own, how, this.#host.now());
    });
  }

  requeue(ids: readonly number[], onlyFor?: RequeueTarget): Promise<readonly number[]> {
    return this.#write(CLAIMABLE, () => {
      const own = [...ids];
      return () => this.#tables.journal.requeue(own, onlyFor);
    });
  }

  releaseRetries(nowMs: number): Promise<{ released: number; nextAtMs: number | undefined }> {
    return this.#write(CLAIMABLE, () => {
      checkTime("the time", nowMs);
      return () => this.#tables.journal.releaseRetries(nowMs);
    });
  }

  async query(query: JournalQuery): Promise<readonly JournalRow[]> {
    checkCount("a limit", query.limit);
    return this.#read(() => queryJournal(this.#connection, query));
  }

  async follow(after: JournalPosition, limit: number, topic?: string): Promise<JournalPage> {
    checkCount("a limit", limit);
    return this.#read(() => followJournal(this.#connection, this.#tables.history, after, { limit, topic }));
  }

  async journalEnd(): Promise<JournalPosition> {
    return this.#read(() => journalEnd(this.#connection, this.#tables.history));
  }

  async count(): Promise<Readonly<Record<JournalStatus, number>>> {
    return this.#read(() => countJournal(this.#connection));
  }

  /** The first job is queued at once, in order with other writes; a long journal takes further jobs. */
  async retain(retention: Retention): Promise<number> {
    checkCount("a limit", retention.limit);
    let run = startRetention(retention);
    do {
      const from = run;
      run = await this.#write("nothing", () => () => {
        // It must see settlements of the same batch.
        this.#tables.journal.flush();
        return this.#retention.advance(from);
      });
    } while (run.phase !== "finished");
    return run.removed;
  }

  /** In steps, like `retain`; the first step moves the horizon. */
  async forgetReceipts(request: ForgetRequest): Promise<Forgotten> {
    checkForget(request);
    let run = startForgetting({ ...request, madeBeforeMs: Math.min(request.madeBeforeMs, this.now()) });
    let horizonMs: number;
    do {
      const from = run;
      [run, horizonMs] = await this.#write("nothing", () => () => {
        // It must see documents and journal rows changed by the same batch.
        this.#tables.documents.flush();
        this.#tables.journal.flush();
        return [this.#forgetting.advance(from), this.#tables.receipts.horizonMs] as const;
      });
    } while (run.phase !== "finished");
    return { removed: run.removed, horizonMs };
  }

  acceptRemoved(): Promise<readonly RemovedRange[]> {
    return this.#write("nothing", () => () => {
      this.#tables.journal.flush();
      return acceptRemoved(this.#connection);
    });
  }

  async erase(request: EraseRequest): Promise<Erased> {
    checkErase(request);
    const own = { ...request };
    if (!own.apply) {
      this.#requireOpen();
      await using reader = openReader(this.#options);
      return eraseSubject(reader.connection, own);
    }
    const erased = await this.#write(ALL_ROWS, () => () => {
      this.#tables.flush();
      // Freed space is overwritten, even if the process dies before the file is rebuilt.
      this.#connection.exec("PRAGMA secure_delete = ON");
      const result = eraseSubject(this.#connection, own);
      this.#tables.forget();
      this.#moveSpaces();
      return result;
    });
    await this.#writer.rebuild();
    this.#connection.exec("PRAGMA secure_delete = OFF");
    return erased;
  }

  /** Notes in the log of commits that every space has moved, for replicas of this and of other processes. */
  #moveSpaces(): void {
    const session = `erasure ${this.#host.id()}`;
    for (const [at, { id, name, sequence }] of this.#tables.spaces.all().entries()) {
      const identity = { session, localSequence: at + 1, digest: "" };
      this.#tables.commits.add({ ...identity, space: id, sequence, journalIds: [], moves: true });
      this.#news.moved(name);
    }
  }

  async verify(): Promise<VerifyReport> {
    this.#requireOpen();
    await using reader = openReader(this.#options);
    const report = await verifyStore(reader.connection, this.#host);
    if (this.#lack === undefined || !this.#options.readOnly) return report;
    const isWhole = report.ok ? ({ isIncomplete: true } as const) : {};
    return { ...report, ...isWhole, ok: false, problems: [this.#lack, ...report.problems] };
  }

  // Consumers --------------------------------------------------------------------------------------------------------

  declareConsumers({ consumers, running }: ConsumerDeclaration): Promise<ConsumerTable> {
    return this.#write("nothing", () => {
      checkConsumers(consumers);
      const own = { consumers: [...consumers], ...(running && { running }) };
      return () => {
        this.#tables.consumers.declare(own, this.#host.now());
        return this.#tables.consumers.list(this.#host.now());
      };
    });
  }

  async consumers(): Promise<ConsumerTable> {
    return this.#read(() => this.#tables.consumers.list(this.#host.now()));
  }

  removeConsumer({ limit, exceptLease, ...consumer }: ConsumerRemoval): Promise<RemovalResult> {
    return this.#write(CLAIMABLE, () => {
      checkCount("a limit", limit);
      return () => {
        const { consumers, journal } = this.#tables;
        if (!consumers.has(consumer)) return "unknown";
        if (consumers.isRunning(consumer, this.#host.now(), exceptLease)) return "running";
        if (journal.stopWaiting(consumerKey(consumer), limit) === limit) return "partly";
        consumers.remove(consumer);
        return "removed";
      };
    });
  }

  // Due table --------------------------------------------------------------------------------------------------------

  changeDue(changes: readonly DueChange[]): Promise<readonly boolean[]> {
    return this.#write(DUE, () => {
      checkDueChanges(changes);
      const own = changes.map(encodeDueChange);
      return () => changeInOrder(own, (change) => this.#tables.due.change(change));
    });
  }

  async dueRows(nowMs: number, limit: number, kind?: string): Promise<readonly DueRow[]> {
    checkTime("the time", nowMs);
    checkCount("a limit", limit);
    return this.#read(() => this.#tables.due.due(nowMs, limit, kind));
  }

  async dueRow(kind: string, key: string): Promise<DueRow | undefined> {
    return this.#read(() => this.#tables.due.row(kind, key));
  }

  async earliestDue(kind?: string): Promise<number | undefined> {
    return this.#read(() => this.#tables.due.earliest(kind));
  }

  // Life -------------------------------------------------------------------------------------------------------------

  get trouble(): string | undefined {
    return this.#writer.trouble;
  }

  stats(): StoreStats {
    return { ...this.#connection.work };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.#watch.close();
    this.#upkeep.stop();
    await this.#writer.drain();
    if (this.#writer.isStopped) this.#connection.abandon();
    else {
      this.#clearMark();
      this.#connection.close();
    }
  }

  /** If it fails (full disk, lock), the next process that opens the file takes the mark over. */
  #clearMark(): void {
    try {
      this.#mark?.clear();
    } catch (error) {
      if (engineTrouble(error) === undefined) throw error;
    }
  }

  #requireOpen(): void {
    if (this.#closing) throw new StoreError("STORE_CLOSED", "the store was closed; open it again to go on");
  }

  #requireWritable(): void {
    this.#requireOpen();
    if (!this.#options.readOnly) return;
    throw new StoreError("STORE_READ_ONLY", "the store was opened with readOnly: true; open it without to write");
  }

  /** A write whose result includes rejections. */
  #submit<T>(prepare: () => Prepared<T> | Rejection): Promise<T | Rejection> {
    return new Promise((resolve, reject) => {
      this.#requireWritable();
      const prepared = prepare();
      if ("kind" in prepared) return resolve(prepared);
      const fail = (cause: Rejection | Error) => (cause instanceof Error ? reject(cause) : resolve(cause));
      this.#writer.submit(new PendingJob(prepared.bytes, prepared.work, resolve, fail));
    });
  }

  /**
   * A write that returns a result or throws. `prepare` checks and copies the arguments before the call returns; the
   * returned function does the work inside the transaction. `touches` is the kind of change that watchers are notified
   * of.
   */
  #write<T>(touches: WriteNote | "nothing", prepare: () => () => T, urgency: Urgency = "now"): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#requireWritable();
      const prepared = prepare();
      const work = () => {
        if (touches !== "nothing") this.#news.journal(touches);
        return prepared();
      };
      const fail = (cause: Rejection | Error) => reject(cause instanceof Error ? cause : errorOf(cause));
      this.#writer.submit(new PendingJob(0, work, resolve, fail), urgency);
    });
  }

  #read<T>(run: () => T): Promise<T> {
    return this.#patience.read(() => {
      this.#requireOpen();
      return this.#writer.read(run);
    });
  }

  /** Whether another process has written since the last check. */
  #look(): boolean {
    // Own writes also trigger this. Before a batch, which checks as well, asking the engine would only delay it.
    if (this.#closing || this.#writer.isStopped || this.#writer.hasQueued) return false;
    try {
      return this.#writer.noticeForeignWrites();
    } catch (error) {
      // The next check or the next caller meets the same error and can report it.
      if (engineTrouble(error) === undefined && !this.#writer.isStopped) throw error;
      return false;
    }
  }
}

/** A write that is ready for the writer. */
interface Prepared<T> {
  readonly bytes: number;
  readonly work: () => T;
}
