/**
 * Writes of plain code that depend on a document which is not loaded (`push`, `update`, `delete`). SPEC: R53.
 *
 * ```
 *   tried at once, for a document that may not exist ──confirmed──> done
 *      └──it exists──> behind: run again when it is loaded, in the order of the calls ──> done, or reported
 * ```
 * Each is a commit of its own, so that its rejection does not affect other writes of the same turn. Later writes to the
 * same document use the same queue, so that they keep their order.
 */
import type { Host } from "../host/host.ts";
import { LATE_WRITES_MAX } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import type { DocumentIndex } from "../scheduler/node.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import { ambientClearance } from "../store/clearance.ts";
import type { CommitOutcome } from "../store/commit.ts";
import { StoreError } from "../store/store.ts";
import { Attempt, type AttemptKind } from "../work/attempt.ts";
import { verdictOn } from "../work/retry-table.ts";
import { transact, tryOnce } from "./transact.ts";

interface Queue {
  readonly home: DocumentIndex;
  /** Resolves when every write so far has an outcome. */
  last: Promise<void>;
  size: number;
  /** A write has to run again: the next ones wait for it. */
  isBehind: boolean;
  /** Allows that the document is dropped. */
  readonly release: () => void;
}

interface Write {
  readonly kind: AttemptKind;
  readonly code: () => void;
}

export class LateWrites {
  readonly #host: Host;
  readonly #scheduler: Scheduler;
  readonly #queues = new Map<DocumentIndex, Queue>();

  constructor(host: Host, scheduler: Scheduler) {
    this.#host = host;
    this.#scheduler = scheduler;
  }

  get isEmpty(): boolean {
    return this.#queues.size === 0;
  }

  /** Whether writes to the document are under way here. */
  has(home: DocumentIndex): boolean {
    return this.#queues.has(home);
  }

  /** Runs the write as a commit of its own, now and, if the document turns out to exist, again when it is loaded. */
  write(home: DocumentIndex, code: () => void): void {
    const queue = this.#queues.get(home) ?? this.#open(home);
    if (queue.size >= LATE_WRITES_MAX)
      throw new StoreError(
        "STORE_MISUSE",
        `${LATE_WRITES_MAX} writes wait until ${home.root} is loaded; await its pull() before writing more`,
      );
    const kind = this.#scheduler.attemptsOf("a plain write", ambientClearance());
    const write: Write = { kind, code };
    const tried = queue.isBehind ? undefined : this.#try(queue, write);
    queue.size++;
    queue.last = queue.last.then(() => this.#finish(queue, tried, write));
    this.#scheduler.parts.quiescence.background(queue.last);
  }

  #open(home: DocumentIndex): Queue {
    const release = home.replica.observe(home.document);
    const queue: Queue = { home, last: Promise.resolve(), size: 0, isBehind: false, release };
    this.#queues.set(home, queue);
    return queue;
  }

  /** The outcome of the commit; undefined if the write has to run again before it commits. */
  #try(queue: Queue, { kind, code }: Write): Promise<CommitOutcome> | undefined {
    const { attempt, end, outcome } = tryOnce(new Attempt(kind, { replica: queue.home.replica }), code);
    if ("error" in end) {
      // A document that is not loaded, or reads of unconfirmed writes, may be the reason of the error.
      const isTooEarly = !attempt.isReady || (queue.size > 0 && attempt.hasRead);
      if (!isTooEarly) throw this.#refused(queue, end.error);
      queue.isBehind = true;
      return undefined;
    }
    if (outcome === undefined) queue.isBehind = true;
    outcome?.then((answer) => {
      if (answer.kind === "committed") return attempt.lineage.confirm();
      queue.isBehind = true;
      attempt.lineage.fail(answer.message);
    });
    return outcome;
  }

  /** An error for the caller. */
  #refused(queue: Queue, error: unknown): unknown {
    if (queue.size === 0) this.#close(queue);
    return error;
  }

  async #finish(queue: Queue, tried: Promise<CommitOutcome> | undefined, write: Write): Promise<void> {
    try {
      const outcome = await tried;
      const isStale = outcome?.kind === "rejected" && verdictOn(outcome) === "again";
      if (outcome?.kind === "rejected" && !isStale) this.#lost(queue, outcome.message);
      else if (outcome === undefined || isStale) await this.#again(queue, write);
    } catch (error) {
      this.#lost(queue, thrownText(error));
    }
    if (--queue.size === 0) this.#close(queue);
  }

  async #again({ home: { replica, document } }: Queue, { kind, code }: Write): Promise<void> {
    await replica.load([document]);
    await transact({ host: this.#host, replica, kind }, code, {});
  }

  #lost({ home }: Queue, message: string): void {
    this.#scheduler.parts.introspection.report(new Error(`a write to ${home.root} was rolled back: ${message}`));
  }

  #close(queue: Queue): void {
    this.#queues.delete(queue.home);
    queue.release();
  }
}
