/**
 * The entry point of transactional subscribers: their share of an event is one unit of work (`src/work/`). The
 * handler's writes and messages, the receipt and the status of the delivery are one commit. SPEC: J56-J59, U1-U28.
 *
 * ```
 *   attempt ──> commit ──committed──> recorded (the share) or settled (the whole event, when it was the last)
 *      ^          │  ├─ the receipt is there ──> already handled
 *      │          │  ├─ the claim is gone ─────> lost
 *      └─retries──┘  └─ refused, window over ──> failed
 * ```
 * The dispatcher begins each further attempt (`delivery.ts`): when there is a slot for it, under a current lease, and
 * not at all once another process has the event or the bus has stopped (J51, J68, J71, J73).
 *
 * If the handler throws, its reads are committed. The throw counts if they validate and there is no receipt. After the
 * last failure, `onFailed` runs in the same way (`EventRun.failing`): its commit carries the failed status.
 */
import type { Host } from "../host/host.ts";
import { WORK_WINDOW_MS } from "../limits.ts";
import { errorText } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { admit } from "../store/admit.ts";
import type { Commit, CommitOutcome } from "../store/commit.ts";
import type { DocumentRef } from "../store/document.ts";
import type { Settlement } from "../store/journal.ts";
import { LabelError, labelOfMessage } from "../store/label.ts";
import { whenOver } from "../store/pending-commit.ts";
import { NO_RESULT, Receipt } from "../store/receipt.ts";
import { receiptOf } from "../store/receipt-name.ts";
import type { Rejection } from "../store/rejection.ts";
import { StoreError } from "../store/store.ts";
import { Attempt } from "../work/attempt.ts";
import { callHandler, type HandlerEnd, type HandlerWait } from "../work/handler-call.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import { endWithRefusal } from "../work/refusal.ts";
import { type Next, Retries } from "../work/retries.ts";
import type { Event } from "./event.ts";
import { DONE, type EventRun, type StepFailure, type StepResult } from "./event-run.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import { onFailedText, settlementOf, shareOf } from "./outcome.ts";
import type { Publisher } from "./publisher.ts";
import type { Slots } from "./slots.ts";
import type { TransactionalCall } from "./subscription.ts";
import type { Step } from "./subscriptions.ts";
import type { TopicMatches } from "./topic-match.ts";

export type ShareEnd =
  /** The share is in the journal. */
  | { readonly kind: "recorded" }
  /** The share and with it the whole event is settled. */
  | { readonly kind: "settled"; readonly settlement: Settlement }
  /** The receipt shows that it was handled before; its share is still to be settled. */
  | { readonly kind: "already" }
  /** Another process holds the event, or the store has stopped: this process cannot settle it. */
  | { readonly kind: "lost" }
  | {
      readonly kind: "failed";
      readonly cause: ShareFailure;
      readonly error: string;
      /** The value that its handler threw, if it did. */
      readonly thrown?: unknown;
      /** Whether the store had no room for its commit and may have some later. */
      readonly isPassing?: boolean;
    }
  /** It has failed for good, and its `onFailed` was called; its share is still to be settled. */
  | { readonly kind: "failure-handled"; readonly error: string };

type ShareFailure = Exclude<HandlerFailure["kind"], "died">;

/** Told the ends of shares, during `handle` or later. */
export interface ShareListener {
  shareEnded(run: EventRun, step: Step, end: ShareEnd): void;
  /** The handler of the run's present step is to be run again, when there is a slot for it. */
  shareAgain(run: EventRun): void;
}

/** One attempt of a handler. */
interface Handling {
  readonly run: EventRun;
  readonly step: Step;
  readonly call: TransactionalCall;
  readonly attempt: Attempt;
  /** Of the attempts before it; undefined for the first. */
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
  /** Of events that wait for their next attempt. The entry of an event that was given back is garbage. */
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
   * Runs the handler until its commit stands, cannot stand, or has been tried for long enough, and tells the listener.
   * Makes no promise: one for each step of a burst of handlings is much garbage, all of which lives until the disk has
   * answered.
   */
  handle(run: EventRun, step: Step, call: TransactionalCall): void {
    let handling: Handling;
    try {
      handling = this.#open(run, step, call);
    } catch (error) {
      this.listener?.shareEnded(run, step, notCommitted(errorText(error)));
      return;
    }
    const { attempt } = handling;
    run.handling = attempt;
    const { subscriberId, timeoutMs, board } = step.subscription;
    const wait: HandlerWait = {
      ...{ host: this.#host, timeoutMs, cancellable: attempt },
      ...{ board, entryPoint: "subscriber", handler: subscriberId, message: run.event.message },
    };
    const end = this.#call(handling, wait);
    if (!(end instanceof Promise)) this.#ended(handling, end);
    else void this.#slots.during(step, end).then((ended) => this.#ended(handling, ended));
  }

  #call({ run, call, attempt }: Handling, wait: HandlerWait) {
    const { event, failing } = run;
    if (failing === undefined) return callHandler(call.handle, event, attempt, wait);
    return callHandler((given: Event, of: Attempt) => call.failed?.(failing.failure, given, of), event, attempt, wait);
  }

  #open(run: EventRun, step: Step, call: TransactionalCall): Handling {
    const rerun = this.#rerunOf(run, step);
    const { message } = run.event;
    const attempt = new Attempt(call.attempts, {
      replica: call.replica,
      id: `${message.metadata.id}/${step.subscriber}`,
      number: run.attemptOf(step),
      label: labelOfMessage(message),
      bornMs: rerun?.bornMs,
    });
    return { run, step, call, attempt, retries: rerun?.retries };
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
    const { run, attempt } = handling;
    const end = endWithRefusal(handled, attempt.refusal);
    run.handling = undefined;
    const isReady = attempt.isReady || end.kind === "timeout";
    if (!isReady || run.state === "over") attempt.abort("it is not committed");
    try {
      if (run.state === "over") this.#over(handling, LOST);
      else if (!isReady) this.#goOn(handling, this.#retries(handling).afterLoads(attempt), LOST);
      else if (run.failing !== undefined) this.#commitFailure(handling, end, run.failing);
      else if (end.kind === "returned") this.#commit(handling, end.value);
      else this.#commitReads(handling, end);
    } catch (error) {
      attempt.abort("it cannot be committed");
      this.#over(handling, notCommitted(textOf(error)));
    }
  }

  #commit(handling: Handling, value: unknown): void {
    const { run, attempt } = handling;
    attempt.seal(new Receipt(receiptFor(handling), resultOf(value)));
    const settlement = run.isLastStep ? settlementOf(run, DONE) : shareOf(run);
    this.#send(handling, settlement, landed(settlement));
  }

  /**
   * Commits the effect of `onFailed` with the failed status. The claim guards it: there is no receipt, since a requeue
   * may fail again.
   */
  #commitFailure(handling: Handling, handled: HandlerEnd, { error }: StepFailure): void {
    const { run, attempt } = handling;
    if (handled.kind !== "returned") {
      attempt.abort("onFailed has failed");
      return this.#over(handling, notCommitted(errorText(handled.error)));
    }
    attempt.seal();
    const result: StepResult = { kind: "failed", error };
    const settlement = run.isLastStep ? settlementOf(run, result) : shareOf(run, result);
    const end: ShareEnd = landed(settlement);
    this.#send(handling, settlement, end.kind === "recorded" ? { kind: "failure-handled", error } : end);
  }

  #send(handling: Handling, settlement: Settlement, end: ShareEnd): void {
    const { attempt } = handling;
    const { transaction } = attempt;
    transaction.settlements.push(settlement);
    if (!transaction.hasEntries) return this.#hear(handling, attempt.commit(), end);
    let commit: Commit | undefined;
    const sent = this.#publisher.send(transaction.entries, () => {
      commit = attempt.commit();
      return commit.outcome;
    });
    sent.then(
      (outcome) => this.#answered(handling, commit as Commit, outcome, end),
      (error) => this.#over(handling, notCommitted(errorText(error))),
    );
  }

  /** The end of a handler that did not return. */
  #commitReads(handling: Handling, { kind, error }: HandlerEnd & { kind: "threw" | "timeout" }): void {
    const { attempt, call } = handling;
    // However old the event is: its row was in the journal all along, and so its receipt would be there.
    const isAbsent = { kind: "absent", ...receiptFor(handling) } as const;
    // A timeout has aborted the transaction, here or in the actor: then only the receipt is asked for.
    const isOpen = kind === "threw" && attempt.transaction.state === "open";
    const commit = isOpen
      ? attempt.commitReads("the handler threw", isAbsent)
      : call.replica.transaction().commitReads(isAbsent);
    const failed: ShareEnd =
      kind === "timeout"
        ? { kind: "failed", cause: "timeout", error: error.message }
        : { kind: "failed", cause: "threw", error: errorText(error), thrown: error };
    this.#hear(handling, commit, failed);
  }

  #hear(handling: Handling, commit: Commit, end: ShareEnd): void {
    whenOver(commit, (outcome) => this.#answered(handling, commit, outcome, end));
  }

  /** `end` is the end if the commit is made. */
  #answered(handling: Handling, commit: Commit, outcome: CommitOutcome, end: ShareEnd): void {
    if (outcome.kind === "committed") this.#over(handling, end);
    else this.#goOn(handling, this.#next(handling, outcome, commit), end);
  }

  /** If the consumers of an event have changed, the next attempt decides the settlement again. */
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
    const { class: rejectionClass, message } = next.rejection;
    return next.kind === "lost" ? LOST : notCommitted(message, rejectionClass === "failed");
  }

  #over({ run, step, attempt }: Handling, over: ShareEnd): void {
    const { failing } = run;
    const isBad = failing !== undefined && over.kind === "failed";
    const end: ShareEnd = isBad ? { kind: "failure-handled", error: onFailedText(failing.error, over.error) } : over;
    if (end.kind === "recorded" || end.kind === "settled") attempt.lineage.confirm();
    else attempt.lineage.fail("the delivery was not committed");
    this.listener?.shareEnded(run, step, end);
  }

  /** The run goes to the dispatcher, which begins this step once more. */
  #ready(handling: Handling): void {
    const { run, step, attempt } = handling;
    attempt.lineage.fail("the handler runs again");
    const retries = this.#retries(handling);
    this.#reruns.set(run, { step, retries, readyAtMs: this.#host.monotonic(), bornMs: attempt.bornMs });
    this.listener?.shareAgain(run);
  }

  #retries(handling: Handling): Retries {
    const { replica } = handling.call;
    handling.retries ??= new Retries({ host: this.#host, replica, windowMs: WORK_WINDOW_MS });
    return handling.retries;
  }
}

function notCommitted(error: string, isPassing = false): ShareEnd {
  return { kind: "failed", cause: "not-committed", error, isPassing };
}

function landed(settlement: Settlement): ShareEnd {
  return settlement.outcome.kind === "partial" ? { kind: "recorded" } : { kind: "settled", settlement };
}

function receiptFor({ run, step }: Handling): DocumentRef {
  return receiptOf({ kind: "event", id: run.event.message.metadata.id, subscriber: step.subscriber });
}

/** The content of the receipt. */
function resultOf(value: unknown): Json {
  if (value === undefined || value === null) return NO_RESULT;
  try {
    return admit(value, undefined);
  } catch (error) {
    throw new StoreError("STORE_MISUSE", `what the handler returned cannot be its receipt: ${textOf(error)}`);
  }
}

/** Errors of the store and of labels are sentences; others need their class. */
function textOf(error: unknown): string {
  return error instanceof StoreError || error instanceof LabelError ? error.message : errorText(error);
}
