/**
 * A replica's commit in the writer's queue. Its listener is called without a promise: a burst of commits would create
 * thousands of promises that live until the disk has answered. SPEC: S13.
 *
 *   asked ──the call returns──> queued ──written, or not──> told
 */
import type { CommitOutcome } from "../commit.ts";
import type { Rejection } from "../rejection.ts";
import type { CommitListener } from "../store.ts";
import type { CommitWriter, EncodedCommit } from "./commit-writer.ts";
import type { Job } from "./job-queue.ts";

export class CommitJob implements Job {
  readonly isUpkeep = false;
  /** The listener must not be called before the call has returned. */
  state: "asked" | "queued" = "asked";
  readonly #writer: CommitWriter;
  readonly #commit: EncodedCommit;
  readonly #listener: CommitListener;
  #outcome: CommitOutcome | undefined;

  constructor(writer: CommitWriter, commit: EncodedCommit, listener: CommitListener) {
    this.#writer = writer;
    this.#commit = commit;
    this.#listener = listener;
  }

  get bytes(): number {
    return this.#commit.bytes;
  }

  run(): void {
    this.#outcome = this.#writer.write(this.#commit);
  }

  succeed(): void {
    if (this.#outcome !== undefined) this.#tell(this.#outcome);
  }

  fail(cause: Rejection | Error): void {
    if (this.state === "queued") this.#tell(cause);
    else this.#writer.host.microtask(() => this.#tell(cause));
  }

  /** Errors of a listener go to the host: others of the batch wait for their answers. */
  #tell(answer: CommitOutcome | Error): void {
    try {
      this.#listener(answer);
    } catch (error) {
      this.#writer.host.report(error);
    }
  }
}

/** Adapts the listener to a promise. */
export function promised(
  commit: (listener: CommitListener) => Promise<CommitOutcome> | undefined,
): Promise<CommitOutcome> {
  return new Promise((resolve, reject) => {
    commit((answer) => (answer instanceof Error ? reject(answer) : resolve(answer)))?.then(resolve, reject);
  });
}
