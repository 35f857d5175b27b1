/**
 * Takes an event through its handlers, one after the other, and settles it. SPEC: J43, J50-J59.
 *
 *     advance ──> for each step: skip it if it is settled, pass the gates, call the handler, note its result ──> settle
 *                       └──its subscriber is gone──> give back, to be matched with the present subscribers
 *
 * A handler that throws does not stop the next. A wait (for a handler's promise, a commit, a gate) ends the
 * call of `advance`; the run comes back by itself. Plain handlers that return no promise cost no promise here either.
 */
import type { Host } from "../host/host.ts";
import { EVENTS_PARKED_MAX, PARKED_RETRY_MS } from "../limits.ts";
import { errorText } from "../message/error-data.ts";
import type { Settlement } from "../store/journal.ts";
import type { Store } from "../store/store.ts";
import { callHandler, type HandlerEnd } from "../work/handler-call.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import { retryDelayMs, worthRetrying } from "../work/retry-policy.ts";
import { delayIn, endingIn, isPassing, isSettled } from "./concluded.ts";
import type { Event } from "./event.ts";
import { DONE, type EventRun, RECORDED, SKIPPED, type StepFailure, type StepResult } from "./event-run.ts";
import { type Handler, HandlerContext } from "./handler.ts";
import type { HeldEvents } from "./held-events.ts";
import type { BusObserver } from "./observation.ts";
import { beginningOf, onFailedText, postponementOf, releaseOf, settlementOf } from "./outcome.ts";
import type { Publisher } from "./publisher.ts";
import type { RedeliveryTimer } from "./retry-timer.ts";
import { SerialOrder } from "./serial-order.ts";
import type { SettleQueue } from "./settle-queue.ts";
import type { Slots } from "./slots.ts";
import type { Step } from "./subscriptions.ts";
import type { ShareEnd, ShareListener, TransactionalShare } from "./transactional-share.ts";

/** The end of one step: a result, or `left`: the run is over, or comes back by itself. */
type StepEnd = StepResult | { readonly kind: "left" };

const LEFT: StepEnd = { kind: "left" };

interface DeliveryParts {
  readonly host: Host;
  /** Times of next attempts are by its clock. */
  readonly store: Pick<Store, "now">;
  readonly held: HeldEvents;
  readonly slots: Slots;
  readonly serial: SerialOrder;
  readonly settles: SettleQueue;
  readonly shares: TransactionalShare;
  readonly publisher: Publisher;
  readonly retries: RedeliveryTimer;
  readonly observe: BusObserver;
}

export class Deliverer implements ShareListener {
  readonly #parts: DeliveryParts;

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
    parts.shares.listener = this;
  }

  /** Goes on with a run that waits, as far as that is possible without waiting. */
  advance(run: EventRun): void {
    const { serial } = this.#parts;
    run.state = "running";
    while (run.position < run.steps.length) {
      const step = run.steps[run.position]!;
      if (run.isOver(step)) {
        run.note(SKIPPED);
        continue;
      }
      const dueAtMs = run.dueAtMs(step);
      if (dueAtMs !== undefined) {
        run.note({ kind: "postponed", atMs: dueAtMs });
        continue;
      }
      // Its subscriber is gone: the present subscribers get the event.
      if (!step.subscription.active) return this.#parts.settles.add(run, releaseOf(run));
      if (!this.#isLetIn(run, step)) return;
      if (run.mustTellBeginning) return this.#parts.settles.add(run, beginningOf(run));
      serial.handling(run);
      const end = this.#handle(run, step);
      if (end.kind === "left") return;
      serial.handled(run);
      run.note(end);
    }
    if (run.isUnheard) this.#parts.observe({ kind: "no-subscriber", event: run.id, topic: run.topic });
    this.#parts.settles.add(run, settlementOf(run));
  }

  /** After a wait: the run takes its next step when there is a slot for it. */
  #goOn(run: EventRun, end: StepEnd): void {
    this.#parts.serial.handled(run);
    if (end.kind === "left" || run.state === "over") return;
    run.note(end);
    if (run.position === run.steps.length) this.advance(run);
    else this.#parts.held.resume(run);
  }

  /** Whether the step may be done now. If not, the run is parked and will be resumed, or was given back. */
  #isLetIn(run: EventRun, step: Step): boolean {
    const { serial, slots, held } = this.#parts;
    if (serial.mayStart(run)) {
      const admitted = slots.admits(step, run);
      if (admitted === "line") held.park(run, "at-slot");
      else if (admitted === "full") this.#parts.settles.add(run, releaseOf(run));
      return admitted === "yes";
    }
    if (held.parkedAtOrder < EVENTS_PARKED_MAX) held.park(run, "at-order");
    else this.#postpone(run);
    return false;
  }

  /** Too many wait here for events that other processes hold. */
  #postpone(run: EventRun): void {
    const { settles, store } = this.#parts;
    settles.add(
      run,
      postponementOf(run, store.now() + PARKED_RETRY_MS, "waits for an earlier event of its serial key"),
    );
  }

  #handle(run: EventRun, step: Step): StepEnd {
    const { condemned } = run.claim;
    if (condemned !== undefined && run.failing === undefined)
      return this.#failed(
        run,
        step,
        { kind: "died", message: condemned, attempts: run.attemptOf(step) - 1 },
        condemned,
      );
    if (run.failing !== undefined) return this.#handleFailed(run, step, run.failing);
    if (step.subscription.serialBy && run.lanes?.[run.position] === undefined) {
      const error = SerialOrder.keyError(run, step);
      if (error !== undefined) return this.#failure(run, step, error);
    }
    const { call } = step.subscription;
    if (call.kind === "plain") return this.#handlePlain(run, step, call.handler);
    this.#parts.shares.handle(run, step, call);
    return LEFT;
  }

  #handlePlain(run: EventRun, step: Step, handler: Handler): StepEnd {
    const { host, publisher, slots } = this.#parts;
    const { subscriberId, timeoutMs, board } = step.subscription;
    const { event, claim } = run;
    const facts = { event, subscriberId, attempt: run.attemptOf(step), deaths: claim.deaths, failing: failingOf(run) };
    const context = new HandlerContext(facts, publisher);
    run.handling = context;
    const end = callHandler(handler, event, context, {
      ...{ host, timeoutMs, cancellable: context },
      ...{ board, entryPoint: "subscriber", handler: subscriberId, message: event.message },
    });
    if (!(end instanceof Promise)) return this.#plainEnded(run, step, end);
    void slots.during(step, end).then((ended) => this.#goOn(run, this.#plainEnded(run, step, ended)));
    return LEFT;
  }

  #plainEnded(run: EventRun, step: Step, end: HandlerEnd): StepEnd {
    run.handling = undefined;
    if (end.kind === "returned") return DONE;
    const thrown = end.kind === "threw" ? end.error : undefined;
    const ending = endingIn(thrown);
    if (ending !== undefined) return { kind: "done", ending };
    if (isSettled(thrown)) return this.#settledByHandler(run);
    const delayMs = delayIn(thrown);
    if (delayMs !== undefined)
      return this.#retryAfter(run, step, { error: (thrown as Error).message, delayMs, thrown });
    return this.#failure(run, step, errorText(end.error), thrown, end.kind);
  }

  /** The commit of its handler has settled the event. */
  #settledByHandler(run: EventRun): StepEnd {
    this.#parts.held.over(run, "settled");
    return LEFT;
  }

  /** The store had no room for its effect or its messages: no failure of the handler, so its policy is not asked. */
  #deliverAgain(run: EventRun, step: Step, error: string, thrown?: unknown): StepResult {
    const { backoff } = step.subscription.retry;
    const policy = { ...(backoff && { backoff }), attempts: Number.POSITIVE_INFINITY };
    const delayMs = retryDelayMs(policy, run.attemptOf(step), this.#parts.host) ?? 0;
    return this.#retryAfter(run, step, { error, delayMs, thrown });
  }

  /** The time of the next attempt does not follow from the policy. */
  #retryAfter(
    run: EventRun,
    step: Step,
    { error, delayMs, thrown }: { readonly error: string; readonly delayMs: number; readonly thrown?: unknown },
  ): StepResult {
    const { store, observe } = this.#parts;
    const { id: event, topic } = run;
    observe({
      kind: "handler-failed",
      event,
      topic,
      subscriber: step.subscriber,
      error,
      thrown,
      outcome: "retry",
    });
    return { kind: "retry", error, atMs: store.now() + delayMs };
  }

  shareEnded(run: EventRun, step: Step, end: ShareEnd): void {
    this.#goOn(run, this.#resultOf(run, step, end));
  }

  /**
   * It passes the gates anew: it holds no slot between two runs, and events that were requeued meanwhile go before it.
   */
  shareAgain(run: EventRun): void {
    this.#parts.serial.handled(run);
    this.#parts.held.resume(run);
  }

  #resultOf(run: EventRun, step: Step, end: ShareEnd): StepEnd {
    const { held, retries, observe } = this.#parts;
    switch (end.kind) {
      case "recorded":
        return RECORDED;
      case "already":
        return DONE;
      case "settled": {
        const { outcome } = end.settlement;
        if (outcome.kind === "retry" || outcome.kind === "waits") {
          if (outcome.atMs !== undefined) retries.note(outcome.atMs);
          held.over(run, "given-back");
        } else held.over(run, "settled");
        if (outcome.kind === "waits") held.listener?.backlog();
        return LEFT;
      }
      case "lost":
        observe({ kind: "claim-lost", event: run.id });
        held.over(run, "lost");
        return LEFT;
      case "failed":
        if (end.isPassing) return this.#deliverAgain(run, step, end.error, end.thrown);
        return this.#failure(run, step, end.error, end.thrown, end.cause);
      case "failure-handled":
        return { kind: "failed", error: end.error };
    }
  }

  #failure(
    run: EventRun,
    step: Step,
    failure: string,
    thrown?: unknown,
    kind: HandlerFailure["kind"] = "threw",
  ): StepEnd {
    if (isPassing(thrown)) return this.#deliverAgain(run, step, failure, thrown);
    const { host, store, observe } = this.#parts;
    const { retry } = step.subscription;
    const worth = worthRetrying(retry, thrown);
    const delayMs = worth === "yes" ? retryDelayMs(retry, run.attemptOf(step), host) : undefined;
    const error = typeof worth === "string" ? failure : `${failure}; retry.when threw: ${errorText(worth.thrown)}`;
    const outcome = delayMs === undefined ? "failed" : "retry";
    observe({
      kind: "handler-failed",
      event: run.id,
      topic: run.topic,
      subscriber: step.subscriber,
      error,
      thrown,
      outcome,
    });
    if (delayMs !== undefined) return { kind: "retry", error, atMs: store.now() + delayMs };
    const attempts = run.attemptOf(step);
    return this.#failed(
      run,
      step,
      { kind, message: failure, attempts, ...(kind === "threw" ? { thrown } : {}) },
      error,
    );
  }

  /** The step has failed for good: its `onFailed` is called first, if it has one. */
  #failed(run: EventRun, step: Step, failure: HandlerFailure, error: string): StepEnd {
    if (!step.subscription.handlesFailures) return { kind: "failed", error };
    run.failing = { failure, error };
    return this.#handleFailed(run, step, run.failing);
  }

  /** With a transaction, `onFailed` commits together with the failed status. */
  #handleFailed(run: EventRun, step: Step, { failure, error }: StepFailure): StepEnd {
    const { host, publisher, slots, shares } = this.#parts;
    const { call, onFailed, subscriberId, timeoutMs, board } = step.subscription;
    if (call.kind === "transactional") {
      shares.handle(run, step, call);
      return LEFT;
    }
    const { event } = run;
    const context = new HandlerContext(
      { event, subscriberId, attempt: failure.attempts, failing: failingOf(run) },
      publisher,
    );
    run.handling = context;
    const callFailed = (given: Event, to: HandlerContext) => onFailed?.(failure, to as never, given);
    const end = callHandler(callFailed, event, context, {
      ...{ host, timeoutMs, cancellable: context },
      ...{ board, entryPoint: "subscriber", handler: subscriberId, message: event.message },
    });
    const ended = (how: HandlerEnd): StepEnd => {
      run.handling = undefined;
      if (how.kind === "threw" && isSettled(how.error)) return this.#settledByHandler(run);
      return { kind: "failed", error: how.kind === "returned" ? error : onFailedText(error, errorText(how.error)) };
    };
    if (!(end instanceof Promise)) return ended(end);
    void slots.during(step, end).then((how) => this.#goOn(run, ended(how)));
    return LEFT;
  }
}

function failingOf(run: EventRun): (error: string) => Settlement {
  return (error) => settlementOf(run, { kind: "failed", error });
}
