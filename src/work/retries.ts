/**
 * The retries of one invocation: made by its first rejected commit, and kept until its end. The only place that waits
 * before a handler runs again, and that asks the store for a commit without an answer. The entry point decides when the
 * next run begins. SPEC: U16-U28.
 *
 * ```
 *   rejected ──again──> caught up, pause ──> again
 *      ├──ask──> the store has it ──> done
 *      │         it has not ──> again          cannot tell until the window ends ──> lost
 *      └──already, lost, failed; window over ──> that end
 * ```
 */
import type { Host } from "../host/host.ts";
import { pause } from "../host/pause.ts";
import type { CommitIdentity } from "../store/commit.ts";
import { type Rejection, rejected } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";
import type { Attempt } from "./attempt.ts";
import { stalePauseMs, verdictOn } from "./retry-table.ts";

/** How an invocation goes on after a rejected commit. */
export type Next =
  | { readonly kind: "again" }
  /** The commit is in the store after all. */
  | { readonly kind: "done" }
  /** A receipt is there. */
  | { readonly kind: "already" }
  /** `rejection.message` has the reason; after the window, also how often the handler ran. */
  | { readonly kind: "lost" | "failed"; readonly rejection: Rejection };

export interface RetryParts {
  readonly host: Host;
  readonly replica: Replica;
  /** How long an invocation is tried, from its first rejection on. */
  readonly windowMs: number;
}

const AGAIN: Next = { kind: "again" };

export class Retries {
  readonly #host: Host;
  readonly #replica: Replica;
  readonly #windowMs: number;
  /** On the monotonic clock. */
  #untilMs: number;
  /** Runs of the handler that were rejected. */
  #runs = 0;

  constructor({ host, replica, windowMs }: RetryParts) {
    this.#host = host;
    this.#replica = replica;
    this.#windowMs = windowMs;
    this.#untilMs = host.monotonic() + windowMs;
  }

  get isOver(): boolean {
    return this.#host.monotonic() >= this.#untilMs;
  }

  /** Time that passed while the next run waited for its turn does not count. */
  extend(ms: number): void {
    this.#untilMs += ms;
  }

  /**
   * Resolves when the next run may begin, or with the end. `commit` is the rejected one; undefined if only reads were
   * checked.
   */
  async next(rejection: Rejection, commit: CommitIdentity | undefined): Promise<Next> {
    const verdict = verdictOn(rejection);
    if (verdict === "already") return { kind: "already" };
    if (verdict === "lost" || verdict === "failed") return { kind: verdict, rejection };
    this.#runs++;
    if (verdict === "ask" && commit !== undefined) return this.#ask(rejection, commit);
    if (this.isOver) return this.#ended("failed", rejection);
    await this.#ready();
    return AGAIN;
  }

  /** The same for a run that met documents or computed values which were not ready: its result must not be used. */
  async afterLoads(attempt?: Attempt): Promise<Next> {
    this.#runs++;
    if (this.isOver) return this.#ended("failed", unready(attempt));
    await this.#replica.loadsSettled();
    const isReady = await (attempt?.whenReady(() => this.isOver) ?? true);
    if (!isReady) return this.#ended("failed", unready(attempt));
    // A load that failed is tried again by the next run.
    if (attempt !== undefined && !attempt.isLoaded) await pause(this.#host, stalePauseMs(this.#host, this.#runs));
    return AGAIN;
  }

  async #ask(rejection: Rejection, commit: CommitIdentity): Promise<Next> {
    for (let asked = 1; ; asked++) {
      if (this.isOver) return this.#ended("lost", rejection);
      await pause(this.#host, stalePauseMs(this.#host, asked));
      let isThere: boolean | undefined;
      try {
        isThere = await isCommitted(this.#replica, commit);
      } catch {
        // The space has closed.
        return { kind: "lost", rejection };
      }
      if (isThere) return { kind: "done" };
      if (isThere === undefined) continue;
      await this.#ready();
      return AGAIN;
    }
  }

  /** The commits of other processes are here, and the documents that the handler asked for. */
  async #ready(): Promise<void> {
    await this.#caughtUp();
    await this.#replica.loadsSettled();
    await pause(this.#host, stalePauseMs(this.#host, this.#runs));
  }

  /** A feed that cannot be read now is no reason to stop: the next rejection says so again. */
  async #caughtUp(): Promise<void> {
    await this.#replica.catchUp().catch(() => undefined);
  }

  #ended(kind: "lost" | "failed", rejection: Rejection): Next {
    const runs = this.#runs === 1 ? "1 attempt" : `${this.#runs} attempts`;
    const message = `not committed after ${runs} in ${this.#windowMs} ms: ${rejection.message}`;
    return { kind, rejection: { ...rejection, message } };
  }
}

/** Names the documents or the computed value that the run had to wait for. */
function unready(attempt: Attempt | undefined): Rejection {
  return rejected("stale", "read-moved", attempt?.unreadyText ?? "its documents were being loaded");
}

/** Makes an empty commit, on the condition that the other commit was made. Undefined if the store does not tell. */
export async function isCommitted(
  replica: Replica,
  { session, localSequence }: CommitIdentity,
): Promise<boolean | undefined> {
  const question = replica.transaction();
  question.preconditions.push({ kind: "originCommitted", session, localSequence });
  const answer = await question.commit().outcome;
  if (answer.kind === "committed") return true;
  return answer.reason === "origin-not-committed" ? false : undefined;
}
