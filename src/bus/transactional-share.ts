/**
 * A subscriber's share of an event, handled in a transaction: the handler's writes and emits, the receipt, and the status of
 * the delivery land in one commit or not at all. SPEC: J56-J59.
 *
 * ```
 *   run the handler ──> commit ──committed──> recorded (the share) or settled (the whole event, when it was the last)
 *        ^                │  │ the receipt is there ──> already handled
 *        │                │  │ the claim is gone ────> lost
 *        └─catch up, wait─┘  └ refused ──────────────> failed
 *          a read has moved, what it stood on fell, the store was busy
 * ```
 * The next run begins as the first did, from the dispatcher (`delivery.ts`): when there is a slot for it, under a lease that is current, and not at
 * all once the event is somebody else's or the bus has stopped (J51, J68, J71, J73).
 *
 * A handler that threw ends in a commit too, of what it had read alone: it has failed only if that stands and there is no receipt. Otherwise it
 * threw because of what never was, or because it had done its work before.
 *
 * After the last failure of a handler, its `onFailed` runs in the same way (`EventRun.failing`): its commit carries the failed status.
 *
 * A handler may therefore run several times; its effect happens once. A run that read documents which were not in memory yet
 * proves nothing, whatever came of it: it is run again when they are here.
 */
import type { Host } from "../host/host.ts";
import { WORK_WINDOW_MS } from "../limits.ts";
import { errorText } from "../message/error-data.ts";
import { admit } from "../store/admit.ts";
import type { CommitOutcome } from "../store/commit.ts";
import type { Settlement } from "../store/journal.ts";
import { type Label, LabelError, labelOfMessage } from "../store/label.ts";
import { requireTransactionWritable } from "../store/label-checks.ts";
import { whenOver } from "../store/pending-commit.ts";
import { NO_RESULT, Receipt } from "../store/receipt.ts";
import { receiptOf } from "../store/receipt-name.ts";
import type { Rejection } from "../store/rejection.ts";
import { StoreError } from "../store/store.ts";
import type { Commit, Transaction } from "../store/transaction.ts";
import { Attempt } from "../work/attempt.ts";
import { callHandler, type HandlerEnd, type HandlerWait } from "../work/handler-call.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import { labelMessages } from "../work/outbox.ts";
import { endWithRefusal } from "../work/refusal.ts";
import { type Next, Retries } from "../work/retries.ts";
import type { Event } from "./event.ts";
import { DONE, type EventRun, type StepFailure, type StepResult } from "./event-run.ts";
import { HandlerTransaction, type ShareContext, type TransactionalHandler } from "./handler.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import { onFailedText, settlementOf, shareOf } from "./outcome.ts";
import type { Publisher } from "./publisher.ts";
import type { Slots } from "./slots.ts";
import type { OnFailed, TransactionalCall } from "./subscription.ts";
import type { Step } from "./subscriptions.ts";
import type { TopicMatches } from "./topic-match.ts";

export type ShareEnd =
  /** The share is in the journal. */
  | { readonly kind: "recorded" }
  /** The share and with it the whole event is settled. */
  | { readonly kind: "settled"; readonly settlement: Settlement }
  /** The receipt shows that it was handled before; its share is still to be settled. */
  | { readonly kind: "already" }
  /** Somebody else holds the event, or the store has stopped: there is nothing we could settle. */
  | { readonly kind: "lost" }
  /** `thrown` is what its handler threw, if it did. */
  | { readonly kind: "failed"; readonly cause: ShareFailure; readonly error: string; readonly thrown?: unknown }
  /** It has failed for good, and its `onFailed` was called; its share is still to be settled. */
  | { readonly kind: "failure-handled"; readonly error: string };

type ShareFailure = Exclude<HandlerFailure["kind"], "died">;

/** Hears what shares come to: while they are begun, or later. */
export interface ShareListener {
  shareEnded(run: EventRun, step: Step, end: ShareEnd): void;
  /** The handler of the run's present step is to be run again, when there is a slot for it. */
  shareAgain(run: EventRun): void;
}

/** One run of a handler. */
interface Handling {
  readonly run: EventRun;
  readonly step: Step;
  readonly call: TransactionalCall;
  readonly transaction: Transaction;
  readonly context: ShareContext;
  /** Of a handler that was subscribed with an open space. */
  readonly attempt: Attempt | undefined;
  /** Of the runs before it; undefined for the first. */
  retries: Retries | undefined;
}

/** The next run of a share, and since when it waits for a slot: that time does not count. */
interface Rerun {
  readonly step: Step;
  readonly retries: Retries;
  readonly readyAtMs: number;
  /** The time that ids of its messages carry. */
  readonly bornMs: number | undefined;
}

const LOST: ShareEnd = { kind: "lost" };

export class TransactionalShare {
  readonly #host: Host;
  readonly #publisher: Publisher;
  readonly #slots: Slots;
  readonly #lease: LeaseKeeper;
  readonly #matches: TopicMatches;
  /** Of events that wait to be run again. Nobody has to take one out that was given back instead. */
  readonly #reruns = new WeakMap<EventRun, Rerun>();
  listener: ShareListener | undefined;

  constructor(parts: { host: Host; publisher: Publisher; slots: Slots; lease: LeaseKeeper; matches: TopicMatches }) {
    this.#host = parts.host;
    this.#lease = parts.lease;
    this.#matches = parts.matches;
    this.#publisher = parts.publisher;
    this.#slots = parts.slots;
  }

  /**
   * Runs the handler until its commit stands, cannot stand, or has been tried for long enough, and tells the listener. Makes no promise: one for
   * each step of a burst of handlings is much garbage, all of which lives until the disk has answered.
   */
  handle(run: EventRun, step: Step, call: TransactionalCall): void {
    const rerun = this.#rerunOf(run, step);
    let handling: Handling;
    try {
      handling = this.#open(run, step, call, rerun);
    } catch (error) {
      this.listener?.shareEnded(run, step, notCommitted(errorText(error)));
      return;
    }
    const { context } = handling;
    run.handling = context;
    const { subscriberId, timeoutMs, board } = step.subscription;
    const wait: HandlerWait = {
      ...{ host: this.#host, timeoutMs, cancellable: context },
      ...{ board, entryPoint: "subscriber", handler: subscriberId, message: run.event.message },
    };
    const end = this.#call(handling, wait);
    if (!(end instanceof Promise)) this.#ended(handling, end);
    else void this.#slots.during(step, end).then((ended) => this.#ended(handling, ended));
  }

  #call(handling: Handling, wait: HandlerWait) {
    const { run, call, context, attempt } = handling;
    const { event } = run;
    if (run.failing !== undefined) return this.#callOnFailed(handling, run.failing, wait);
    if (attempt !== undefined && call.work !== undefined) return callHandler(call.work.call, event, attempt, wait);
    return callHandler(call.handler as TransactionalHandler, event, context as HandlerTransaction, wait);
  }

  #callOnFailed({ run, step, call, context, attempt }: Handling, { failure }: StepFailure, wait: HandlerWait) {
    const { work } = call;
    const onFailed = step.subscription.onFailed as OnFailed;
    const called =
      attempt === undefined || work === undefined
        ? (event: Event) => onFailed(failure, context as never, event)
        : (event: Event) => work.failed?.(failure, event, attempt);
    return callHandler(called, run.event, undefined, wait);
  }

  #open(run: EventRun, step: Step, call: TransactionalCall, rerun: Rerun | undefined): Handling {
    const retries = rerun?.retries;
    const { replica, work } = call;
    const { subscriberId } = step.subscription;
    const facts = { event: run.event, subscriberId, attempt: run.attemptOf(step) };
    if (work === undefined) {
      const transaction = replica.transaction();
      const context = new HandlerTransaction(facts, this.#publisher, { replica, transaction });
      return { run, step, call, transaction, context, attempt: undefined, retries };
    }
    const { message } = run.event;
    const id = `${message.metadata.id}/${step.subscriber}`;
    const { attempt: number } = facts;
    const { bornMs } = rerun ?? {};
    const attempt = new Attempt(work.attempts, { replica, id, number, label: labelOfMessage(message), bornMs });
    return { run, step, call, transaction: attempt.transaction, context: attempt, attempt, retries };
  }

  #rerunOf(run: EventRun, step: Step): Rerun | undefined {
    const rerun = this.#reruns.get(run);
    if (rerun === undefined) return undefined;
    this.#reruns.delete(run);
    if (rerun.step !== step) return undefined;
    rerun.retries.extend(this.#host.monotonic() - rerun.readyAtMs);
    return rerun;
  }

  #ended(handling: Handling, handled: HandlerEnd): void {
    const { run, transaction, context, attempt } = handling;
    const end = endWithRefusal(handled, attempt?.refusal);
    run.handling = undefined;
    const isAgain = end.kind !== "timeout" && (!context.isReady || (end.kind === "threw" && isStale(end.error)));
    attempt?.end();
    try {
      if (run.state === "over" || isAgain) transaction.abort();
      if (run.state === "over") this.#over(handling, LOST);
      else if (isAgain) this.#goOn(handling, this.#retries(handling).afterLoads(attempt), LOST);
      else if (run.failing !== undefined) this.#commitFailure(handling, end, run.failing);
      else if (end.kind === "returned") this.#commit(handling, end.value);
      else this.#commitReads(handling, end);
    } catch (error) {
      this.#over(handling, notCommitted(errorText(error)));
    }
  }

  #commit(handling: Handling, value: unknown): void {
    const { run, step, transaction } = handling;
    const { label } = handling.context;
    const receipt = receiptOf({ kind: "event", id: run.event.message.metadata.id, subscriber: step.subscriber });
    const settlement = run.isLastStep ? settlementOf(run, DONE) : shareOf(run);
    try {
      const result = value === undefined || value === null ? NO_RESULT : admit(value, undefined);
      transaction.leave(new Receipt(receipt, result));
    } catch (error) {
      transaction.abort();
      const why = `what the handler returned cannot be its receipt: ${messageOf(error)}`;
      return this.#over(handling, notCommitted(why));
    }
    if (label.length > 0) {
      transaction.labels.push({ ...receipt, path: [], labels: [...label] });
      const leak = labelled(transaction, label, step.subscriber);
      if (leak !== undefined) return this.#over(handling, leak);
    }
    this.#send(handling, settlement, landed(settlement));
  }

  /** Commits the effect of `onFailed` with the failed status. The claim guards it: there is no receipt, since a requeue may fail again. */
  #commitFailure(handling: Handling, handled: HandlerEnd, { error }: StepFailure): void {
    const { run, step, transaction, context } = handling;
    if (handled.kind !== "returned") {
      transaction.abort();
      return this.#over(handling, notCommitted(errorText(handled.error)));
    }
    const result: StepResult = { kind: "failed", error };
    const settlement = run.isLastStep ? settlementOf(run, result) : shareOf(run, result);
    const leak = context.label.length === 0 ? undefined : labelled(transaction, context.label, step.subscriber);
    if (leak !== undefined) return this.#over(handling, leak);
    const end: ShareEnd = landed(settlement);
    this.#send(handling, settlement, end.kind === "recorded" ? { kind: "failure-handled", error } : end);
  }

  #send(handling: Handling, settlement: Settlement, end: ShareEnd): void {
    const { transaction } = handling;
    transaction.settlements.push(settlement);
    if (!transaction.hasEntries) return this.#hear(handling, transaction.commit(), end);
    let commit: Commit | undefined;
    const sent = this.#publisher.send(transaction.entries, () => {
      commit = transaction.commit();
      return commit.outcome;
    });
    sent.then(
      (outcome) => this.#answered(handling, commit as Commit, outcome, end),
      (error) => this.#over(handling, notCommitted(errorText(error))),
    );
  }

  /** What a handler that did not return has come to. One that takes too long still has its transaction, which must not go on. */
  #commitReads(handling: Handling, { kind, error }: HandlerEnd & { kind: "threw" | "timeout" }): void {
    const { run, step, call } = handling;
    let { transaction } = handling;
    // The mailbox of an actor has given up a handler by aborting its transaction.
    if (kind === "timeout" || transaction.state !== "open") {
      transaction.abort();
      transaction = call.replica.transaction();
    }
    // However old the event is: its row was in the journal all along, and so its receipt would be there.
    const receipt = receiptOf({ kind: "event", id: run.event.message.metadata.id, subscriber: step.subscriber });
    const commit = transaction.commitReads({ kind: "absent", ...receipt });
    const failed: ShareEnd =
      kind === "timeout"
        ? { kind: "failed", cause: "timeout", error: error.message }
        : { kind: "failed", cause: "threw", error: errorText(error), thrown: error };
    this.#hear(handling, commit, failed);
  }

  #hear(handling: Handling, commit: Commit, end: ShareEnd): void {
    whenOver(commit, (outcome) => this.#answered(handling, commit, outcome, end));
  }

  /** `end` is that of a run whose commit stands. */
  #answered(handling: Handling, commit: Commit, outcome: CommitOutcome, end: ShareEnd): void {
    if (outcome.kind === "committed") this.#over(handling, end);
    else this.#goOn(handling, this.#next(handling, outcome, commit), end);
  }

  /** The settlement of an event whose consumers have changed is decided again, by the run that follows. */
  async #next(handling: Handling, rejection: Rejection, commit: Commit): Promise<Next> {
    if (rejection.reason === "consumers-moved") await this.#matches.decideAnew([handling.run]);
    return this.#retries(handling).next(rejection, commit);
  }

  #goOn(handling: Handling, next: Promise<Next>, end: ShareEnd): void {
    const { run } = handling;
    const goOn = (how: Next): void => {
      if (run.state === "over") this.#over(handling, LOST);
      else if (how.kind === "again") this.#ready(handling);
      else this.#over(handling, this.#endOf(run, how, end));
    };
    next.then(goOn, (error: unknown) => this.#over(handling, notCommitted(errorText(error))));
  }

  #endOf(run: EventRun, next: Exclude<Next, { kind: "again" }>, whenDone: ShareEnd): ShareEnd {
    if (next.kind === "done") return whenDone;
    if (next.kind === "already") return next;
    // Only the receipt can tell whether it is there: the event goes back to the journal with its lease.
    if (next.rejection.class === "unknown") this.#lease.doubt(run.lease);
    return next.kind === "lost" ? LOST : notCommitted(next.rejection.message);
  }

  #over({ run, step, attempt }: Handling, over: ShareEnd): void {
    const { failing } = run;
    const isBad = failing !== undefined && over.kind === "failed";
    const end: ShareEnd = isBad ? { kind: "failure-handled", error: onFailedText(failing.error, over.error) } : over;
    if (end.kind === "recorded" || end.kind === "settled") attempt?.lineage.confirm();
    else attempt?.lineage.fail("the delivery was not committed");
    this.listener?.shareEnded(run, step, end);
  }

  /** The run goes to the dispatcher, which begins this step once more. */
  #ready(handling: Handling): void {
    const { run, step, attempt } = handling;
    attempt?.lineage.fail("the handler runs again");
    const retries = this.#retries(handling);
    this.#reruns.set(run, { step, retries, readyAtMs: this.#host.monotonic(), bornMs: attempt?.bornMs });
    this.listener?.shareAgain(run);
  }

  #retries(handling: Handling): Retries {
    const { replica } = handling.call;
    handling.retries ??= new Retries({ host: this.#host, replica, windowMs: WORK_WINDOW_MS });
    return handling.retries;
  }
}

function notCommitted(error: string): ShareEnd {
  return { kind: "failed", cause: "not-committed", error };
}

/** Labels the events; gives the end of a run that wrote where readers may not know what it has read. */
function labelled(transaction: Transaction, label: Label, who: string): ShareEnd | undefined {
  labelMessages(label, transaction);
  try {
    requireTransactionWritable(label, transaction, who);
    return undefined;
  } catch (error) {
    transaction.abort();
    return notCommitted(messageOf(error));
  }
}

function landed(settlement: Settlement): ShareEnd {
  return settlement.outcome.kind === "partial" ? { kind: "recorded" } : { kind: "settled", settlement };
}

/** Whether a read or write of the transaction met a document that had moved. */
function isStale(error: unknown): boolean {
  try {
    return error instanceof StoreError && error.code === "STORE_STALE";
  } catch {
    // A revoked proxy has no class.
    return false;
  }
}

function messageOf(error: unknown): string {
  return error instanceof StoreError || error instanceof LabelError ? error.message : String(error);
}
