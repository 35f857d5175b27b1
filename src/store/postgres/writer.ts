/**
 * The only writer of a store object: a queue of jobs, one batch in flight. SPEC: S13, S237, S238, S260-S263.
 *
 *   connected ──connection lost, deadline──> away ──connected again──> replaying (the same batch) ──> connected
 *   any ──close()──> closed          any ──damaged data──> stopped
 *
 * A batch has a number in the row of the writer, so it can be sent again unchanged: if it was applied, it gets the
 * answer that was lost. Jobs wait in the queue while the database is away, within bounds.
 */
import { hostname } from "node:os";
import type { Host, Timer } from "../../host/host.ts";
import { STORE_PARKED_BYTES_MAX, STORE_PARKED_JOBS_MAX } from "../../limits.ts";
import type { Json } from "../../message/json.ts";
import type { CommitRequest } from "../commit.ts";
import type { StoreConnection } from "../connection.ts";
import type { DueChange } from "../due.ts";
import { newHistory } from "../history.ts";
import { type Rejection, rejected } from "../rejection.ts";
import { RowHasher } from "../sqlite/journal-hash.ts";
import { type AppendOutcome, StoreError } from "../store.ts";
import { Batch, type BatchAnswer, type Decided, firstPlace, type RowPlace } from "./batch.ts";
import { decideWithFacts, heldClaims, isHeld, type ResolvedEntries, resolveEntries } from "./commit-decision.ts";
import { DatabaseError, databaseError } from "./database-error.ts";
import type { AppendJob, BatchedJob, CommitJob, Job, SettleJob } from "./jobs.ts";
import { changeDue } from "./journal-work.ts";
import { DatabaseLink, type Row, withCommitLevel } from "./link.ts";
import type { ResolvedOptions } from "./options.ts";
import { type Published, takePublished } from "./outbox.ts";
import { LANE_COUNT } from "./schema.ts";
import { runStatements, statementRejection } from "./user-statements.ts";

/** Tries of a batch that the database aborts (deadlock), or of a decision whose facts change. */
const TRIES_MAX = 20;
const BACKOFF_MS = 50;
const BACKOFF_MAX_MS = 2_000;
/** Sessions and commits per session whose success is remembered, to save a look-up. */
const SESSIONS_REMEMBERED_MAX = 256;
const COMMITS_REMEMBERED_MAX = 4_096;

export interface WriterEvents {
  /** A batch of this writer was applied. */
  wrote(spaces: readonly string[], journal: boolean): void;
  /** Documents with many patches. */
  fold(documents: BatchAnswer["fold"]): void;
  /** The state or the history of the connection has changed. */
  connection(): void;
}

/** The result of a job that was decided with its facts. */
type Decision = { readonly kind: "answer"; readonly text: string } | { readonly kind: "apply"; readonly batch: Batch };

/** The result of a transaction. `moves: 0`: it changed no rows that other kernels look at. */
interface Worked<D> {
  readonly answer: string;
  readonly decision: D;
  readonly moves?: 0;
}

/** Jobs from the queue, and the batch that has all of them. */
interface Taken {
  readonly jobs: readonly Job[];
  readonly batch: Batch | undefined;
}

const NOTHING: Taken = { jobs: [], batch: undefined };

export class Writer {
  readonly #options: ResolvedOptions;
  readonly #host: Host;
  readonly #events: WriterEvents;
  readonly #m: string;
  readonly #level: string;
  readonly #hasher = new RowHasher();
  #link: DatabaseLink | undefined;
  #state: StoreConnection["state"] | "closed" | "stopped" = "connected";
  #sinceMs: number | undefined;
  #reason: string | undefined;
  #trouble: string | undefined;
  #history = "";
  #incarnation = 0;
  /** The number of the last answered batch. */
  #batch = 0;
  #place: RowPlace = firstPlace(0, 0);
  /** The database's clock when it was last read, and the host's monotonic clock then. */
  #clock = { databaseMs: 0, atMs: 0 };
  /** Jobs from `#first` on. */
  #queue: Job[] = [];
  #first = 0;
  #queuedBytes = 0;
  #isRunning = false;
  /** Resolves when the batch in flight has been answered. */
  #turn: Promise<void> | undefined;
  /** Ends the wait between two tries to connect. */
  #giveUp: (() => void) | undefined;
  /** Local sequences of commits that were made, by session. */
  readonly #made = new Map<string, Set<number>>();
  readonly stats = { batches: 0, jobs: 0, bytesWritten: 0, statements: 0 };

  constructor(options: ResolvedOptions, events: WriterEvents) {
    this.#options = options;
    this.#host = options.host;
    this.#events = events;
    this.#m = options.schema;
    this.#level = withCommitLevel(options);
  }

  async open(): Promise<void> {
    await this.#connect();
    if (!this.#options.readOnly) await this.#register();
  }

  /** Why it has stopped. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  get connection(): StoreConnection {
    const history = this.#history;
    if (this.#sinceMs === undefined || this.#state === "connected") return { state: "connected", history, parked: 0 };
    const state = this.#state === "replaying" ? "replaying" : "away";
    const reason = this.#reason === undefined ? {} : { reason: this.#reason };
    return { state, history, sinceMs: this.#sinceMs, parked: this.#queued, ...reason };
  }

  get #isClosed(): boolean {
    return this.#state === "closed";
  }

  get isAway(): boolean {
    return this.#state === "away" || this.#state === "replaying";
  }

  get incarnation(): number {
    return this.#incarnation;
  }

  get history(): string {
    return this.#history;
  }

  /** The process id of the database's backend, for tests that end it. */
  async backend(): Promise<number> {
    const [row] = await this.#query("SELECT pg_backend_pid() AS pid", []);
    return Number(row?.["pid"]);
  }

  get #queued(): number {
    return this.#queue.length - this.#first;
  }

  now(): number {
    if (this.#options.tuning.clock === "host") return this.#host.now();
    return this.#clock.databaseMs + (this.#host.monotonic() - this.#clock.atMs);
  }

  /** A later row has a greater id than every row that this process has seen. */
  saw(journalId: number): void {
    const n = Math.floor(journalId / LANE_COUNT);
    if (n > this.#place.n) this.#place.n = n;
  }

  submit(job: Job): void {
    if (this.#options.readOnly) {
      job.answer(
        new StoreError("STORE_READ_ONLY", "the store was opened for reading; open it without readOnly to write"),
      );
      return;
    }
    if (this.#trouble !== undefined) {
      job.answer(new StoreError("STORE_STOPPED", this.#trouble));
      return;
    }
    if (this.isAway && !parks(job)) {
      job.answer(this.#awayError());
      return;
    }
    if (this.#queued >= STORE_PARKED_JOBS_MAX || this.#queuedBytes + job.bytes > STORE_PARKED_BYTES_MAX) {
      refuse(job, rejected("failed", "store-busy", `${this.#queued} writes wait for the database; try again later`));
      return;
    }
    this.#queue.push(job);
    this.#queuedBytes += job.bytes;
    this.#start();
  }

  #start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    // Jobs of the same task share a batch.
    this.#host.microtask(() => void this.#run());
  }

  #awayError(): StoreError {
    return new StoreError("STORE_AWAY", `the database does not answer: ${this.#reason ?? "not connected"}`);
  }

  /** A read has found this history. Another kernel may have begun one that this connection does not know of. */
  sawHistory(history: string): void {
    if (history === this.#history || this.isAway || this.#options.readOnly) return;
    const run = async (link: DatabaseLink) => (await link.query(`SELECT history FROM ${this.#m}.meta`))[0]?.["history"];
    const answer = (found: unknown) => {
      if (typeof found !== "string" || found === this.#history) return;
      this.#history = found;
      this.#made.clear();
      this.#events.connection();
    };
    this.submit({ kind: "statements", run, touches: "nothing", parks: false, bytes: 0, answer });
  }

  /** Resolves when the batch in flight now, if any, has been answered. */
  async settled(): Promise<void> {
    await this.#turn;
  }

  /** Waits for the queue, at most `closeWaitMs` while the database is away. */
  async close(): Promise<void> {
    const { closeWaitMs } = this.#options.tuning;
    let timer: Timer | undefined;
    const patience = new Promise<"over">((resolve) => {
      const check = () => {
        if (this.isAway) resolve("over");
        else timer = this.#host.timer(closeWaitMs, check, { keepAlive: false });
      };
      timer = this.#host.timer(closeWaitMs, check, { keepAlive: false });
    });
    while (this.#isRunning && this.#state !== "stopped") {
      if (this.#queued === 0 && this.#turn === undefined) break;
      if ((await Promise.race([this.#turn ?? this.#host.yield(), patience])) === "over") break;
    }
    timer?.cancel();
    const wasAway = this.isAway;
    this.#state = "closed";
    this.#giveUp?.();
    this.#dropQueue(() => rejected("unknown", "no-answer", "the store was closed while the database was away"));
    if (!wasAway && !this.#options.readOnly && this.#link?.isOpen) {
      try {
        await this.#link.query(`UPDATE ${this.#m}.writer SET ended = true WHERE incarnation = $1`, [this.#incarnation]);
      } catch (error) {
        // Its lane is free again after an hour.
        databaseError(error);
      }
    }
    await this.#link?.close();
  }

  /** Opens a connection and reads the history. Resolves with whether the history is another. */
  async #connect(): Promise<boolean> {
    const link = await DatabaseLink.open(this.#options);
    this.#link = link;
    link.onEnd(() => this.#lost(link));
    const [row] = this.#options.readOnly
      ? await link.query(`SELECT history, ${this.#m}.now_ms() AS now FROM ${this.#m}.meta`)
      : await this.#findHistory(link);
    this.#clock = { databaseMs: Number(row?.["now"]), atMs: this.#host.monotonic() };
    const before = this.#history;
    this.#history = String(row?.["history"]);
    return before !== "" && before !== this.#history;
  }

  async #findHistory(link: DatabaseLink): Promise<readonly Row[]> {
    const isLost = await this.#hasLostBatches(link);
    return link.query(`SELECT ${this.#m}.history_v1($1, $2, $3) AS history, ${this.#m}.now_ms() AS now`, [
      newHistory(this.#host),
      this.#options.durability === "process",
      isLost ? this.#history : null,
    ]);
  }

  /** Whether the row of this writer is older than its last answer: the server has lost the end of its log. */
  async #hasLostBatches(link: DatabaseLink): Promise<boolean> {
    if (this.#batch === 0) return false;
    const [row] = await link.query(`SELECT batch FROM ${this.#m}.writer WHERE incarnation = $1`, [this.#incarnation]);
    return row === undefined || Number(row["batch"]) < this.#batch;
  }

  async #register(): Promise<void> {
    const [row] = await this.#query(
      `SELECT incarnation, lane, coalesce(n, 0) AS n, last_id FROM ${this.#m}.register_v1($1)`,
      [`${hostname()} pid ${process.pid}`],
    );
    this.#incarnation = Number(row?.["incarnation"]);
    this.#batch = 0;
    const n = Math.max(Number(row?.["n"]), this.#place.n);
    this.#place = firstPlace(Number(row?.["lane"]), n, Number(row?.["last_id"]));
  }

  async #query(text: string, values: Parameters<DatabaseLink["query"]>[1], name?: string): Promise<readonly Row[]> {
    const link = this.#link;
    if (link === undefined || !link.isOpen) throw new DatabaseError("lost", "there is no connection");
    this.stats.statements++;
    return link.query(text, values, name);
  }

  /** The connection has ended: connects again, also if no write waits. */
  #lost(link: DatabaseLink): void {
    if (link !== this.#link || this.#state === "closed" || this.#state === "stopped") return;
    this.#start();
  }

  async #run(): Promise<void> {
    while (this.#state !== "closed" && this.#state !== "stopped") {
      const isLost = this.#link?.isOpen !== true;
      if (this.#queued === 0 && !isLost && !this.isAway) break;
      const { jobs, batch } = isLost || this.#queued === 0 ? NOTHING : this.#take();
      const work = jobs.length === 0 ? this.#reach() : this.#perform(jobs, batch);
      const turn = work.catch((error) => this.#failAll(jobs, error));
      this.#turn = turn;
      await turn;
    }
    this.#turn = undefined;
    this.#isRunning = false;
  }

  /** Connects again without a batch. */
  async #reach(): Promise<void> {
    try {
      await this.#exactlyOnce(() => this.#query("SELECT 1", []), { isBatch: false });
    } catch (thrown) {
      if (thrown instanceof StoreError && thrown.code === "STORE_CLOSED") return;
      throw thrown;
    }
  }

  /** The next jobs: one, or as many as may share a batch, with that batch. */
  #take(): Taken {
    const first = this.#queue[this.#first] as Job;
    let count = 1;
    let built: Batch | undefined;
    if (isBatched(first)) {
      const batch = this.#newBatch();
      if (batch.add(first) === "added") {
        built = batch;
        while (count < this.#queued) {
          const next = this.#queue[this.#first + count] as Job;
          if (!isBatched(next) || batch.add(next) !== "added") break;
          count++;
        }
      }
    }
    const jobs = this.#queue.slice(this.#first, this.#first + count);
    for (const { bytes } of jobs) this.#queuedBytes -= bytes;
    this.#first += count;
    if (this.#first > 1_000 && this.#first * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#first);
      this.#first = 0;
    }
    return { jobs, batch: built };
  }

  async #perform(jobs: readonly Job[], batch: Batch | undefined): Promise<void> {
    this.stats.batches++;
    this.stats.jobs += jobs.length;
    const [first] = jobs as readonly [Job];
    if (first.kind === "call") return this.#call(first);
    if (first.kind === "statements") return this.#statements(first);
    if (first.kind === "outbox") return this.#moveOutbox(first);
    return this.#batched(jobs.filter(isBatched), batch);
  }

  #newBatch(decided?: Decided): Batch {
    const context = {
      hasher: this.#hasher,
      history: this.#history,
      feedCommits: this.#options.tuning.feedCommits,
      wasMade: (session: string, local: number) => this.#made.get(session)?.has(local) === true,
    };
    return new Batch(this.#place, context, decided);
  }

  /** Applies jobs as one batch. A refused batch is halved, until the refused job is decided alone. */
  async #batched(jobs: readonly BatchedJob[], built?: Batch): Promise<void> {
    try {
      const batch = built ?? this.#newBatch();
      const isWhole = built !== undefined || jobs.every((job) => batch.add(job) === "added");
      if (isWhole && (await this.#send(batch))) return;
      if (jobs.length === 1) return await this.#decide(jobs[0] as BatchedJob);
    } catch (error) {
      // The other half of a divided batch goes on.
      this.#failAll(jobs, error);
      return;
    }
    const half = Math.ceil(jobs.length / 2);
    await this.#batched(jobs.slice(0, half));
    await this.#batched(jobs.slice(half));
  }

  /** False if the database refused it. */
  async #send(batch: Batch): Promise<boolean> {
    if (batch.statements.length > 0) return this.#sendWithStatements(batch);
    const text = batch.text();
    let answer: string;
    try {
      answer = await this.#exactlyOnce(
        async (number) => {
          const [row] = await this.#query(
            `SELECT ${this.#level}, ${this.#m}.run_v1($1, $2, $3, $4) AS answer`,
            [this.#incarnation, number, text, this.#hostMs()],
            `${this.#m} run`,
          );
          return String(row?.["answer"]);
        },
        { again: "rebuild" },
      );
    } catch (error) {
      if (!(error instanceof DatabaseError) || error.kind !== "refused") throw error;
      return false;
    }
    this.stats.bytesWritten += text.length;
    this.#applied(batch, JSON.parse(answer) as BatchAnswer);
    return true;
  }

  /** A batch with statements on the user's tables takes a transaction of several calls. */
  async #sendWithStatements(batch: Batch): Promise<boolean> {
    const [job] = batch.jobs;
    try {
      const { answer } = await this.#inTransaction<undefined>(
        async (link, nowMs) => ({ answer: await this.#apply(link, batch, nowMs), decision: undefined }),
        "rebuild",
      );
      this.#applied(batch, JSON.parse(answer) as BatchAnswer);
      return true;
    } catch (error) {
      const rejection = statementRejection(error);
      if (rejection === undefined) {
        if (!(error instanceof DatabaseError) || error.kind !== "refused") throw error;
        return false;
      }
      // The others of the batch are sent again without it.
      if (batch.jobs.length > 1 || job?.kind !== "commit") return false;
      job.answer(rejection);
      return true;
    }
  }

  #applied(batch: Batch, answer: BatchAnswer): void {
    // The database may have shown greater ids meanwhile.
    batch.place.n = Math.max(batch.place.n, this.#place.n);
    this.#place = batch.place;
    for (const job of batch.jobs) if (job.kind === "commit") this.#remember(job);
    batch.answer(answer);
    this.#events.wrote(batch.changedSpaces, batch.touchesJournal);
    if (answer.fold.length > 0) this.#events.fold(answer.fold);
  }

  #remember({ request: { session, localSequence } }: CommitJob): void {
    let locals = this.#made.get(session);
    if (locals === undefined) {
      if (this.#made.size >= SESSIONS_REMEMBERED_MAX) {
        const [oldest] = this.#made.keys();
        if (oldest !== undefined) this.#made.delete(oldest);
      }
      locals = new Set();
      this.#made.set(session, locals);
    }
    if (locals.size >= COMMITS_REMEMBERED_MAX) {
      const [oldest] = locals;
      if (oldest !== undefined) locals.delete(oldest);
    }
    locals.add(localSequence);
  }

  /** Decides and applies one job with all facts, in one transaction. */
  async #decide(job: BatchedJob): Promise<void> {
    try {
      await this.#decideNow(job);
    } catch (error) {
      const rejection = statementRejection(error);
      if (rejection === undefined || job.kind !== "commit") throw error;
      job.answer(rejection);
    }
  }

  async #decideNow(job: BatchedJob): Promise<void> {
    const { answer, decision } = await this.#inTransaction<Decision | undefined>(async (link, nowMs) => {
      const decision = await this.#decision(link, job, nowMs);
      if (decision.kind === "answer") return { answer: decision.text, decision };
      const answer = await this.#apply(link, decision.batch, nowMs);
      if (job.kind === "commit") await this.#applyRepeats(link, job, nowMs);
      return { answer, decision };
    }, "refused");
    if (decision?.kind === "apply") {
      this.#applied(decision.batch, JSON.parse(answer) as BatchAnswer);
      return;
    }
    (job.answer as (answer: unknown) => void)(JSON.parse(answer));
    if (job.kind !== "commit") this.#events.wrote([], true);
  }

  async #apply(link: DatabaseLink, batch: Batch, nowMs: number): Promise<string> {
    const text = batch.text();
    const [row] = await link.query(`SELECT ${this.#m}.apply_v1($1, $2, $3) AS answer`, [
      text,
      this.#incarnation,
      nowMs,
    ]);
    await link.query(`UPDATE ${this.#m}.writer SET last_id = $2 WHERE incarnation = $1`, [
      this.#incarnation,
      batch.place.lastId,
    ]);
    if (batch.statements.length > 0) await runStatements(link, batch.statements);
    return String(row?.["answer"]);
  }

  async #decision(link: DatabaseLink, job: BatchedJob, nowMs: number): Promise<Decision> {
    if (job.kind === "settle") return this.#settleDecision(link, job, nowMs);
    if (job.kind === "append") {
      const resolved = await resolveEntries(link, this.#m, job.entries, nowMs);
      if (resolved.kind === "rejected") return { kind: "answer", text: JSON.stringify(resolved) };
      return this.#alone({ ...job, entries: resolved.fresh, answer: appended(job, resolved) }, new Map());
    }
    const { feedCommits } = this.#options.tuning;
    const decision = await decideWithFacts(link, this.#m, job, nowMs, { feedCommits, history: this.#history });
    if (decision.kind !== "apply") return { kind: "answer", text: JSON.stringify(decision) };
    const { entries, bases } = decision;
    const request = withoutRepeats(job.request);
    return this.#alone({ ...job, request, entries: entries.fresh, answer: committed(job, entries) }, bases);
  }

  /** Changes of one commit to the same due row or claim, which a batch cannot hold: one after the other. */
  async #applyRepeats(link: DatabaseLink, { request }: CommitJob, nowMs: number): Promise<void> {
    if (hasRepeats(request.due, dueName)) for (const change of request.due) await changeDue(link, this.#m, [change]);
    if (!hasRepeats(request.settlements, ({ id }) => id)) return;
    for (const settlement of request.settlements) {
      const batch = this.#newBatch({ bases: new Map() });
      batch.add({ kind: "settle", settlements: [settlement], bytes: 0, answer: () => {} });
      await this.#apply(link, batch, nowMs);
    }
  }

  #alone(job: BatchedJob, bases: ReadonlyMap<string, Json | undefined>): Decision {
    const batch = this.#newBatch({ bases });
    batch.add(job);
    return { kind: "apply", batch };
  }

  async #settleDecision(link: DatabaseLink, job: SettleJob, nowMs: number): Promise<Decision> {
    const [meta] = await link.query(`SELECT consumers_version FROM ${this.#m}.meta`);
    const version = Number(meta?.["consumers_version"]);
    const results: string[] = [];
    for (const settlement of job.settlements) {
      const held = isHeld(await heldClaims(link, this.#m, [settlement]), settlement);
      const isOutdated = settlement.consumers !== undefined && settlement.consumers !== version;
      results.push(held ? (isOutdated ? "consumers-moved" : "settled") : "lease-lost");
      if (!held || isOutdated) continue;
      const batch = this.#newBatch({ bases: new Map() });
      batch.add({ ...job, settlements: [settlement] });
      await this.#apply(link, batch, nowMs);
    }
    return { kind: "answer", text: JSON.stringify(results) };
  }

  async #call(job: Job & { kind: "call" }): Promise<void> {
    const answer = await this.#exactlyOnce(async (number) => {
      const [row] = await this.#query(
        `SELECT ${this.#level}, ${this.#m}.${job.call}($1, $2, $3, $4) AS answer`,
        [this.#incarnation, number, job.argument, this.#hostMs()],
        `${this.#m} ${job.call}`,
      );
      return String(row?.["answer"]);
    });
    job.answer(answer);
  }

  /** Moves published events to the journal, in the transaction that removes them from the outbox. */
  async #moveOutbox(job: Job & { kind: "outbox" }): Promise<void> {
    const { payloadBytesMax } = this.#options.tuning;
    const { answer, decision } = await this.#inTransaction<{ taken: Published; batch: Batch }>(async (link, nowMs) => {
      const taken = await takePublished(link, this.#m, nowMs, payloadBytesMax);
      const batch = this.#newBatch({ bases: new Map() });
      if (taken.entries.length === 0) return { answer: "{}", decision: { taken, batch }, moves: 0 };
      batch.add({ kind: "append", entries: taken.entries, bytes: 0, answer: () => {} });
      return { answer: await this.#apply(link, batch, nowMs), decision: { taken, batch } };
    }, "refused");
    if (decision === undefined) return job.answer(true);
    const { taken, batch } = decision;
    if (taken.entries.length > 0) this.#applied(batch, JSON.parse(answer) as BatchAnswer);
    for (const problem of taken.problems) {
      const what = `an event that ${this.#m}.publish was given stays in the outbox: ${problem}`;
      this.#host.report(new StoreError("STORE_MISUSE", what));
    }
    job.answer(taken.isFull);
  }

  async #statements(job: Job & { kind: "statements" }): Promise<void> {
    const { answer } = await this.#inTransaction<undefined>(async (link, nowMs) => {
      const result = await job.run(link, nowMs);
      return { answer: JSON.stringify(result ?? null), decision: undefined };
    });
    job.answer(JSON.parse(answer));
    if (job.touches !== "nothing") this.#events.wrote([], true);
  }

  /** Runs statements in one transaction with the writer's turn. Repeated, it gets the first answer. */
  #inTransaction<D>(
    work: (link: DatabaseLink, nowMs: number) => Promise<Worked<D>>,
    again?: "refused" | "rebuild",
  ): Promise<{ answer: string; decision: D | undefined }> {
    let last: Worked<D> | undefined;
    return this.#exactlyOnce(
      async (number) => {
        const link = this.#link;
        if (link === undefined || !link.isOpen) throw new DatabaseError("lost", "there is no connection");
        return link.transaction(async () => {
          const [row] = await link.query(`SELECT ${this.#m}.fence_v1($1, $2) AS answer`, [this.#incarnation, number]);
          const known = row?.["answer"];
          // It was applied, and its answer was lost on the way.
          if (typeof known === "string") return last?.answer === known ? last : { answer: known, decision: undefined };
          const nowMs = this.#hostMs() ?? (await this.#databaseMs(link));
          last = await work(link, nowMs);
          await link.query(`SELECT ${this.#m}.answer_v1($1, $2, $3, $4, NULL)`, [
            this.#incarnation,
            number,
            last.answer,
            last.moves ?? 1,
          ]);
          return last;
        });
      },
      again === undefined ? {} : { again },
    );
  }

  async #databaseMs(link: DatabaseLink): Promise<number> {
    const [row] = await link.query(`SELECT ${this.#m}.now_ms() AS now`);
    return Number(row?.["now"]);
  }

  /** The host's clock, if tests let it replace the database's. */
  #hostMs(): number | null {
    return this.#options.tuning.clock === "host" ? this.#host.now() : null;
  }

  /**
   * Sends the next batch until it is answered. The number is used up only by an answer. `refused`: a refusal is tried
   * again, because the facts of the decision have changed. `rebuild`: another writer row needs another batch.
   */
  async #exactlyOnce<T>(
    send: (number: number) => Promise<T>,
    { again, isBatch = true }: { again?: "refused" | "rebuild"; isBatch?: boolean } = {},
  ): Promise<T> {
    for (let tries = 1; ; tries++) {
      const incarnation = this.#incarnation;
      try {
        const result = await send(this.#batch + 1);
        if (isBatch) this.#batch++;
        this.#present();
        return result;
      } catch (thrown) {
        const error = thrown instanceof DatabaseError ? thrown : undefined;
        if (error?.kind === "lost") await this.#reconnect(error);
        else if (error?.kind === "fenced") await this.#register();
        else if (error?.kind === "again" && tries < TRIES_MAX) continue;
        else if (error?.kind === "refused" && again === "refused" && tries < TRIES_MAX) continue;
        else if (error?.kind === "broken") throw this.#stop(error);
        else {
          if (error?.kind === "refused") this.#present();
          throw thrown;
        }
        if (this.#incarnation !== incarnation && again === "rebuild")
          throw new DatabaseError("refused", "the writer was registered again");
      }
    }
  }

  /** The database has answered. */
  #present(): void {
    if (this.#state !== "replaying") return;
    this.#state = "connected";
    this.#sinceMs = undefined;
    this.#reason = undefined;
    this.#events.connection();
  }

  async #reconnect(reason: DatabaseError): Promise<void> {
    this.#link?.destroy();
    this.#reason = reason.message;
    this.#sinceMs ??= this.#host.now();
    if (this.#state === "connected" || this.#state === "replaying") {
      const wasConnected = this.#state === "connected";
      this.#state = "away";
      if (wasConnected) {
        this.#events.connection();
        this.#refuseUnparked();
      }
    }
    for (let delayMs = BACKOFF_MS; ; delayMs = Math.min(2 * delayMs, BACKOFF_MAX_MS)) {
      if (this.#isClosed) throw new StoreError("STORE_CLOSED", `the store was closed: ${reason.message}`);
      try {
        const isOther = await this.#connect();
        if (isOther && !(await this.#isBatchThere())) await this.#register();
        if (isOther) this.#made.clear();
        if (this.#isClosed) continue;
        this.#state = "replaying";
        if (isOther) this.#events.connection();
        return;
      } catch (error) {
        const again = databaseError(error);
        if (again.kind !== "lost") throw error;
        this.#reason = again.message;
      }
      await this.#pause(delayMs * (0.5 + this.#host.random()));
    }
  }

  /** Whether the batch in flight is part of the new history. */
  async #isBatchThere(): Promise<boolean> {
    const [row] = await this.#query(`SELECT batch FROM ${this.#m}.writer WHERE incarnation = $1`, [this.#incarnation]);
    return Number(row?.["batch"]) === this.#batch + 1;
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#host.timer(ms, resolve);
      this.#giveUp = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#giveUp = undefined;
  }

  /** Claims and leases do not wait: their answers would be too old. */
  #refuseUnparked(): void {
    const jobs = this.#queue.slice(this.#first);
    this.#queue = jobs.filter(parks);
    this.#first = 0;
    for (const job of jobs) if (!parks(job)) job.answer(this.#awayError());
  }

  #stop(error: DatabaseError): StoreError {
    const trouble = `the database reports damaged data: ${error.message}`;
    this.#state = "stopped";
    this.#trouble = trouble;
    this.#dropQueue(() => rejected("failed", "store-stopped", trouble));
    return new StoreError("STORE_STOPPED", trouble, { cause: error });
  }

  #dropQueue(reason: () => Rejection): void {
    const jobs = this.#queue.slice(this.#first);
    this.#queue = [];
    this.#first = 0;
    this.#queuedBytes = 0;
    for (const job of jobs) refuse(job, reason());
  }

  #failAll(jobs: readonly Job[], thrown: unknown): void {
    if (thrown instanceof StoreError) {
      for (const job of jobs) {
        if (thrown.code === "STORE_CLOSED") refuse(job, rejected("unknown", "no-answer", thrown.message));
        else job.answer(thrown);
      }
      return;
    }
    const error = databaseError(thrown);
    for (const job of jobs) {
      if (error.kind === "full") refuse(job, rejected("failed", "store-full", error.message));
      else if (error.kind === "refused" || error.kind === "again") refuse(job, busy(error));
      else job.answer(new StoreError("STORE_IO", error.message, { cause: error }));
    }
  }
}

function dueName({ kind, key }: DueChange): string {
  return `${kind}\0${key}`;
}

function hasRepeats<T>(list: readonly T[], nameOf: (item: T) => unknown): boolean {
  return list.length > 1 && new Set(list.map(nameOf)).size < list.length;
}

/** The request without the parts of `#applyRepeats`. */
function withoutRepeats(request: CommitRequest): CommitRequest {
  const due = hasRepeats(request.due, dueName) ? [] : request.due;
  const settlements = hasRepeats(request.settlements, ({ id }) => id) ? [] : request.settlements;
  return { ...request, due, settlements };
}

function busy(error: DatabaseError): Rejection {
  return rejected("failed", "store-busy", `other kernels write the same data: ${error.message}`);
}

function parks(job: Job): boolean {
  return isBatched(job) || job.parks;
}

function isBatched(job: Job): job is BatchedJob {
  return job.kind === "commit" || job.kind === "append" || job.kind === "settle";
}

/** Commits and appends have rejections as results; other calls throw. */
function refuse(job: Job, reason: Rejection): void {
  if (job.kind === "commit" || job.kind === "append") job.answer(reason);
  else job.answer(new StoreError(reason.reason === "store-full" ? "STORE_FULL" : "STORE_BUSY", reason.message));
}

/** The ids of all entries, from those of the new ones. */
function allIds({ places }: ResolvedEntries, fresh: readonly number[]): number[] {
  return places.map((place) => ("id" in place ? place.id : (fresh[place.fresh] as number)));
}

function appended(job: AppendJob, resolved: ResolvedEntries): AppendJob["answer"] {
  return (answer) => {
    if (answer instanceof Error || answer.kind !== "appended") return job.answer(answer);
    const outcome: AppendOutcome = { ...answer, ids: allIds(resolved, answer.ids) };
    const isRepeated = resolved.fresh.length < resolved.places.length;
    job.answer(isRepeated ? { ...outcome, repeated: true } : outcome);
  };
}

function committed(job: CommitJob, resolved: ResolvedEntries): CommitJob["answer"] {
  return (answer) => {
    if (answer instanceof Error || answer.kind !== "committed") return job.answer(answer);
    job.answer({ ...answer, journalIds: allIds(resolved, answer.journalIds) });
  };
}
