/**
 * Running synchronous code as one commit until it is durable. A rejected commit is judged by the table of all entry points (`work/retries.ts`). Code that has looked at documents which are not here,
 * and has thrown or written nothing, is run again when they are, and code that has looked at what is not confirmed yet, and has thrown or written nothing,
 * when that has fallen; code that has looked at a computed value which was not up to date, when that is: at
 * once, unless something asynchronous is in the way.
 */

import type { Host } from "../host/host.ts";
import { pause } from "../host/pause.ts";
import { AWAITED_WINDOW_MS, READY_PAUSE_MS } from "../limits.ts";
import { MillraceError } from "../message/millrace-error.ts";
import type { Address, DocumentIndex } from "../scheduler/address.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import type { TransactionReads } from "../scheduler/transaction-reads.ts";
import { ReadBehind, ReadTentative, ReadTooEarly, type Transacted } from "../scheduler/turns.ts";
import type { CommitIdentity } from "../store/commit.ts";
import { type Rejection, rejected } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";
import { Retries } from "../work/retries.ts";

export interface TransactOptions {
  /** Subscribers of this group are not told: they made the change themselves. */
  readonly changeGroup?: string;
  /** How long a stale transaction is run again; default 10 s. */
  readonly windowMs?: number;
}

/** A transaction that did not last, with the class and reason of the rejection. */
export class TransactionError extends MillraceError<"TRANSACTION_REJECTED"> {
  override readonly name = "TransactionError";
  readonly rejection: Rejection;

  constructor(rejection: Rejection, attempts: number) {
    super(
      "TRANSACTION_REJECTED",
      `the transaction did not last after ${attempts} ${attempts === 1 ? "try" : "tries"}: ${rejection.message}`,
    );
    this.rejection = rejection;
  }
}

/** Stands for the commit of code that made none. */
const NO_COMMIT: CommitIdentity = { session: "", localSequence: 0 };

/** Runs of the code in one turn, each because of computed values that the one before had not looked at. */
const ATTEMPTS_AT_ONCE = 10;

/** As a part of what is under way: what that waits for is not its own to wait for. */
export function transactInside<T>(scheduler: Scheduler, replica: Replica, code: () => T): Promise<T> {
  try {
    return Promise.resolve(scheduler.transact(replica, code).result);
  } catch (error) {
    // Whoever is run again by this must not go on without what the code had yet to do, and it tells people nothing.
    if (typeof error === "symbol") throw error;
    return Promise.reject(error);
  }
}

export async function transact<T>(
  host: Host,
  scheduler: Scheduler,
  replica: Replica,
  reads: TransactionReads,
  code: () => T,
  { changeGroup, windowMs = AWAITED_WINDOW_MS }: TransactOptions,
): Promise<T> {
  const until = host.monotonic() + windowMs;
  const isOver = () => host.monotonic() >= until;
  /** What it has looked at while it was not here stays from then on, until it has run with all of it. */
  const held: (() => void)[] = [];
  const closure = reads.closure();
  let retries: Retries | undefined;
  try {
    for (let attempt = 1; ; attempt++) {
      const attempted = tryOnce(() => scheduler.transact(replica, code, changeGroup, closure));
      if (attempted instanceof ReadBehind) {
        // Code that looks at another value each time it runs must not hold the thread, nor go on for ever.
        const isRestless = attempt > ATTEMPTS_AT_ONCE;
        if (isRestless) await pause(host, READY_PAUSE_MS);
        else if (attempt === 1) reads.refresh();
        for (const [address, shallow] of attempted.behind) {
          while (!closure.require(address, shallow) || (isRestless && isOver())) {
            if (isOver()) throw new TransactionError(notInTime(address, windowMs), attempt);
            await pause(host, READY_PAUSE_MS);
          }
        }
        continue;
      }
      const { end, commit, standing, missing } = attempted;
      for (const { replica: of, document } of missing ?? []) held.push(of.observe(document));
      if (commit === undefined && missing !== undefined && !isOver()) {
        // Where nothing is loaded any more, it ends with the window.
        if (!(await loaded(missing))) await pause(host, READY_PAUSE_MS);
        continue;
      }
      // It has read what it needed: while the store takes its time, it demands nothing.
      closure.release();
      const outcome = await (commit?.outcome ?? standing);
      if (outcome === undefined || outcome.kind === "committed") return end();
      retries ??= new Retries({ host, replica, windowMs: until - host.monotonic() });
      // Code that wrote nothing has no commit that the store could be asked for: its reads were taken back.
      const rejection = commit === undefined ? { ...outcome, class: "stale" as const } : outcome;
      const next = await retries.next(rejection, commit ?? NO_COMMIT);
      if (next.kind === "done") return end();
      if (next.kind !== "again")
        throw new TransactionError(next.kind === "already" ? rejection : next.rejection, attempt);
    }
  } finally {
    closure.release();
    for (const letGo of held) letGo();
  }
}

/** What an attempt has come to, if what it rests on lasts. */
interface Attempted<T> extends Omit<Transacted<T>, "result"> {
  /** Gives the result, or throws what the code has thrown. */
  readonly end: () => T;
}

function tryOnce<T>(transact: () => Transacted<T>): Attempted<T> | ReadBehind {
  try {
    const { result, ...rest } = transact();
    return { ...rest, end: () => result };
  } catch (error) {
    if (error instanceof ReadBehind) return error;
    if (!(error instanceof ReadTooEarly || error instanceof ReadTentative)) throw error;
    const end = () => {
      throw error.cause;
    };
    return error instanceof ReadTooEarly
      ? { end, commit: undefined, missing: error.missing }
      : { end, commit: undefined, standing: error.standing };
  }
}

function notInTime(address: Address, windowMs: number): Rejection {
  const why = "what it is computed from waits for a gate, a load or an asynchronous run";
  return rejected("stale", "read-moved", `${address} was not up to date within ${windowMs} ms: ${why}`);
}

/** Resolves when they have arrived, or will not, and says whether they are here; throws where one of them cannot be loaded. */
async function loaded(homes: ReadonlySet<DocumentIndex>): Promise<boolean> {
  await Promise.all([...homes].map(({ replica }) => replica.loadsSettled()));
  for (const { document } of homes) if (document.loadError !== undefined) throw document.loadError;
  return [...homes].every(({ document }) => document.isKnown);
}
