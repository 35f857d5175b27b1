/**
 * The writer: jobs that arrive during a batch form the next one. Each batch is one transaction, and jobs are answered
 * after its COMMIT in the order of submission. SPEC: S13, S89-S94, S109, J1.
 *
 *          submit                    BEGIN
 *   idle ─────────> scheduled (task) ─────> jobs, flush, COMMIT, answers ──> idle | scheduled
 *                      ^    │ busy                    │
 *                      │    v                         v an I/O error in COMMIT, a failed flush, corruption, a newer format
 *                      waiting (timer, copy of the log)      stopped (for good)
 *
 * A batch starts in its own task, after the callers of the last batch have queued again, and is postponed while each
 * task adds more: a flush costs the same for any number of jobs. A caller that was answered alone and asks again at
 * once gets its batch in the same turn (`answer-turn.ts`). A job that can wait joins the next batch for a few
 * milliseconds. Batches run synchronously, so no partial batch is visible, and are limited in time for the sake of the
 * event loop.
 *
 * A job that throws unexpectedly rolls the batch back; its jobs then run again in one transaction with a savepoint
 * each, so that only that job fails. Jobs may therefore run more than once and must only affect the database.
 */

import type { Host, Timer } from "../../host/host.ts";
import { Waiters } from "../../host/waiters.ts";
import { FILE_LOOK_MS } from "../../limits.ts";
import { thrownText } from "../../message/error-data.ts";
import { rejected } from "../rejection.ts";
import { StoreError, type Urgency } from "../store.ts";
import { AnswerTurn } from "./answer-turn.ts";
import { Checkpoints } from "./checkpoints.ts";
import type { ListStatement, SqliteConnection, Statement } from "./connection.ts";
import { FileGuard } from "./database-file.ts";
import { type Job, JobQueue } from "./job-queue.ts";
import type { ResolvedOptions, SqliteTuning } from "./options.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import { engineTrouble, failureOf, isConstraint } from "./sqlite-error.ts";
import type { TableCache } from "./table-cache.ts";
import { type LockAnswer, WriteLock } from "./write-lock.ts";

export interface WriterEvents {
  /** Another process has written since the last check. Called inside the transaction. */
  foreignWrite(): void;
  /** A batch is durable and its callers were answered. */
  written(): void;
}

type State =
  | { readonly kind: "idle" | "scheduled" | "waiting" | "closed" }
  | { readonly kind: "stopped"; readonly reason: string };

/** How long a growing batch is postponed. */
const GATHER_MS = 10;
/** How long a job with urgency `soon` waits for another to share a flush with. */
const SOON_MS = 5;
/** Promise jobs without a new job before a batch starts in the turn of its caller. */
const QUIET_JOBS = 4;

export class GroupCommit {
  readonly #connection: SqliteConnection;
  readonly #tables: TableCache;
  readonly #events: WriterEvents;
  readonly #host: Host;
  readonly #tuning: SqliteTuning;
  readonly #lock: WriteLock;
  readonly #checkpoints: Checkpoints;
  readonly #queue: JobQueue;
  #state: State = { kind: "idle" };
  /** Starts a batch for jobs that can wait, unless another job has done so. */
  #soon: Timer | undefined;
  readonly #turn: AnswerTurn;
  /** Jobs queued since the last batch began that cannot wait. */
  #callers = 0;
  #dataVersion: unknown;
  readonly #guard: FileGuard | undefined;
  #fileLook: Timer | undefined;
  readonly #drained = new Waiters();
  readonly #beginRead: Statement;
  readonly #commit: Statement;
  readonly #version: ListStatement;
  readonly #format: ListStatement;

  constructor(connection: SqliteConnection, tables: TableCache, events: WriterEvents, options: ResolvedOptions) {
    this.#connection = connection;
    this.#tables = tables;
    this.#events = events;
    this.#host = options.host;
    this.#tuning = options.tuning;
    this.#lock = new WriteLock(connection, options);
    this.#queue = new JobQueue(options.tuning);
    this.#turn = new AnswerTurn(options.host);
    this.#checkpoints = new Checkpoints(connection, options, (error) => this.#checkpointFailed(error));
    this.#beginRead = connection.prepare("BEGIN");
    this.#commit = connection.prepare("COMMIT");
    this.#version = connection.prepareLists("PRAGMA data_version");
    this.#format = connection.prepareLists("PRAGMA user_version");
    this.#dataVersion = this.#readVersion();
    this.#guard = options.readOnly ? undefined : new FileGuard(options.path);
    this.#lookAtFiles();
  }

  /** Stops the store if its files were removed or replaced. */
  #lookAtFiles(): void {
    if (this.#guard === undefined || this.#state.kind === "stopped" || this.#state.kind === "closed") return;
    const trouble = this.#guard.trouble();
    if (trouble !== undefined) {
      this.#stop(lostText(trouble));
      return;
    }
    this.#fileLook = this.#host.timer(FILE_LOOK_MS, () => this.#lookAtFiles(), { keepAlive: false });
  }

  submit(job: Job, urgency: Urgency = "now"): void {
    const refusal = this.#stopped() ?? this.#queue.push(job);
    if (refusal) return job.fail(refusal);
    if (urgency === "soon") return this.#scheduleSoon();
    this.#callers++;
    // Upkeep goes with the caller's next job and must not delay the caller's answer.
    if (this.#state.kind === "idle" && this.#turn.lasts && !job.isUpkeep) {
      this.#state = { kind: "scheduled" };
      this.#startInTurn(this.#queue.length, 1);
    } else this.#schedule();
  }

  /** Runs a read on one snapshot. The engine never refuses a reader, except during a short recovery. */
  read<T>(run: () => T): T {
    const stopped = this.#stopped();
    if (stopped) throw stopped;
    if (this.#connection.inTransaction) return run();
    this.#beginRead.run();
    try {
      this.noticeForeignWrites();
      const result = run();
      this.#commit.run();
      return result;
    } catch (error) {
      this.#connection.rollback();
      throw error;
    }
  }

  /** Clears the caches if another process has written; returns whether it has. */
  noticeForeignWrites(): boolean {
    const version = this.#readVersion();
    if (version === this.#dataVersion) return false;
    this.#requireOurFormat();
    this.#dataVersion = version;
    this.#tables.forget();
    this.#events.foreignWrite();
    return true;
  }

  /** A newer version may have taken over the file with a format that is unknown here. */
  #requireOurFormat(): void {
    const format = Number(this.#format.value());
    if (format === SCHEMA_VERSION) return;
    const why = `a newer Millrace has taken the file over: its format is ${format}, this one knows ${SCHEMA_VERSION}`;
    throw this.#stop(`${why}. End this process, and start the newer one.`);
  }

  /** Writes the queued jobs; later ones are refused. */
  async drain(): Promise<void> {
    this.#schedule();
    if (this.#queue.length > 0) {
      await this.#drained.wait();
    }
    this.#lock.giveUp();
    this.#fileLook?.cancel();
    await this.#checkpoints.close();
    if (this.#state.kind !== "stopped") this.#state = { kind: "closed" };
  }

  /** Rebuilds the file between two batches; batches wait meanwhile, reads do not. */
  rebuild(): Promise<void> {
    return this.#checkpoints.rebuild();
  }

  /** Whether a batch is about to begin, which will notice foreign writes itself. */
  get hasQueued(): boolean {
    return this.#queue.length > 0;
  }

  get isStopped(): boolean {
    return this.#state.kind === "stopped";
  }

  /** Why it has stopped, in one sentence; undefined if it has not. */
  get trouble(): string | undefined {
    return this.#state.kind === "stopped" ? this.#state.reason : undefined;
  }

  #stopped(): StoreError | undefined {
    return this.#state.kind === "stopped" ? new StoreError("STORE_STOPPED", this.#state.reason) : undefined;
  }

  #schedule(): void {
    if (this.#state.kind !== "idle" || this.#queue.length === 0) return;
    this.#state = { kind: "scheduled" };
    this.#gather(this.#queue.length, this.#host.monotonic() + GATHER_MS);
  }

  /** Leaves the queue to the next batch that another job starts, if one comes in time. */
  #scheduleSoon(): void {
    // The timer keeps the process alive, so that the job is written.
    this.#soon ??= this.#host.timer(SOON_MS, () => {
      this.#soon = undefined;
      this.#schedule();
    });
  }

  /** Starts the batch in this turn after some promise jobs without a new job; new jobs come from other callers. */
  #startInTurn(queued: number, quietJobs: number): void {
    this.#host.microtask(() => {
      if (this.#queue.length > queued) this.#gather(this.#queue.length, this.#host.monotonic() + GATHER_MS);
      else if (quietJobs < QUIET_JOBS) this.#startInTurn(queued, quietJobs + 1);
      else this.#startBatch();
    });
  }

  /** Starts the batch in the next task, or in a later one as long as the queue grows. */
  #gather(queued: number, until: number): void {
    this.#host.task(() => {
      const grown = this.#queue.length;
      const nowMs = this.#host.monotonic();
      this.#turn.task(nowMs);
      if (grown > queued && nowMs < until) this.#gather(grown, until);
      else this.#startBatch();
    });
  }

  #startBatch(): void {
    if (this.#queue.length === 0) {
      this.#rest();
      return;
    }
    if (this.#checkpoints.holdsUp(() => this.#startBatch())) {
      this.#state = { kind: "waiting" };
      return;
    }
    if (!this.#takeLock() || !this.#turnLog()) return;
    const callers = this.#callers;
    this.#callers = 0;
    this.#finish(this.#runJobs() ?? [], callers);
  }

  #finish(jobs: readonly Job[], callers: number): void {
    if (jobs.length > 0 && this.#commitTransaction(jobs) && this.#isKept(jobs)) {
      this.#connection.work.batches++;
      for (const job of jobs) {
        if (!job.isUpkeep) this.#connection.work.jobs++;
        job.succeed();
      }
      this.#turn.answered(callers);
      this.#events.written();
      this.#checkpoints.look();
    }
    this.#rest();
  }

  /** Whether a batch was written to the store's files; if not, its jobs fail. Costs 2 us of the 45 us of a batch. */
  #isKept(jobs: readonly Job[]): boolean {
    const trouble = this.#guard?.trouble();
    if (trouble === undefined) return true;
    const message = `${trouble}; the write is lost, unless the file comes back`;
    for (const job of jobs) job.fail(rejected("unknown", "io-error", message));
    this.#stop(lostText(trouble));
    return false;
  }

  #rest(): void {
    if (this.#state.kind === "stopped") return;
    this.#state = { kind: "idle" };
    if (this.#queue.length > 0) this.#schedule();
    else this.#drained.release();
  }

  /** False if the lock is not held yet: it is retried, or all queued jobs have failed. */
  #takeLock(): boolean {
    let answer: LockAnswer;
    try {
      answer = this.#lock.take();
    } catch (error) {
      this.#failBatch(this.#queue.takeAll(), error);
      this.#rest();
      return false;
    }
    if (answer.kind === "again") this.#retryIn(answer.inMs);
    if (answer.kind === "refused") {
      const message = `another process has held the write lock for ${Math.round(answer.waitedMs)} ms`;
      for (const job of this.#queue.takeAll()) job.fail(rejected("failed", "store-busy", message));
      this.#rest();
    }
    return answer.kind === "held";
  }

  /** Restarts the log if that is due; false if the lock is no longer held. */
  #turnLog(): boolean {
    if (!this.#checkpoints.wantsTurn) return true;
    this.#connection.rollback();
    this.#checkpoints.turn();
    return this.#state.kind !== "stopped" && this.#takeLock();
  }

  #retryIn(delayMs: number): void {
    this.#state = { kind: "waiting" };
    this.#host.timer(delayMs, () => {
      if (this.#state.kind === "waiting") this.#startBatch();
    });
  }

  /** Runs as many jobs as fit; undefined if none is left to commit and all are answered. */
  #runJobs(): Job[] | undefined {
    const jobs: Job[] = [];
    try {
      this.noticeForeignWrites();
      const startMs = this.#host.monotonic();
      let bytes = 0;
      for (const job of this.#queue) {
        if (jobs.length > 0 && this.#isFull(jobs.length, bytes, startMs)) break;
        jobs.push(job);
        bytes += job.bytes;
        job.run();
      }
      this.#tables.flush();
      this.#queue.drop(jobs.length);
      return jobs;
    } catch (error) {
      this.#queue.drop(jobs.length);
      this.#undo();
      if (engineTrouble(error) === undefined) return this.#runOneByOne(jobs);
      this.#failBatch(jobs, error);
      return undefined;
    }
  }

  #isFull(jobs: number, bytes: number, startMs: number): boolean {
    const { batchJobsMax, batchBytesMax, batchMs } = this.#tuning;
    return jobs >= batchJobsMax || bytes >= batchBytesMax || this.#host.monotonic() - startMs >= batchMs;
  }

  /** Runs the jobs again, each in a savepoint: one that throws fails alone and is undone. */
  #runOneByOne(jobs: readonly Job[]): Job[] | undefined {
    const unanswered = new Set(jobs);
    try {
      this.#lock.takeAgain();
      for (const job of jobs) if (!this.#runAlone(job)) unanswered.delete(job);
      return unanswered.size > 0 ? [...unanswered] : this.#nothingLeft();
    } catch (error) {
      this.#undo();
      this.#failBatch([...unanswered], error);
      return undefined;
    }
  }

  #nothingLeft(): undefined {
    this.#undo();
    return undefined;
  }

  #runAlone(job: Job): boolean {
    this.#connection.exec("SAVEPOINT job");
    try {
      job.run();
      this.#tables.flush();
      this.#connection.exec("RELEASE job");
      return true;
    } catch (error) {
      if (engineTrouble(error) !== undefined) throw error;
      this.#connection.exec("ROLLBACK TO job; RELEASE job");
      this.#tables.forget();
      job.fail(error instanceof Error ? error : new Error(thrownText(error)));
      return false;
    }
  }

  /** Makes the batch durable; false if that failed and all its jobs are answered. */
  #commitTransaction(jobs: readonly Job[]): boolean {
    try {
      this.#commit.run();
      return true;
    } catch (error) {
      const trouble = engineTrouble(error);
      this.#undo();
      if (isConstraint(error)) this.#constraintFailed(jobs, error);
      else if (trouble === "full" || trouble === "busy" || trouble === "read-only") this.#failBatch(jobs, error);
      else this.#outcomeUnknown(jobs, error);
      return false;
    }
  }

  /** A deferred constraint of the user's tables. Of several commits it is unknown which: they are sent again. */
  #constraintFailed(jobs: readonly Job[], error: unknown): void {
    if (jobs.length > 1) return this.#failBatch(jobs, error);
    for (const job of jobs)
      job.fail(rejected("refused", "sql-refused", `the commit was refused: ${thrownText(error)}`));
  }

  /** The log may or may not have reached the disk. A read through this handle would prove neither. */
  #outcomeUnknown(jobs: readonly Job[], error: unknown): void {
    const message = `writing to disk failed while it was made durable (${thrownText(error)}); it may or may not be there`;
    for (const job of jobs) job.fail(rejected("unknown", "io-error", message));
    this.#stopFor(error);
  }

  #failBatch(jobs: readonly Job[], error: unknown): void {
    const trouble = engineTrouble(error);
    const rejection = failureOf(error);
    for (const job of jobs) job.fail(rejection);
    if (trouble === "flush" || trouble === "corrupt") this.#stopFor(error);
  }

  #stopFor(error: unknown): void {
    this.#stop(`${thrownText(error)}. Check the disk, then open the store again.`);
  }

  #stop(why: string): StoreError {
    const reason = `The store stopped: ${why}`;
    this.#state = { kind: "stopped", reason };
    this.#fileLook?.cancel();
    this.#lock.giveUp();
    void this.#checkpoints.close();
    for (const job of this.#queue.takeAll()) job.fail(rejected("failed", "store-stopped", reason));
    this.#drained.release();
    return new StoreError("STORE_STOPPED", reason);
  }

  /** Restores the state before the batch, in the database and in the caches of the tables. */
  #undo(): void {
    this.#tables.forget();
    try {
      this.#connection.rollback();
    } catch (error) {
      this.#stopFor(error);
    }
  }

  #checkpointFailed(error: unknown): void {
    const trouble = engineTrouble(error);
    // The log keeps the commits; with a full disk or a reader in the way it only stays longer.
    if (trouble !== "busy" && trouble !== "full") this.#stopFor(error);
  }

  #readVersion(): unknown {
    return this.#version.value();
  }
}

function lostText(trouble: string): string {
  return `${trouble}; end this process, put the file back or restore a copy, and start again`;
}
