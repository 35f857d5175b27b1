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
 * A handler may therefore run several times; its effect happens once. A run that read documents which were not in memory yet
 * proves nothing, whatever came of it: it is run again when they are here.
 */
import type { Host } from "../host/host.ts";
import { pause } from "../host/pause.ts";
import { STALE_BACKOFF_MAX_MS, STALE_BACKOFF_START_MS, STALE_WINDOW_MS } from "../limits.ts";
import { admit } from "../store/admit.ts";
import type { CommitOutcome } from "../store/commit.ts";
import { type DocumentRef, SHARED_SCOPE } from "../store/document.ts";
import type { Settlement } from "../store/journal.ts";
import { type Label, LabelError } from "../store/label.ts";
import { labelEvents, requireTransactionWritable } from "../store/label-checks.ts";
import { whenOver } from "../store/pending-commit.ts";
import { NO_RESULT, Receipt } from "../store/receipt.ts";
import type { Rejection } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";
import { StoreError } from "../store/store.ts";
import type { Transaction } from "../store/transaction.ts";
import { DONE, type EventRun } from "./event-run.ts";
import { HandlerTransaction } from "./handler.ts";
import { callHandler, errorText, type HandlerEnd } from "./handler-wait.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import { settlementOf, shareOf } from "./outcome.ts";
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
  /** Somebody else holds the event, or the store has stopped: there is nothing we could settle. */
  | { readonly kind: "lost" }
  /** `thrown` is what its handler threw; undefined where it took too long or could not be committed. */
  | { readonly kind: "failed"; readonly error: string; readonly thrown?: unknown };

/** Hears what shares come to: while they are begun, or later. */
export interface ShareListener {
  shareEnded(run: EventRun, step: Step, end: ShareEnd): void;
  /** The handler of the run's present step is to be run again, when there is a slot for it. */
  shareAgain(run: EventRun): void;
}

/** One run of a handler: what it was given, and which run of its share it is. */
interface Handling {
  readonly run: EventRun;
  readonly step: Step;
  readonly call: TransactionalCall;
  readonly transaction: Transaction;
  readonly context: HandlerTransaction;
  readonly round: Round;
}

/** Counts the runs of a share from 0; until when it is run again is known from the first that has come to nothing. */
interface Round {
  readonly number: number;
  readonly untilMs: number | undefined;
}

/** The next run of a share, and since when it waits to begin: that is nobody's fault, and not counted. */
interface Rerun {
  readonly step: Step;
  readonly number: number;
  readonly untilMs: number;
  readonly readyAtMs: number;
}

const FIRST_ROUND: Round = { number: 0, untilMs: undefined };

type Verdict = ShareEnd | { readonly kind: "again"; readonly why: string };

const AGAIN_LOADED: Verdict = { kind: "again", why: "its documents were being loaded" };
const AGAIN_DECIDED: Verdict = { kind: "again", why: "a consumer was declared or removed" };
const LOST: ShareEnd = { kind: "lost" };

/** Where the receipt of a handling is: one document for each message and subscriber, ever. Its value is what the handler returned. */
export function receiptOf(messageId: string, subscriber: string): DocumentRef {
  return { scope: SHARED_SCOPE, id: `receipt:${messageId.length}:${messageId}:${subscriber}` };
}

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
    const { replica, handler } = call;
    const round = this.#roundOf(run, step);
    const { subscriberId, timeoutMs } = step.subscription;
    let transaction: Transaction;
    try {
      transaction = replica.transaction();
    } catch (error) {
      this.listener?.shareEnded(run, step, { kind: "failed", error: errorText(error) });
      return;
    }
    const facts = { event: run.event, subscriberId, attempt: run.attemptOf(step) };
    const context = new HandlerTransaction(facts, this.#publisher, { replica, transaction });
    run.handling = context;
    const handling = { run, step, call, transaction, context, round };
    const end = callHandler(handler, run.event, context, { host: this.#host, timeoutMs });
    if (!(end instanceof Promise)) this.#ended(handling, end);
    else void this.#slots.during(step, end).then((ended) => this.#ended(handling, ended));
  }

  #roundOf(run: EventRun, step: Step): Round {
    const rerun = this.#reruns.get(run);
    if (rerun === undefined) return FIRST_ROUND;
    this.#reruns.delete(run);
    if (rerun.step !== step) return FIRST_ROUND;
    const { number, untilMs, readyAtMs } = rerun;
    return { number, untilMs: untilMs + this.#host.monotonic() - readyAtMs };
  }

  #ended(handling: Handling, end: HandlerEnd): void {
    const { run, transaction, context } = handling;
    run.handling = undefined;
    let verdict = withoutCommit(run, context, end);
    try {
      if (verdict !== undefined) transaction.abort();
      else if (end.kind === "returned") verdict = this.#commit(handling, end.value);
      else this.#commitReads(handling, end);
    } catch (error) {
      verdict = { kind: "failed", error: errorText(error) };
    }
    if (verdict !== undefined) this.#judged(handling, verdict);
  }

  /** Undefined when the commit is on its way. */
  #commit(handling: Handling, value: unknown): Verdict | undefined {
    const { run, step, transaction } = handling;
    const { label } = handling.context;
    const receipt = receiptOf(run.event.message.metadata.id, step.subscriber);
    const settlement = run.isLastStep ? settlementOf(run, DONE) : shareOf(run);
    try {
      const result = value === undefined || value === null ? NO_RESULT : admit(value, undefined);
      transaction.leave(new Receipt(receipt, result));
    } catch (error) {
      transaction.abort();
      return { kind: "failed", error: `what the handler returned cannot be its receipt: ${messageOf(error)}` };
    }
    if (label.length > 0) {
      const leak = labelled(transaction, label, receipt, step.subscriber);
      if (leak !== undefined) return leak;
    }
    transaction.settlements.push(settlement);
    const answered = (outcome: CommitOutcome) => this.#answered(handling, outcome, landed(settlement));
    if (!transaction.hasEntries) whenOver(transaction.commit(), answered);
    else {
      const sent = this.#publisher.send(transaction.entries, () => transaction.commit().outcome);
      sent.then(answered, (error) => this.#judged(handling, { kind: "failed", error: errorText(error) }));
    }
    return undefined;
  }

  /** What a handler that did not return has come to. One that takes too long still has its transaction, which must not go on. */
  #commitReads(handling: Handling, { reason, error, thrown }: HandlerEnd & { kind: "failed" }): void {
    const { run, step, call } = handling;
    let { transaction } = handling;
    if (reason === "timeout") {
      transaction.abort();
      transaction = call.replica.transaction();
    }
    // However old the event is: its row was in the journal all along, and so its receipt would be there.
    const receipt = receiptOf(run.event.message.metadata.id, step.subscriber);
    const commit = transaction.commitReads({ kind: "absent", ...receipt });
    whenOver(commit, (outcome) => this.#answered(handling, outcome, { kind: "failed", error, thrown }));
  }

  #answered(handling: Handling, outcome: CommitOutcome, whenCommitted: ShareEnd): void {
    // Whether it is there, only the receipt can tell: the event goes back to the journal with its lease.
    if (outcome.kind === "rejected" && outcome.class === "unknown") this.#lease.doubt(handling.run.lease);
    this.#judged(handling, outcome.kind === "committed" ? whenCommitted : verdictOn(outcome));
  }

  #judged(handling: Handling, verdict: Verdict): void {
    const { run, step } = handling;
    const end = verdict.kind === "again" ? this.#again(handling, verdict) : verdict;
    if (end !== undefined) this.listener?.shareEnded(run, step, end);
  }

  /** Has the handler run again, later; or says why not. */
  #again({ run, step, call, round }: Handling, verdict: Verdict & { kind: "again" }): ShareEnd | undefined {
    if (run.state === "over") return LOST;
    const { number, untilMs = this.#host.monotonic() + STALE_WINDOW_MS } = round;
    if (this.#host.monotonic() >= untilMs) {
      return { kind: "failed", error: `gave up after ${number + 1} runs in ${STALE_WINDOW_MS} ms: ${verdict.why}` };
    }
    const decided = verdict === AGAIN_DECIDED ? this.#matches.decideAnew([run]) : Promise.resolve();
    const isPrompt = verdict === AGAIN_LOADED || verdict === AGAIN_DECIDED;
    const caughtUp = decided.then(() => this.#catchUp(call.replica, isPrompt ? 0 : number));
    caughtUp.then(
      () => this.#ready(run, step, number + 1, untilMs),
      (error: unknown) => this.listener?.shareEnded(run, step, { kind: "failed", error: errorText(error) }),
    );
    return undefined;
  }

  /** The run goes to the dispatcher, which begins this step once more. */
  #ready(run: EventRun, step: Step, number: number, untilMs: number): void {
    if (run.state === "over") return this.listener?.shareEnded(run, step, LOST);
    this.#reruns.set(run, { step, number, untilMs, readyAtMs: this.#host.monotonic() });
    this.listener?.shareAgain(run);
  }

  /** Waits for what the next run needs: the documents it asked for, others' commits, and a little chance to be alone. */
  async #catchUp(replica: Replica, round: number): Promise<void> {
    await replica.loadsSettled();
    if (round > 0) {
      const boundMs = Math.min(STALE_BACKOFF_START_MS * 2 ** (round - 1), STALE_BACKOFF_MAX_MS);
      await pause(this.#host, this.#host.random() * boundMs);
    }
    await replica.catchUp();
  }
}

/** Labels what it leaves behind; a verdict if it has written where somebody could read what he must not know. */
function labelled(transaction: Transaction, label: Label, receipt: DocumentRef, who: string): Verdict | undefined {
  transaction.labels.push({ ...receipt, path: [], labels: [...label] });
  labelEvents(label, transaction.entries);
  try {
    requireTransactionWritable(label, transaction, who);
    return undefined;
  } catch (error) {
    transaction.abort();
    return { kind: "failed", error: messageOf(error) };
  }
}

function landed(settlement: Settlement): ShareEnd {
  return settlement.outcome.kind === "partial" ? { kind: "recorded" } : { kind: "settled", settlement };
}

function verdictOn(outcome: Rejection): Verdict {
  // Whatever felled the commit beneath, this one may do without it.
  if (outcome.reason === "consumers-moved") return AGAIN_DECIDED;
  if (outcome.reason === "fell-with" || outcome.class === "stale") return { kind: "again", why: outcome.message };
  if (outcome.reason === "document-exists") return { kind: "already" };
  if (outcome.reason === "lease-lost" || outcome.reason === "store-stopped") return { kind: "lost" };
  if (outcome.class === "unknown") return { kind: "lost" };
  return outcome.class === "failed"
    ? { kind: "again", why: outcome.message }
    : { kind: "failed", error: outcome.message };
}

/** What a run comes to that needs no commit to say so. */
function withoutCommit(run: EventRun, context: HandlerTransaction, end: HandlerEnd): Verdict | undefined {
  if (run.state === "over") return { kind: "lost" };
  if (end.kind === "failed" && end.reason === "timeout") return undefined;
  if (context.sawUnloaded) return AGAIN_LOADED;
  return end.kind === "failed" && end.reason === "stale" ? { kind: "again", why: end.error } : undefined;
}

function messageOf(error: unknown): string {
  return error instanceof StoreError || error instanceof LabelError ? error.message : String(error);
}
