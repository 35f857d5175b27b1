/**
 * The store on Postgres, for several kernels on several machines. Writes go through one `Writer`, reads through a
 * connection of their own. SPEC: S1, S260-S270; decision 0042.
 */
import type { CommitIdentity, CommitOutcome, CommitRequest } from "../commit.ts";
import type { StoreConnection } from "../connection.ts";
import type { ConsumerDeclaration, ConsumerRemoval, ConsumerTable, RemovalResult } from "../consumer.ts";
import type { DocumentRef } from "../document.ts";
import type { DueChange, DueRow } from "../due.ts";
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
import {
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
import { encodeEntries } from "../sqlite/journal-entry.ts";
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
  type UserTables,
} from "../store.ts";
import type { BatchAnswer } from "./batch.ts";
import { hasCommits } from "./commit-decision.ts";
import { databaseError } from "./database-error.ts";
import * as documents from "./document-reads.ts";
import { eraseSubject } from "./erase.ts";
import { commitJob, type Job, type StatementsJob } from "./jobs.ts";
import { countJournal, dueRowOf, followJournal, journalEnd, queryJournal } from "./journal-reads.ts";
import { rowOfView } from "./journal-states.ts";
import * as work from "./journal-work.ts";
import { DatabaseLink, type Row } from "./link.ts";
import { migrate, requireSchema, schemaVersion } from "./migrations.ts";
import { type PostgresStoreOptions, type ResolvedOptions, resolveOptions } from "./options.ts";
import { foldDocument, TRIM_COMMITS, trimSpace } from "./upkeep.ts";
import { verifyStore } from "./verify.ts";
import { Watch } from "./watch.ts";
import { Writer } from "./writer.ts";

/** Opens a store; makes or upgrades its schema first. Closes itself if that fails. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const resolved = resolveOptions(options);
  try {
    const link = await DatabaseLink.open(resolved);
    try {
      if (resolved.readOnly) await requireSchema(link, resolved.schema);
      else await migrate(link, resolved.schema);
    } finally {
      await link.close();
    }
    const store = new PostgresStore(resolved);
    await store.open();
    return store;
  } catch (thrown) {
    throw openFailed(thrown);
  }
}

function openFailed(thrown: unknown): StoreError {
  if (thrown instanceof StoreError) return thrown;
  const error = databaseError(thrown);
  const text = `the Postgres store cannot be opened: ${error.message}; check its URL, and that the server runs`;
  return new StoreError("STORE_OPEN_FAILED", text, { cause: error });
}

export class PostgresStore implements Store {
  readonly backend = "postgres";
  readonly userTables: UserTables;
  readonly #options: ResolvedOptions;
  readonly #m: string;
  readonly #writer: Writer;
  readonly #watch: Watch;
  #reader: Promise<DatabaseLink> | undefined;
  #closing: Promise<void> | undefined;
  #isClosed = false;
  /** Commits per space since its change log was shortened. */
  readonly #moves = new Map<string, number>();
  #readStatements = 0;
  /** `isAsked`: rows were published since the last look began. */
  #outbox = { isMoving: false, isAsked: false };

  constructor(options: ResolvedOptions) {
    this.#options = options;
    this.#m = options.schema;
    this.userTables = { isReserved: (table) => table.startsWith(`${options.schema}.`) };
    this.#writer = new Writer(options, {
      wrote: (spaces, journal) => this.#wrote(spaces, journal),
      fold: (list) => this.#fold(list),
      connection: () => this.#watch.connectionChanged(),
    });
    this.#watch = new Watch(
      options,
      () => this.#writer.incarnation,
      () => this.#moveOutbox(),
    );
  }

  async open(): Promise<void> {
    await this.#writer.open();
    await this.#read((link) => this.#watch.begin(link));
  }

  // Documents --------------------------------------------------------------------------------------------------------

  async load(space: string, refs: readonly DocumentRef[]): Promise<LoadResult> {
    checkName("a space's name", space);
    for (const ref of refs) checkRef(ref);
    const own = refs.map(({ scope, id }) => ({ scope, id }));
    const result = await this.#read((link) => documents.load(link, this.#m, space, own));
    this.#writer.sawHistory(result.history);
    return result;
  }

  async list(space: string, request: ListRequest): Promise<ListPage> {
    checkName("a space's name", space);
    checkList(request);
    const own = { ...request };
    return this.#read((link) => documents.list(link, this.#m, space, own));
  }

  commit(request: CommitRequest): Promise<CommitOutcome>;
  commit(request: CommitRequest, listener: CommitListener): Promise<CommitOutcome> | undefined;
  commit(request: CommitRequest, listener?: CommitListener): Promise<CommitOutcome> | undefined {
    if (listener === undefined) {
      return new Promise((resolve, reject) => {
        const settle = (answer: CommitOutcome | Error) => (answer instanceof Error ? reject(answer) : resolve(answer));
        this.commit(request, settle)?.then(resolve, reject);
      });
    }
    try {
      this.#requireOpen();
      const job = commitJob(request, this.#options.host.now(), this.#options.tuning.payloadBytesMax, listener);
      if (job.kind === "rejected") return Promise.resolve(job);
      this.#writer.submit(job);
      return undefined;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async hasCommits(commits: readonly CommitIdentity[]): Promise<readonly boolean[]> {
    const own = commits.map(({ session, localSequence }) => ({ session, localSequence }));
    return this.#read((link) => hasCommits(link, this.#m, own));
  }

  async changesSince(space: string, sequence: number, limit: number): Promise<FeedPage> {
    checkName("a space's name", space);
    checkCount("a limit", limit);
    const { feedCommits } = this.#options.tuning;
    const page = await this.#read((link) => documents.changesSince(link, this.#m, space, sequence, limit, feedCommits));
    this.#writer.sawHistory(page.history);
    return page;
  }

  watch(listener: (change: StoreChange) => void): () => void {
    this.#requireOpen();
    return this.#watch.add(listener);
  }

  async basis(space: string, nodes: readonly string[]): Promise<readonly RecordedBasis[]> {
    const own = [...nodes];
    return this.#read((link) => documents.basis(link, this.#m, space, own, this.#options.tuning.feedCommits));
  }

  // Journal ----------------------------------------------------------------------------------------------------------

  async append(entries: readonly JournalEntry[], leaveOut?: "too-large"): Promise<AppendOutcome> {
    this.#requireOpen();
    checkEntries(entries);
    const encoded = encodeEntries(entries, this.#options.host.now(), this.#options.tuning.payloadBytesMax, leaveOut);
    if (encoded.kind === "rejected") return encoded;
    const { bytes, leftOut } = encoded;
    const outcome = await this.#submit<AppendOutcome>((answer) => ({
      kind: "append",
      entries: encoded.entries,
      bytes,
      answer,
    }));
    return leftOut === undefined ? outcome : withLeftOut(outcome, leftOut);
  }

  async openLease(durationMs: number, running: readonly string[] = []): Promise<Lease> {
    checkTime("a lease's duration", durationMs);
    const [own, bits] = [[...running], this.#options.host.random()];
    return this.#statements("nothing", (link, nowMs) => work.openLease(link, this.#m, nowMs, durationMs, bits, own));
  }

  async renewLease(lease: number, durationMs: number): Promise<boolean> {
    checkTime("a lease's duration", durationMs);
    return this.#statements("nothing", (link, nowMs) => work.renewLease(link, this.#m, lease, nowMs + durationMs));
  }

  async closeLease(lease: number): Promise<number> {
    return this.#statements("journal", (link) => work.closeLease(link, this.#m, lease), "waits");
  }

  async claim({ lease, limit, kinds, consumers, exceptTopics, suspects }: ClaimRequest): Promise<readonly Claim[]> {
    this.#requireOpen();
    checkCount("a limit", limit);
    const argument = JSON.stringify({
      lease,
      limit,
      kinds,
      consumers: consumers ?? [],
      except: exceptTopics ?? [],
      ...(suspects === undefined ? {} : { from: suspects.from, suspects: suspects.limit }),
    });
    const answer = await this.#submit<string>((answered) => ({
      kind: "call",
      parks: false,
      call: "claim_v1",
      argument,
      bytes: argument.length,
      answer: answered,
    }));
    return (JSON.parse(answer) as Row[]).map((given) => {
      const row = this.#seen(rowOfView(given));
      return { row, lease, attempt: row.attempts };
    });
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    this.#requireOpen();
    checkSettlements(settlements);
    const own = structuredClone(settlements);
    if (own.length === 0) return [];
    return this.#submit((answer) => ({ kind: "settle", settlements: own, bytes: 0, answer }));
  }

  async recover(): Promise<number> {
    return this.#statements("journal", (link, nowMs) => work.recover(link, this.#m, nowMs));
  }

  async requeue(ids: readonly number[], onlyFor?: RequeueTarget): Promise<readonly number[]> {
    const [own, target] = [[...ids], onlyFor && structuredClone(onlyFor)];
    return this.#statements("journal", (link) => work.requeue(link, this.#m, own, target), "waits");
  }

  async conclude(ids: readonly number[], conclusion: Conclusion): Promise<readonly number[]> {
    this.#requireOpen();
    checkEnding(conclusion.ending);
    const [own, how] = [[...ids], structuredClone(conclusion)];
    return this.#statements("journal", (link, nowMs) => work.concludeRow(link, this.#m, own, how, nowMs), "waits");
  }

  async releaseRetries(nowMs: number): Promise<{ released: number; nextAtMs: number | undefined }> {
    checkTime("the time", nowMs);
    const { released, nextAtMs } = await this.#statements("journal", (link) =>
      work.releaseRetries(link, this.#m, nowMs),
    );
    return { released, nextAtMs };
  }

  async query(query: JournalQuery): Promise<readonly JournalRow[]> {
    checkCount("a limit", query.limit);
    const own = { ...query };
    const rows = await this.#read((link) => queryJournal(link, this.#m, own));
    return rows.map((row) => this.#seen(row));
  }

  async follow(after: JournalPosition, limit: number, topic?: string): Promise<JournalPage> {
    checkCount("a limit", limit);
    const own = { history: after.history, lanes: new Map(after.lanes) };
    const page = await this.#read((link) => followJournal(link, this.#m, own, limit, topic));
    for (const row of page.rows) this.#seen(row);
    return page;
  }

  async journalEnd(): Promise<JournalPosition> {
    return this.#read((link) => journalEnd(link, this.#m));
  }

  async count(): Promise<Readonly<Record<JournalStatus, number>>> {
    return this.#read((link) => countJournal(link, this.#m));
  }

  async retain(retention: Retention): Promise<number> {
    checkCount("a limit", retention.limit);
    const own = { ...retention };
    return this.#statements("nothing", (link) => work.retain(link, this.#m, own));
  }

  async forgetReceipts(request: ForgetRequest): Promise<Forgotten> {
    checkForget(request);
    const own = { ...request };
    const { feedCommits } = this.#options.tuning;
    // A kernel whose clock is wrong must not move the horizon beyond the database's time.
    return this.#statements("nothing", (link, nowMs) =>
      work.forgetReceipts(link, this.#m, { ...own, madeBeforeMs: Math.min(own.madeBeforeMs, nowMs) }, feedCommits),
    );
  }

  async acceptRemoved(): Promise<readonly RemovedRange[]> {
    return this.#statements("nothing", (link) => work.acceptRemoved(link, this.#m), "waits");
  }

  async verify(): Promise<VerifyReport> {
    this.#requireOpen();
    const link = await DatabaseLink.open(this.#options);
    try {
      return await verifyStore(link, this.#m);
    } finally {
      await link.close();
    }
  }

  async erase(request: EraseRequest): Promise<Erased> {
    checkErase(request);
    const own = { ...request };
    const erased = await this.#statements("spaces", (link) => eraseSubject(link, this.#m, own), "waits");
    if (!own.apply) return erased;
    const rows = await this.#read((link) => link.query(`SELECT name FROM ${this.#m}.space`));
    const names = rows.map(({ name }) => String(name));
    this.#watch.wrote(names, true);
    return erased;
  }

  // Consumers --------------------------------------------------------------------------------------------------------

  async declareConsumers(declaration: ConsumerDeclaration): Promise<ConsumerTable> {
    checkConsumers(declaration.consumers);
    const own = structuredClone(declaration);
    return this.#statements("nothing", (link, nowMs) => work.declareConsumers(link, this.#m, own, nowMs), "waits");
  }

  async consumers(): Promise<ConsumerTable> {
    return this.#read(async (link) => work.listConsumers(link, this.#m, await this.#clock(link)));
  }

  async removeConsumer(removal: ConsumerRemoval): Promise<RemovalResult> {
    checkCount("a limit", removal.limit);
    const own = { ...removal };
    return this.#statements("journal", (link, nowMs) => work.deleteConsumer(link, this.#m, own, nowMs), "waits");
  }

  // Due table --------------------------------------------------------------------------------------------------------

  async changeDue(changes: readonly DueChange[]): Promise<readonly boolean[]> {
    this.#requireOpen();
    checkDueChanges(changes);
    const own = structuredClone(changes);
    return this.#statements("journal", (link) => work.changeDue(link, this.#m, own), "waits");
  }

  async dueRows(nowMs: number, limit: number, kind?: string): Promise<readonly DueRow[]> {
    checkTime("the time", nowMs);
    checkCount("a limit", limit);
    const rows = await this.#read((link) =>
      link.query(
        `SELECT * FROM ${this.#m}.due WHERE due_at <= $1 AND ($3::text IS NULL OR kind = $3) ORDER BY due_at, place LIMIT $2`,
        [nowMs, limit, kind ?? null],
      ),
    );
    return rows.map(dueRowOf);
  }

  async dueRow(kind: string, key: string): Promise<DueRow | undefined> {
    const [row] = await this.#read((link) =>
      link.query(`SELECT * FROM ${this.#m}.due WHERE kind = $1 AND key = $2`, [kind, key]),
    );
    return row && dueRowOf(row);
  }

  async earliestDue(kind?: string): Promise<number | undefined> {
    const [row] = await this.#read((link) =>
      link.query(`SELECT due_at FROM ${this.#m}.due WHERE ($1::text IS NULL OR kind = $1) ORDER BY due_at LIMIT 1`, [
        kind ?? null,
      ]),
    );
    return row && Number(row["due_at"]);
  }

  // Life -------------------------------------------------------------------------------------------------------------

  get trouble(): string | undefined {
    return this.#writer.trouble;
  }

  get connection(): StoreConnection {
    return this.#writer.connection;
  }

  now(): number {
    return this.#writer.now();
  }

  stats(): StoreStats {
    const { batches, jobs, bytesWritten, statements } = this.#writer.stats;
    const all = statements + this.#watch.statements + this.#readStatements;
    return { batches, jobs, statements: all, bytesWritten, upkeepBytesMax: 0 };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    await this.#writer.close();
    await this.#watch.close();
    const reader = this.#reader;
    this.#reader = undefined;
    if (reader === undefined) return;
    try {
      await (await reader).close();
    } catch (error) {
      // It never connected.
      databaseError(error);
    }
  }

  #requireOpen(): void {
    if (this.#isClosed) throw new StoreError("STORE_CLOSED", "the store was closed; open it again to go on");
  }

  async #clock(link: DatabaseLink): Promise<number> {
    if (this.#options.tuning.clock === "host") return this.#options.host.now();
    const [row] = await link.query(`SELECT ${this.#m}.now_ms() AS now`);
    return Number(row?.["now"]);
  }

  /** An id that this process makes later is greater, so that an effect comes after its cause. */
  #seen(row: JournalRow): JournalRow {
    this.#writer.saw(row.id);
    return row;
  }

  #submit<T>(make: (answer: (answer: T | Error) => void) => Job): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#requireOpen();
      this.#writer.submit(make((answer) => (answer instanceof Error ? reject(answer) : resolve(answer))));
    });
  }

  /** `waits`: it is done when the database is back. Others fail while it is away. */
  async #statements<T>(
    touches: StatementsJob["touches"],
    run: (link: DatabaseLink, nowMs: number) => Promise<T>,
    parks?: "waits",
  ): Promise<T> {
    this.#requireOpen();
    return this.#submit<T>((answer) => ({
      kind: "statements",
      run,
      touches,
      parks: parks === "waits",
      bytes: 0,
      answer: answer as StatementsJob["answer"],
    }));
  }

  /** A read is tried again once on a new connection. Its answer comes after those of the commits that it may show. */
  async #read<T>(run: (link: DatabaseLink) => Promise<T>): Promise<T> {
    this.#requireOpen();
    if (this.#writer.isAway) {
      const { reason = "not connected" } = this.connection;
      throw new StoreError("STORE_AWAY", `the database does not answer: ${reason}`);
    }
    for (let isAgain = false; ; isAgain = true) {
      try {
        const link = await this.#readerLink();
        const before = link.statements;
        const result = await run(link);
        this.#readStatements += link.statements - before;
        await this.#writer.settled();
        return result;
      } catch (thrown) {
        if (thrown instanceof StoreError) throw thrown;
        const error = databaseError(thrown);
        this.#requireOpen();
        if (error.kind === "lost") this.#dropReader();
        if (error.kind === "lost" && !isAgain) continue;
        const code = error.kind === "lost" ? "STORE_AWAY" : "STORE_IO";
        throw new StoreError(code, `the database did not answer: ${error.message}`, { cause: error });
      }
    }
  }

  async #readerLink(): Promise<DatabaseLink> {
    this.#reader ??= DatabaseLink.open(this.#options);
    const link = await this.#reader;
    if (link.isOpen) return link;
    this.#reader = DatabaseLink.open(this.#options);
    return this.#reader;
  }

  #dropReader(): void {
    this.#reader = undefined;
  }

  /** Moves published events until none is left. A failure is harmless: the next look finds them. */
  #moveOutbox(): void {
    this.#outbox.isAsked = true;
    if (this.#outbox.isMoving || this.#isClosed) return;
    this.#outbox = { isMoving: true, isAsked: false };
    const answer = (isFull: boolean | Error) => {
      const { isAsked } = this.#outbox;
      this.#outbox = { isMoving: false, isAsked: false };
      if (isFull === true || isAsked) this.#moveOutbox();
    };
    this.#writer.submit({ kind: "outbox", parks: false, bytes: 0, answer });
  }

  #wrote(spaces: readonly string[], journal: boolean): void {
    this.#watch.wrote(spaces, journal);
    for (const space of spaces) {
      const moves = (this.#moves.get(space) ?? 0) + 1;
      this.#moves.set(space, moves < TRIM_COMMITS ? moves : 0);
      if (moves >= TRIM_COMMITS)
        this.#upkeep((link) => trimSpace(link, this.#m, space, this.#options.tuning.feedCommits));
    }
  }

  #fold(list: BatchAnswer["fold"]): void {
    for (const one of list) this.#upkeep((link) => foldDocument(link, this.#m, one));
  }

  /** Its failure is harmless: the next batch asks for it again. */
  #upkeep(run: (link: DatabaseLink) => Promise<void>): void {
    if (this.#isClosed) return;
    this.#writer.submit({ kind: "statements", run, touches: "nothing", parks: false, bytes: 0, answer: () => {} });
  }
}

/** Creates or upgrades the schema of a store. */
export async function migratePostgres(options: PostgresStoreOptions): Promise<{ from: number; to: number }> {
  const resolved = resolveOptions(options);
  try {
    const link = await DatabaseLink.open(resolved);
    try {
      return await migrate(link, resolved.schema);
    } finally {
      await link.close();
    }
  } catch (thrown) {
    throw openFailed(thrown);
  }
}

export { schemaVersion };
