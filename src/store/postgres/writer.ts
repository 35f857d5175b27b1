/**
 * The only writer of a store object: a queue of jobs, one batch in flight. SPEC: S28.
 *
 *   connected ──connection lost, deadline──> away ──connected again──> replaying (the same batch) ──> connected
 *   any ──close()──> closed          any ──damaged data──> stopped
 *
 * A batch has a number in the row of the writer, so it can be sent again unchanged: if it was applied, it gets the
 * answer that was lost. Jobs that wait while the database is away stay in the queue, up to `parkedMax`.
 */
import type { Host, Timer } from "../../host/host.ts";
import type { Json } from "../../message/json.ts";
import { type Rejection, rejected } from "../rejection.ts";
import { RowHasher } from "../sqlite/journal-hash.ts";
import { StoreError } from "../store.ts";
import { Batch, type BatchAnswer, firstPlace, type RowPlace } from "./batch.ts";
import { decideWithFacts, heldClaims, isHeld, type ResolvedEntries, resolveEntries } from "./commit-decision.ts";
import { DatabaseError, databaseError } from "./database-error.ts";
import type { BatchedJob, CommitJob, Job } from "./jobs.ts";
import { Link } from "./link.ts";
import type { ResolvedOptions } from "./options.ts";
import { LANE_COUNT } from "./schema.ts";

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
}

export class Writer {
  readonly #options: ResolvedOptions;
  readonly #host: Host;
  readonly #events: WriterEvents;
  readonly #m: string;
  readonly #hasher = new RowHasher();
  #link: Link | undefined;
  #state: "connected" | "away" | "replaying" | "closed" | "stopped" = "away";
  #awaySinceMs: number | undefined;
  #trouble: string | undefined;
  #incarnation = 0;
  /** The number of the last answered batch. */
  #batch = 0;
  #place: RowPlace = firstPlace(0, 0);
  /** Jobs from `#first` on. */
  #queue: Job[] = [];
  #first = 0;
  #isRunning = false;
  /** Resolves when the batch in flight has been answered. */
  #turn: Promise<void> | undefined;
  #giveUp: (() => void) | undefined;
  /** Local sequences of commits that were made, by session. */
  readonly #made = new Map<string, Set<number>>();
  readonly stats = { batches: 0, jobs: 0, bytesWritten: 0, statements: 0 };

  constructor(options: ResolvedOptions, events: WriterEvents) {
    this.#options = options;
    this.#host = options.host;
    this.#events = events;
    this.#m = options.schema;
  }

  async open(): Promise<void> {
    this.#link = await Link.open(this.#options);
    await this.#register();
    this.#state = "connected";
  }

  /** Why it has stopped. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Since when the database has not answered, and the number of jobs that wait. */
  get away(): { readonly sinceMs: number; readonly parked: number } | undefined {
    return this.#awaySinceMs === undefined ? undefined : { sinceMs: this.#awaySinceMs, parked: this.#queued };
  }

  get incarnation(): number {
    return this.#incarnation;
  }

  get lane(): number {
    return this.#place.lane;
  }

  get #queued(): number {
    return this.#queue.length - this.#first;
  }

  /** A later row has a greater id than every row that this process has seen. */
  saw(journalId: number): void {
    const n = Math.floor(journalId / LANE_COUNT);
    if (n > this.#place.n) this.#place.n = n;
  }

  submit(job: Job): void {
    if (this.#trouble !== undefined) {
      job.answer(new StoreError("STORE_STOPPED", this.#trouble));
      return;
    }
    if (this.#queued >= this.#options.tuning.parkedMax) {
      refuse(job, rejected("failed", "store-busy", `${this.#queued} writes wait for the database; try again later`));
      return;
    }
    this.#queue.push(job);
    if (!this.#isRunning) {
      this.#isRunning = true;
      // Jobs of the same task share a batch.
      this.#host.microtask(() => void this.#run());
    }
  }

  /** Resolves when the batch in flight now, if any, has been answered. */
  async settled(): Promise<void> {
    await this.#turn;
  }

  /** Waits for the queue, at most `closeWaitMs` while the database is away. */
  async close(): Promise<void> {
    let timer: Timer | undefined;
    const patience = new Promise<void>((resolve) => {
      const check = () => {
        if (this.#awaySinceMs === undefined) timer = this.#host.timer(this.#options.tuning.closeWaitMs, check);
        else resolve();
      };
      timer = this.#host.timer(this.#options.tuning.closeWaitMs, check);
    });
    while (this.#isRunning && this.#state !== "stopped") {
      const over = await Promise.race([this.#turn ?? this.#host.yield(), patience.then(() => "over" as const)]);
      if (over === "over") break;
    }
    timer?.cancel();
    this.#state = "closed";
    this.#giveUp?.();
    this.#dropQueue(rejected("unknown", "no-answer", "the store was closed while the database was away"));
    if (this.#link?.isOpen) {
      try {
        await this.#link.query(`UPDATE ${this.#m}.writer SET ended = true WHERE incarnation = $1`, [this.#incarnation]);
      } catch (error) {
        // Its lane is free again after an hour.
        databaseError(error);
      }
    }
    await this.#link?.close();
  }

  /** The writer's connection, for tests that end it. */
  get link(): Link | undefined {
    return this.#link;
  }

  async #register(): Promise<void> {
    const [row] = await this.#query(`SELECT incarnation, lane, coalesce(n, 0) AS n FROM ${this.#m}.register_v1($1)`, [
      this.#host.id(),
    ]);
    this.#incarnation = Number(row?.["incarnation"]);
    this.#batch = 0;
    this.#place = firstPlace(Number(row?.["lane"]), Math.max(Number(row?.["n"]), this.#place.n));
  }

  async #query(text: string, values: Parameters<Link["query"]>[1], name?: string): ReturnType<Link["query"]> {
    const link = this.#link;
    if (link === undefined || !link.isOpen) throw new DatabaseError("lost", "there is no connection");
    this.stats.statements++;
    return link.query(text, values, name);
  }

  async #run(): Promise<void> {
    while (this.#queued > 0 && this.#state !== "closed" && this.#state !== "stopped") {
      const job = this.#queue[this.#first] as Job;
      const jobs = this.#take(job);
      const turn = this.#perform(jobs).catch((error) => this.#failAll(jobs, error));
      this.#turn = turn;
      await turn;
    }
    this.#turn = undefined;
    this.#isRunning = false;
  }

  /** The next jobs: one, or as many as may share a batch. The batch itself decides that when it is built. */
  #take(first: Job): readonly Job[] {
    let count = 1;
    if (isBatched(first)) {
      const batch = this.#newBatch();
      if (batch.add(first) === "added") {
        while (count < this.#queued) {
          const next = this.#queue[this.#first + count] as Job;
          if (!isBatched(next) || batch.add(next) !== "added") break;
          count++;
        }
      }
    }
    const jobs = this.#queue.slice(this.#first, this.#first + count);
    this.#first += count;
    if (this.#first > 1_000 && this.#first * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#first);
      this.#first = 0;
    }
    return jobs;
  }

  async #perform(jobs: readonly Job[]): Promise<void> {
    this.stats.batches++;
    this.stats.jobs += jobs.length;
    const [first] = jobs as readonly [Job];
    if (first.kind === "call") return this.#call(first);
    if (first.kind === "statements") return this.#statements(first);
    return this.#batched(jobs as readonly BatchedJob[]);
  }

  #newBatch(decided?: ConstructorParameters<typeof Batch>[3]): Batch {
    return new Batch(
      this.#place,
      this.#hasher,
      (session, local) => this.#made.get(session)?.has(local) === true,
      decided,
    );
  }

  /** Applies jobs as one batch. A refused batch is halved, until the refused job is decided alone. */
  async #batched(jobs: readonly BatchedJob[]): Promise<void> {
    const batch = this.#newBatch();
    const fit = jobs.every((job) => batch.add(job) === "added");
    if (fit && (await this.#send(batch))) return;
    if (jobs.length === 1) return this.#decide(jobs[0] as BatchedJob);
    const half = Math.ceil(jobs.length / 2);
    await this.#batched(jobs.slice(0, half));
    await this.#batched(jobs.slice(half));
  }

  /** False if the database refused it. */
  async #send(batch: Batch): Promise<boolean> {
    const text = batch.text();
    let answer: string;
    try {
      answer = await this.#exactlyOnce(async (number) => {
        const [row] = await this.#query(
          `SELECT ${this.#m}.run_v1($1, $2, $3, $4) AS answer`,
          [this.#incarnation, number, text, this.#nowMs()],
          `${this.#m} run`,
        );
        return String(row?.["answer"]);
      }, "rebuild");
    } catch (error) {
      if (!(error instanceof DatabaseError) || error.kind !== "refused") throw error;
      return false;
    }
    this.stats.bytesWritten += text.length;
    this.#applied(batch, JSON.parse(answer) as BatchAnswer);
    return true;
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
    const done = await this.#inTransaction(async (link, nowMs) => {
      const step = await this.#decision(link, job, nowMs);
      if (step.kind !== "apply") return { answer: step.text, apply: undefined };
      const [row] = await link.query(`SELECT ${this.#m}.apply_v1($1, $2, $3) AS answer`, [
        step.batch.text(),
        this.#incarnation,
        nowMs,
      ]);
      return { answer: String(row?.["answer"]), apply: step };
    }, "refused");
    // After a lost answer the decision is known from the stored text alone.
    const apply = done.apply;
    if (apply !== undefined) {
      this.#applied(apply.batch, JSON.parse(done.answer) as BatchAnswer);
      return;
    }
    const outcome = JSON.parse(done.answer) as unknown;
    (job.answer as (answer: unknown) => void)(outcome);
    if (job.kind !== "commit") this.#events.wrote([], true);
  }

  async #decision(
    link: Link,
    job: BatchedJob,
    nowMs: number,
  ): Promise<{ kind: "answer"; text: string } | { kind: "apply"; batch: Batch }> {
    const answer = (value: unknown) => ({ kind: "answer", text: JSON.stringify(value) }) as const;
    if (job.kind === "settle") return this.#settleDecision(link, job);
    if (job.kind === "append") {
      const resolved = await resolveEntries(link, this.#m, job.entries, nowMs);
      if (resolved.kind === "rejected") return answer(resolved);
      const inner: BatchedJob = { ...job, entries: resolved.fresh, answer: this.#mapped(job, resolved) };
      return this.#applyAlone(inner, new Map());
    }
    const decision = await decideWithFacts(link, this.#m, job, nowMs, this.#options.tuning.feedCommits);
    if (decision.kind !== "apply") return answer(decision);
    const inner: CommitJob = { ...job, entries: decision.entries.fresh, answer: this.#mapped(job, decision.entries) };
    return this.#applyAlone(inner, decision.bases);
  }

  #applyAlone(job: BatchedJob, bases: ReadonlyMap<string, Json | undefined>): { kind: "apply"; batch: Batch } {
    const batch = this.#newBatch({ bases });
    batch.add(job);
    return { kind: "apply", batch };
  }

  /** Converts the ids of new entries to those of all entries. */
  #mapped(job: BatchedJob, { places, fresh }: ResolvedEntries): never {
    const answer = job.answer as (answer: unknown) => void;
    const map = (given: { ids?: readonly number[]; journalIds?: readonly number[] } & object) => {
      const of = (ids: readonly number[]) =>
        places.map((place) => ("id" in place ? place.id : (ids[place.fresh] as number)));
      if (given.ids !== undefined) {
        const isRepeated = fresh.length < places.length;
        answer({ ...given, ids: of(given.ids), ...(isRepeated ? { repeated: true } : {}) });
      } else if (given.journalIds !== undefined) answer({ ...given, journalIds: of(given.journalIds) });
      else answer(given);
    };
    return map as never;
  }

  async #settleDecision(
    link: Link,
    job: BatchedJob & { kind: "settle" },
  ): Promise<{ kind: "answer"; text: string } | { kind: "apply"; batch: Batch }> {
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
      const [row] = await link.query(`SELECT ${this.#m}.apply_v1($1, $2, $3) AS answer`, [
        batch.text(),
        this.#incarnation,
        await this.#clock(link),
      ]);
      const { lost } = JSON.parse(String(row?.["answer"])) as BatchAnswer;
      if (lost.length > 0) results[results.length - 1] = "lease-lost";
    }
    return { kind: "answer", text: JSON.stringify(results) };
  }

  async #call(job: Job & { kind: "call" }): Promise<void> {
    const answer = await this.#exactlyOnce(async (number) => {
      const [row] = await this.#query(
        `SELECT ${this.#m}.${job.call}($1, $2, $3, $4) AS answer`,
        [this.#incarnation, number, job.argument, this.#nowMs()],
        `${this.#m} ${job.call}`,
      );
      return String(row?.["answer"]);
    });
    job.answer(answer);
  }

  async #statements(job: Job & { kind: "statements" }): Promise<void> {
    const { answer } = await this.#inTransaction(async (link, nowMs) => {
      const result = await job.run(link, nowMs);
      return { answer: JSON.stringify(result ?? null) };
    });
    job.answer(JSON.parse(answer) as unknown);
    if (job.touches !== "nothing") this.#events.wrote([], true);
  }

  /** Runs statements in one transaction with the writer's turn. Repeated, it gets the first answer. */
  #inTransaction<T extends { answer: string }>(
    work: (link: Link, nowMs: number) => Promise<T>,
    again?: "refused",
  ): Promise<T | { answer: string; apply: undefined }> {
    let last: T | undefined;
    return this.#exactlyOnce((number) => {
      const link = this.#link;
      if (link === undefined || !link.isOpen) throw new DatabaseError("lost", "there is no connection");
      return link.transaction(async () => {
        const [row] = await link.query(`SELECT ${this.#m}.fence_v1($1, $2) AS answer`, [this.#incarnation, number]);
        const known = row?.["answer"];
        // It was applied, and its answer was lost on the way.
        if (typeof known === "string") return last?.answer === known ? last : { answer: known, apply: undefined };
        last = await work(link, await this.#clock(link));
        await link.query(`SELECT ${this.#m}.answer_v1($1, $2, $3, 1)`, [this.#incarnation, number, last.answer]);
        return last;
      });
    }, again);
  }

  async #clock(link: Link): Promise<number> {
    const nowMs = this.#nowMs();
    if (nowMs !== null) return nowMs;
    const [row] = await link.query(`SELECT ${this.#m}.now_ms() AS now`);
    return Number(row?.["now"]);
  }

  #nowMs(): number | null {
    return this.#options.tuning.clock === "host" ? this.#host.now() : null;
  }

  /**
   * Sends the next batch until it is answered. The number is used up only by an answer. `again`: a refusal is tried
   * again, because the facts of the decision changed. `rebuild`: a new writer needs a new batch.
   */
  async #exactlyOnce<T>(send: (number: number) => Promise<T>, again?: "refused" | "rebuild"): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        const result = await send(this.#batch + 1);
        this.#batch++;
        this.#present();
        return result;
      } catch (thrown) {
        const error = thrown instanceof DatabaseError ? thrown : undefined;
        if (error?.kind === "lost") await this.#reconnect(error);
        else if (error?.kind === "fenced") {
          await this.#register();
          if (again === "rebuild") throw new DatabaseError("refused", "the writer was registered again");
        } else if (error?.kind === "again" && tries < TRIES_MAX) continue;
        else if (error?.kind === "refused" && again === "refused" && tries < TRIES_MAX) continue;
        else if (error?.kind === "broken") throw this.#stop(error);
        else throw thrown;
        tries = 0;
      }
    }
  }

  #present(): void {
    if (this.#state === "replaying") this.#state = "connected";
    this.#awaySinceMs = undefined;
  }

  async #reconnect(reason: DatabaseError): Promise<void> {
    this.#link?.destroy();
    this.#state = this.#state === "closed" ? "closed" : "away";
    this.#awaySinceMs ??= this.#host.now();
    for (let delayMs = BACKOFF_MS; ; delayMs = Math.min(2 * delayMs, BACKOFF_MAX_MS)) {
      if (this.#state === "closed") throw new StoreError("STORE_CLOSED", `the store was closed: ${reason.message}`);
      try {
        this.#link = await Link.open(this.#options);
        this.#state = "replaying";
        return;
      } catch (error) {
        if (databaseError(error).kind !== "lost") throw error;
      }
      await new Promise<void>((resolve) => {
        const timer = this.#host.timer(delayMs * (0.5 + this.#host.random()), resolve);
        this.#giveUp = () => {
          timer.cancel();
          resolve();
        };
      });
      this.#giveUp = undefined;
    }
  }

  #stop(error: DatabaseError): StoreError {
    this.#state = "stopped";
    this.#trouble = `the database reports damaged data: ${error.message}`;
    this.#dropQueue(rejected("failed", "store-stopped", this.#trouble));
    return new StoreError("STORE_STOPPED", this.#trouble, { cause: error });
  }

  #dropQueue(reason: Rejection): void {
    const jobs = this.#queue.slice(this.#first);
    this.#queue = [];
    this.#first = 0;
    for (const job of jobs) refuse(job, reason);
  }

  #failAll(jobs: readonly Job[], thrown: unknown): void {
    for (const job of jobs) {
      if (thrown instanceof StoreError) {
        if (thrown.code === "STORE_CLOSED") refuse(job, rejected("unknown", "no-answer", thrown.message));
        else job.answer(thrown);
        continue;
      }
      const error = databaseError(thrown);
      if (error.kind === "full") refuse(job, rejected("failed", "store-full", error.message));
      else if (error.kind === "refused" || error.kind === "again")
        refuse(job, rejected("failed", "store-busy", `other kernels write the same data: ${error.message}`));
      else job.answer(new StoreError("STORE_IO", error.message, { cause: error }));
    }
  }
}

function isBatched(job: Job): job is BatchedJob {
  return job.kind === "commit" || job.kind === "append" || job.kind === "settle";
}

/** Commits and appends have rejections as results; other calls throw. */
function refuse(job: Job, reason: Rejection): void {
  if (job.kind === "commit" || job.kind === "append") job.answer(reason);
  else job.answer(new StoreError(reason.reason === "store-full" ? "STORE_FULL" : "STORE_BUSY", reason.message));
}
