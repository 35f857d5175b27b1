/**
 * Jobs that wait for a batch, in the order of submission, limited in number and bytes. SPEC: S13, S94.
 */
import { type Rejection, rejected } from "../rejection.ts";
import type { StoreErrorCode } from "../store.ts";
import { StoreError } from "../store.ts";
import type { SqliteTuning } from "./options.ts";

export interface Job {
  /** Does the work and keeps the result; may be called again after a rollback. */
  run(): void;
  /** Called once, after COMMIT. */
  succeed(): void;
  /** Called once instead, with the cause. An `Error` was thrown by `run` itself. */
  fail(cause: Rejection | Error): void;
  readonly bytes: number;
  /** Upkeep is internal work of the store: not counted, never refused. */
  readonly isUpkeep: boolean;
}

export class JobQueue implements Iterable<Job> {
  readonly #tuning: SqliteTuning;
  #jobs: Job[] = [];
  #bytes = 0;

  constructor(tuning: SqliteTuning) {
    this.#tuning = tuning;
  }

  get length(): number {
    return this.#jobs.length;
  }

  [Symbol.iterator](): Iterator<Job> {
    return this.#jobs[Symbol.iterator]();
  }

  /** The reason of a refusal; undefined if the job was queued. */
  push(job: Job): Rejection | undefined {
    const { queueJobsMax, queueBytesMax } = this.#tuning;
    const isFull = this.#jobs.length >= queueJobsMax || this.#bytes + job.bytes > queueBytesMax;
    if (isFull && !job.isUpkeep && this.#jobs.length > 0) {
      return rejected("failed", "store-busy", `${this.#jobs.length} writes wait already; wait for some of them`);
    }
    this.#jobs.push(job);
    this.#bytes += job.bytes;
    return undefined;
  }

  /** Removes the first jobs. */
  drop(count: number): void {
    for (const { bytes } of this.#jobs.splice(0, count)) this.#bytes -= bytes;
  }

  takeAll(): Job[] {
    const jobs = this.#jobs;
    this.#jobs = [];
    this.#bytes = 0;
    return jobs;
  }
}

/**
 * A caller's job: it keeps the result of its last run and resolves the caller's promise directly.
 */
export class PendingJob<T> implements Job {
  readonly bytes: number;
  readonly isUpkeep = false;
  readonly #work: () => T;
  readonly #resolve: (result: T) => void;
  readonly #fail: (cause: Rejection | Error) => void;
  #result: { readonly value: T } | undefined;

  constructor(bytes: number, work: () => T, resolve: (result: T) => void, fail: (cause: Rejection | Error) => void) {
    this.bytes = bytes;
    this.#work = work;
    this.#resolve = resolve;
    this.#fail = fail;
  }

  run(): void {
    this.#result = { value: this.#work() };
  }

  succeed(): void {
    if (this.#result) this.#resolve(this.#result.value);
  }

  fail(cause: Rejection | Error): void {
    this.#fail(cause);
  }
}

/** The error for a rejection if the method's result has no outcome. */
export function errorOf({ class: rejectionClass, reason, message }: Rejection): StoreError {
  return new StoreError(rejectionClass === "unknown" ? "STORE_STOPPED" : codeOf(reason), message);
}

function codeOf(reason: Rejection["reason"]): StoreErrorCode {
  switch (reason) {
    case "store-full":
      return "STORE_FULL";
    case "store-busy":
      return "STORE_BUSY";
    case "store-stopped":
      return "STORE_STOPPED";
    default:
      return "STORE_IO";
  }
}
