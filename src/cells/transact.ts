/**
 * `space.transact`: synchronous code as one commit, run until that is durable. Each run is an attempt
 * (`work/attempt.ts`); `work/retries.ts` decides about rejected commits. SPEC: R28, R46, U16-U28.
 *
 * ```
 *   run ──wrote──> commit ──confirmed──> result
 *    ^ ├──no write, or threw──> its reads are valid ──> result, or the error
 *    │ └──needs documents or computed values that are not ready┐
 *    └────────────── again ──────────── rejected ──────────────┘
 * ```
 * A run with writes commits at once, even if it read documents of its space as absent because they are not loaded. The
 * commit is stale if they exist.
 */
import type { Host } from "../host/host.ts";
import { AWAITED_WINDOW_MS } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import { MillraceError } from "../message/millrace-error.ts";
import { synchronous } from "../scheduler/attempts.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import type { CommitIdentity, CommitOutcome } from "../store/commit.ts";
import type { Rejection } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";
import { Attempt, type AttemptKind } from "../work/attempt.ts";
import { Outbox } from "../work/outbox.ts";
import { Refusal, refusalOf } from "../work/refusal.ts";
import { type Next, Retries } from "../work/retries.ts";
import { Tx } from "../work/tx.ts";
import { WorkError } from "../work/work-error.ts";

/** Options of `space.transact`. */
export interface TransactOptions {
  /** Sinks of this group are not called: they made the change themselves. */
  readonly changeGroup?: string;
  /** How long a stale transaction is repeated; default 10 s. */
  readonly windowMs?: number;
}

/** The commit of a transaction was rejected, with this class and reason. */
export class TransactionError extends MillraceError<"TRANSACTION_REJECTED"> {
  override readonly name = "TransactionError";
  readonly rejection: Rejection;

  constructor(rejection: Rejection) {
    super("TRANSACTION_REJECTED", `the transaction did not last: ${rejection.message}`);
    this.rejection = rejection;
  }
}

/** The parts of a space that transactions use. */
export interface TransactSpace {
  readonly host: Host;
  readonly replica: Replica;
  readonly kind: AttemptKind;
  readonly outbox?: Outbox;
}

/** The end of an attempt. */
export interface CommitEnd {
  /** Undefined if it did not write, threw or has to run again. */
  readonly commit: CommitIdentity | undefined;
  /**
   * The outcome of its commit, or of the check of its reads; undefined if it has to run again when its documents and
   * values are ready.
   */
  readonly outcome: Promise<CommitOutcome> | undefined;
}

/** One run of the code. */
export interface Tried<T> extends CommitEnd {
  readonly attempt: Attempt;
  readonly end: { readonly value: T } | { readonly error: unknown };
}

const EARLY: CommitEnd = { commit: undefined, outcome: undefined };
const DONE: Next = { kind: "done" };

/** Runs code as part of the current attempt or run. */
export function transactInside<T>(
  scheduler: Scheduler,
  outbox: Outbox,
  code: (tx: Tx) => T,
): Promise<Exclude<T, Refusal>> {
  try {
    const part = (attempt: Attempt | undefined) => {
      const value = code(attempt === undefined ? txOfRun(code) : new Tx(attempt, outbox, undefined));
      if (value instanceof Refusal) throw value;
      return value as Exclude<T, Refusal>;
    };
    return Promise.resolve(scheduler.parts.attempts.transactInside(part));
  } catch (error) {
    // Abandons the attempt or the run, which must not continue without the rest of the code.
    if (typeof error === "symbol") throw error;
    return Promise.reject(error);
  }
}

/** For code that the space itself runs. */
const NO_OUTBOX = new Outbox({ source: "a transaction" });

/** The run of a node has no transaction of its own, so code with a parameter `tx` cannot be part of it. */
function txOfRun(code: (tx: Tx) => unknown): Tx {
  if (code.length > 0)
    throw new WorkError("WORK_MISUSE", "a computation or an effect has no tx; publish and send from a handler instead");
  return undefined as never;
}

export async function transact<T>(
  { host, replica, kind, outbox = NO_OUTBOX }: TransactSpace,
  code: (tx: Tx) => T,
  { changeGroup, windowMs = AWAITED_WINDOW_MS }: TransactOptions,
): Promise<Exclude<T, Refusal>> {
  let retries: Retries | undefined;
  /** Documents that were not loaded in a run; they stay in memory until the code has run with all of them. */
  const held: (() => void)[] = [];
  try {
    for (let number = 1; ; number++) {
      const attempt = new Attempt(kind, { replica, number, changeGroup });
      const tx = new Tx(attempt, outbox, undefined);
      const { end, commit, outcome } = tryOnce(attempt, () => code(tx));
      const answer = await outcome;
      let next = DONE;
      if (answer?.kind !== "committed") {
        retries ??= new Retries({ host, replica, windowMs });
        for (const missing of attempt.missing) held.push(missing.replica.observe(missing.document));
        next = await (answer === undefined ? retries.afterLoads(attempt) : retries.next(answer, commit));
      }
      if (next.kind === "done") {
        attempt.lineage.confirm();
        if ("error" in end) throw end.error;
        return end.value as Exclude<T, Refusal>;
      }
      attempt.lineage.fail("the transaction was not committed");
      if (next.kind !== "again")
        throw new TransactionError(next.kind === "already" ? (answer as Rejection) : next.rejection);
    }
  } finally {
    for (const release of held) release();
  }
}

/** Runs the code once, and commits its writes. */
export function tryOnce<T>(attempt: Attempt, code: () => T): Tried<T> {
  let end: Tried<T>["end"];
  try {
    end = { value: attempt.within(() => synchronous(code)) };
    const refused = refusalOf(end.value, attempt.refusal);
    if (refused !== undefined) throw refused;
    if (attempt.unready === undefined) attempt.seal();
    return { attempt, end, ...commitAttempt(attempt) };
  } catch (error) {
    end = { error };
    attempt.lineage.fail(`the transaction threw: ${thrownText(error)}`);
    if (attempt.isReady) return { attempt, end, commit: undefined, outcome: attempt.standing() };
    attempt.abort("it threw");
    return { attempt, end, ...EARLY };
  }
}

/** Commits the writes of an attempt, or checks whether its reads are still valid. */
export function commitAttempt(attempt: Attempt): CommitEnd {
  const { replica, missing, hasWritten } = attempt;
  // A commit may treat a document of its own space as absent, because it depends on that.
  const mustWait =
    attempt.unready !== undefined || [...missing].some((home) => !hasWritten || home.replica !== replica);
  if (mustWait) {
    attempt.abort("it read documents or computed values before they were ready");
    return EARLY;
  }
  if (!hasWritten) return { commit: undefined, outcome: attempt.standing() };
  const commit = attempt.commit();
  return { commit, outcome: commit.outcome };
}
