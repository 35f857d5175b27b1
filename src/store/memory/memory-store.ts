/**
 * The memory backend: the whole `Store` on maps, for tests, browsers and the simulator. SPEC: S1, and every rule of the
 * store interface except those about a disk. Data live as long as the `MemoryDisk`, on which a store can be opened
 * again.
 *
 * A method works when it is called and answers through its promise, so writes are applied and answered in the order of
 * the calls, each answer in a later microtask (S13).
 */
import type { Host } from "../../host/host.ts";
import { systemHost } from "../../host/system-host.ts";
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
import { type JournalPage, type JournalPosition, withinPosition } from "../journal-position.ts";
import { withLeftOut } from "../left-out.ts";
import type { Rejection } from "../rejection.ts";
import {
  checkCommit,
  checkConsumers,
  checkCount,
  checkDueChanges,
  checkEnding,
  checkEntries,
  checkErase,
  checkForget,
  checkList,
  checkName,
  checkRef,
  checkSettlements,
  checkTime,
} from "../request-check.ts";
import {
  type AppendOutcome,
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
} from "../store.ts";
import {
  ALL_ROWS,
  CLAIMABLE,
  DUE,
  noteOfAppend,
  noteOfCommit,
  noteOfSettle,
  SETTLED,
  type WriteNote,
} from "../write-note.ts";
import type { DocumentDisk } from "./document-disk.ts";
import { ChangeWatcher } from "./document-disk.ts";
import { findRefusal, findTooLarge } from "./entry-refusal.ts";
import { jsonBytes } from "./json-copy.ts";
import type { MemoryLane } from "./lane.ts";
import { type Committer, commitTo } from "./memory-commit.ts";
import { MemoryDisk } from "./memory-disk.ts";

/** Options of `memoryStore`. */
export interface MemoryStoreOptions {
  /** Clock and randomness; defaults to those of the process. */
  readonly host?: Host;
  /** The data; defaults to a new, empty disk. */
  readonly disk?: MemoryDisk;
}

/** Opens a store in memory, with a journal, timers and consumers. */
export function memoryStore({ host = systemHost(), disk = new MemoryDisk() }: MemoryStoreOptions = {}): Store {
  return new MemoryStore(host, disk);
}

/** A store on a disk in memory. A disk without a journal refuses events, timers and consumers. */
export class MemoryStore implements Store {
  readonly backend = "memory";
  readonly trouble = undefined;
  readonly #host: Host;
  readonly #disk: DocumentDisk;
  readonly #watchers = new Set<ChangeWatcher>();
  #closed = false;
  /** Writes requested from this store object. */
  #jobs = 0;
  readonly connection: StoreConnection;
  readonly #committer: Committer & { readonly lane: MemoryLane };

  constructor(host: Host, disk: DocumentDisk) {
    this.#host = host;
    this.#disk = disk;
    this.#committer = { host, lane: disk.open(host), work: { bytesWritten: 0 } };
    this.connection = { state: "connected", history: disk.history, parked: 0 };
  }

  now(): number {
    return this.#host.now();
  }

  async load(space: string, refs: readonly DocumentRef[]): Promise<LoadResult> {
    this.#requireOpen();
    checkName("a space's name", space);
    for (const ref of refs) checkRef(ref);
    return { ...this.#disk.space(space).load(refs), history: this.connection.history };
  }

  async list(space: string, request: ListRequest): Promise<ListPage> {
    this.#requireOpen();
    checkName("a space's name", space);
    checkList(request);
    return this.#disk.space(space).list(request);
  }

  /** Not `async`: every commit would pay for the frame of an async function. */
  commit(request: CommitRequest): Promise<CommitOutcome> {
    try {
      return Promise.resolve(this.#commit(request));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #commit(request: CommitRequest): CommitOutcome {
    this.#requireOpen();
    checkCommit(request);
    if (request.statements !== undefined) throw new StoreError("STORE_MISUSE", "a store in memory has no tables");
    const journal = request.entries.length > 0 || request.settlements.length > 0 || request.due.length > 0;
    // Throws before anything is written.
    if (journal) void this.#disk.tables;
    const outcome = commitTo(this.#disk, request, this.#committer);
    this.#jobs++;
    if (outcome.kind !== "committed" || outcome.replayed) return outcome;
    for (const id of outcome.journalIds) this.#committer.lane.see(id);
    this.#countPayload(request.entries);
    const movesSpace = request.patches.length > 0 || request.labels.length > 0;
    if (movesSpace || journal)
      this.#disk.announce(noteOfCommit(request, movesSpace ? outcome.sequence : undefined), this);
    return outcome;
  }

  async changesSince(space: string, sequence: number, limit: number): Promise<FeedPage> {
    this.#requireOpen();
    checkCount("a limit", limit);
    return { ...this.#disk.space(space).changesSince(sequence, limit), history: this.connection.history };
  }

  async hasCommits(commits: readonly CommitIdentity[]): Promise<readonly boolean[]> {
    this.#requireOpen();
    return commits.map((commit) => this.#disk.commitOf(commit) !== undefined);
  }

  watch(listener: (change: StoreChange) => void): () => void {
    this.#requireOpen();
    const watcher = new ChangeWatcher(this.#host, this, listener);
    const stop = () => {
      watcher.stop();
      this.#watchers.delete(watcher);
      this.#disk.unwatch(watcher);
    };
    this.#watchers.add(watcher);
    this.#disk.watch(watcher);
    return stop;
  }

  async basis(space: string, nodes: readonly string[]): Promise<readonly RecordedBasis[]> {
    this.#requireOpen();
    return this.#disk.space(space).basis(nodes);
  }

  async append(entries: readonly JournalEntry[], leaveOut?: "too-large"): Promise<AppendOutcome> {
    this.#requireOpen();
    checkEntries(entries);
    this.#jobs++;
    const refusal = findRefusal(entries, this.#disk);
    if (refusal?.reason === "too-large" && leaveOut === "too-large") return this.#appendFitting(entries, refusal);
    return refusal ?? this.#append(entries);
  }

  #appendFitting(entries: readonly JournalEntry[], refusal: Rejection): AppendOutcome {
    const leftOut = new Map<number, Rejection>();
    for (const [at, entry] of entries.entries()) {
      const tooLarge = findTooLarge(entry, this.#disk.payloadBytesMax);
      if (tooLarge !== undefined) leftOut.set(at, tooLarge);
    }
    const fitting = entries.filter((_, at) => !leftOut.has(at));
    const other = fitting.length === 0 ? refusal : findRefusal(fitting, this.#disk);
    return other ?? withLeftOut(this.#append(fitting), leftOut);
  }

  #append(entries: readonly JournalEntry[]): AppendOutcome {
    const { journal } = this.#disk.tables;
    const before = journal.size;
    const { lane } = this.#committer;
    const ids = journal.append(entries, this.#host.now(), lane);
    for (const id of ids) lane.see(id);
    const isRepeated = journal.size - before < entries.length;
    this.#countPayload(entries);
    this.#announce(noteOfAppend(entries));
    return isRepeated ? { kind: "appended", ids, repeated: true } : { kind: "appended", ids };
  }

  async openLease(durationMs: number, running?: readonly string[]): Promise<Lease> {
    this.#requireOpen();
    checkTime("a lease's duration", durationMs);
    this.#jobs++;
    return this.#disk.tables.leases.open(this.#host, durationMs, running);
  }

  async renewLease(lease: number, durationMs: number): Promise<boolean> {
    this.#requireOpen();
    checkTime("a lease's duration", durationMs);
    this.#jobs++;
    return this.#disk.tables.leases.renew(lease, this.#host.now(), durationMs);
  }

  async closeLease(lease: number): Promise<number> {
    this.#requireOpen();
    this.#jobs++;
    this.#disk.tables.leases.end(lease);
    const abandoned = this.#disk.tables.journal.abandonHeldBy(lease);
    if (abandoned > 0) this.#announce(CLAIMABLE);
    return abandoned;
  }

  async claim(request: ClaimRequest): Promise<readonly Claim[]> {
    this.#requireOpen();
    checkCount("a limit", request.limit);
    this.#jobs++;
    const claims = this.#disk.tables.journal.claim(request, this.#host.now());
    for (const { row } of claims) this.#committer.lane.see(row.id);
    return claims;
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    this.#requireOpen();
    checkSettlements(settlements);
    this.#jobs++;
    const nowMs = this.#host.now();
    const results = settlements.map((settlement): SettleResult => {
      if (this.#isOutdated(settlement)) return "consumers-moved";
      return this.#disk.tables.journal.settle(settlement, nowMs) ? "settled" : "lease-lost";
    });
    this.#announce(noteOfSettle(settlements));
    return results;
  }

  /** Whether a settlement with a held claim was decided by another version of the consumer table. */
  #isOutdated(settlement: Settlement): boolean {
    const { consumers, journal } = this.#disk.tables;
    if (settlement.consumers === undefined || settlement.consumers === consumers.version) return false;
    return journal.holdsClaim(settlement);
  }

  async recover(): Promise<number> {
    this.#requireOpen();
    this.#jobs++;
    const nowMs = this.#host.now();
    this.#disk.tables.leases.endExpired(nowMs);
    const recovered = this.#disk.tables.journal.recover(nowMs);
    if (recovered > 0) this.#announce(CLAIMABLE);
    return recovered;
  }

  async requeue(ids: readonly number[], onlyFor?: RequeueTarget): Promise<readonly number[]> {
    this.#requireOpen();
    this.#jobs++;
    const requeued = this.#disk.tables.journal.requeue(ids, onlyFor);
    if (requeued.length > 0) this.#announce(CLAIMABLE);
    return requeued;
  }

  async conclude(ids: readonly number[], conclusion: Conclusion): Promise<readonly number[]> {
    this.#requireOpen();
    checkEnding(conclusion.ending);
    this.#jobs++;
    const concluded = this.#disk.tables.journal.conclude(
      ids,
      { ...conclusion, ending: { ...conclusion.ending } },
      this.#host.now(),
    );
    if (concluded.length > 0) this.#announce(SETTLED);
    return concluded;
  }

  async releaseRetries(nowMs: number): Promise<{ released: number; nextAtMs: number | undefined }> {
    this.#requireOpen();
    checkTime("the time", nowMs);
    this.#jobs++;
    const result = this.#disk.tables.journal.releaseRetries(nowMs);
    if (result.released > 0) this.#announce(CLAIMABLE);
    return result;
  }

  async query(query: JournalQuery): Promise<readonly JournalRow[]> {
    this.#requireOpen();
    checkCount("a limit", query.limit);
    return this.#seen(this.#disk.tables.journal.query(query));
  }

  async follow(after: JournalPosition, limit: number, topic?: string): Promise<JournalPage> {
    this.#requireOpen();
    checkCount("a limit", limit);
    const { history } = this.connection;
    const { journal } = this.#disk.tables;
    if (after.history !== "" && after.history !== history)
      return { rows: [], end: withinPosition(after, { history, lanes: journal.lastIds }), isFull: true, gone: [] };
    const { rows, lanes, ...page } = journal.follow(after.lanes, limit, topic);
    return { rows: this.#seen(rows), end: { history, lanes }, ...page };
  }

  async journalEnd(): Promise<JournalPosition> {
    this.#requireOpen();
    return { history: this.connection.history, lanes: new Map(this.#disk.tables.journal.lastIds) };
  }

  #seen(rows: readonly JournalRow[]): readonly JournalRow[] {
    for (const { id } of rows) this.#committer.lane.see(id);
    return rows;
  }

  async count(): Promise<Readonly<Record<JournalStatus, number>>> {
    this.#requireOpen();
    return this.#disk.tables.journal.count();
  }

  async retain(retention: Retention): Promise<number> {
    this.#requireOpen();
    checkCount("a limit", retention.limit);
    this.#jobs++;
    return this.#disk.tables.journal.retain(retention);
  }

  async forgetReceipts(request: ForgetRequest): Promise<Forgotten> {
    this.#requireOpen();
    checkForget(request);
    this.#jobs++;
    const removed = this.#disk.forgetReceipts({
      ...request,
      madeBeforeMs: Math.min(request.madeBeforeMs, this.now()),
    });
    return { removed, horizonMs: this.#disk.horizonMs };
  }

  /** Rows in memory cannot be removed by hand. */
  async acceptRemoved(): Promise<readonly RemovedRange[]> {
    this.#requireOpen();
    return [];
  }

  async erase(request: EraseRequest): Promise<Erased> {
    this.#requireOpen();
    checkErase(request);
    const erased = this.#disk.erase(request);
    if (!request.apply) return erased;
    this.#jobs++;
    for (const name of this.#disk.spaces.keys()) this.#disk.announce({ ...ALL_ROWS, space: name }, this);
    return erased;
  }

  async verify(): Promise<VerifyReport> {
    this.#requireOpen();
    const journal = this.#disk.hasJournal ? this.#disk.tables.journal : undefined;
    const problems = journal?.problems() ?? [];
    let documents = 0;
    for (const [name, space] of this.#disk.spaces) {
      documents += space.documentCount;
      for (const problem of space.problems()) problems.push(`space ${name}: ${problem}`);
    }
    const ok = problems.length === 0;
    return { ok, rows: journal?.size ?? 0, unsigned: 0, documents, problems: problems.slice(0, 100) };
  }

  async declareConsumers(declaration: ConsumerDeclaration): Promise<ConsumerTable> {
    this.#requireOpen();
    checkConsumers(declaration.consumers);
    this.#jobs++;
    this.#disk.tables.consumers.declare(declaration, this.#host.now());
    return this.#consumers();
  }

  async consumers(): Promise<ConsumerTable> {
    this.#requireOpen();
    return this.#consumers();
  }

  #consumers(): ConsumerTable {
    const { consumers, journal } = this.#disk.tables;
    const list = consumers.list((key) => journal.waiting(key), this.#host.now());
    return { version: consumers.version, consumers: list };
  }

  async removeConsumer({ limit, exceptLease, ...consumer }: ConsumerRemoval): Promise<RemovalResult> {
    this.#requireOpen();
    checkCount("a limit", limit);
    this.#jobs++;
    const { consumers, journal } = this.#disk.tables;
    const key = consumerKey(consumer);
    if (!consumers.has(key)) return "unknown";
    if (consumers.leasesOf(consumer, this.#host.now()).some((lease) => lease !== exceptLease)) return "running";
    const isOver = journal.stopWaiting(key, limit) < limit;
    if (isOver) consumers.remove(key);
    this.#announce(CLAIMABLE);
    return isOver ? "removed" : "partly";
  }

  async changeDue(changes: readonly DueChange[]): Promise<readonly boolean[]> {
    this.#requireOpen();
    checkDueChanges(changes);
    this.#jobs++;
    const results = changeInOrder(changes, (change) => this.#disk.tables.due.change(change));
    this.#announce(DUE);
    return results;
  }

  async dueRows(nowMs: number, limit: number, kind?: string): Promise<readonly DueRow[]> {
    this.#requireOpen();
    checkTime("the time", nowMs);
    checkCount("a limit", limit);
    return this.#disk.tables.due.due(nowMs, limit, kind);
  }

  async dueRow(kind: string, key: string): Promise<DueRow | undefined> {
    this.#requireOpen();
    return this.#disk.tables.due.row(kind, key);
  }

  async earliestDue(kind?: string): Promise<number | undefined> {
    this.#requireOpen();
    return this.#disk.tables.due.earliest(kind);
  }

  stats(): StoreStats {
    return {
      batches: this.#jobs,
      jobs: this.#jobs,
      statements: 0,
      bytesWritten: this.#committer.work.bytesWritten,
      upkeepBytesMax: 0,
    };
  }

  async close(): Promise<void> {
    if (!this.#closed) this.#disk.close(this.#committer.lane);
    this.#closed = true;
    for (const watcher of this.#watchers) {
      watcher.stop();
      this.#disk.unwatch(watcher);
    }
    this.#watchers.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #requireOpen(): void {
    if (this.#closed) throw new StoreError("STORE_CLOSED", "the store was closed; open it again to go on");
  }

  #announce(note: WriteNote): void {
    this.#disk.announce(note, this);
  }

  #countPayload(entries: readonly JournalEntry[]): void {
    for (const { message } of entries) this.#committer.work.bytesWritten += jsonBytes(message.data);
  }
}
