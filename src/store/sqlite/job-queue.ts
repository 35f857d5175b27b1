/**
 * Jobs that wait for a batch, in the order of submission, limited in number and bytes. SPEC: S13, S94.
 */
import { type Rejection, rejected } from "../rejection.ts";
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
