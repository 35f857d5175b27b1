/**
 * Sends settlements to the store. SPEC: J55, J71, J90.
 *
 *   add ──urgent, or many are queued──> at the end of the turn, `now` ──────────────────┐
 *     └──it can wait──> at the end of the turn, or a pause after the last, `soon` ──────┴──> store ──> over, or again
 *
 * Settlements of one turn go together. A few events that succeeded need no commit of their own: the next urgent
 * settlement takes them along, for instance that of the next event. While such events follow each other closely, the
 * pause settles them: alone, each costs a sixth of the time of an event; sixteen together cost hardly more than one. If
 * the process dies before, they are delivered again, as at any time.
 *
 * A settlement that the store could not write now is offered again; one that comes too late has no effect. Then the run
 * is over, except after the settlement `begun` of a suspect (J88). If the store refuses a batch for its content, each
 * settlement is offered alone. An event whose settlement is refused alone has failed, so that no other event waits for
 * it.
 */
import type { Host, Timer } from "../host/host.ts";
import { SETTLE_PAUSE_MS, SETTLE_RETRY_MS, SETTLES_WAITING_MAX } from "../limits.ts";
import { fromError } from "../message/error-data.ts";
import type { Settlement } from "../store/journal.ts";
import { type Store, StoreError, type Urgency } from "../store/store.ts";
import type { EventRun } from "./event-run.ts";
import type { HeldEvents } from "./held-events.ts";
import type { BusObserver } from "./observation.ts";
import { settlementOf } from "./outcome.ts";
import type { Publisher } from "./publisher.ts";
import type { RedeliveryTimer } from "./retry-timer.ts";
import type { TopicMatches } from "./topic-match.ts";

/** Runs and their settlements, side by side, so that the list for the store is made once. */
interface Due {
  readonly runs: EventRun[];
  readonly settlements: Settlement[];
}

export class SettleQueue {
  readonly #host: Host;
  readonly #store: Store;
  readonly #held: HeldEvents;
  readonly #retries: RedeliveryTimer;
  readonly #observe: BusObserver;
  readonly #publisher: Publisher;
  readonly #matches: TopicMatches;
  #due: Due = { runs: [], settlements: [] };
  /** How due settlements go at the end of this turn; undefined while none goes. */
  #leaving: Urgency | undefined;
  /** Ends the pause; undefined without a pause. */
  #pause: Timer | undefined;
  /** Settlements that can wait do so until this time, on the monotonic clock. */
  #pausedUntilMs = 0;
  /** Whether a caller waits until all is settled. */
  #isAwaited = false;

  constructor(parts: {
    host: Host;
    store: Store;
    held: HeldEvents;
    retries: RedeliveryTimer;
    publisher: Publisher;
    matches: TopicMatches;
    observe: BusObserver;
  }) {
    this.#host = parts.host;
    this.#store = parts.store;
    this.#held = parts.held;
    this.#retries = parts.retries;
    this.#observe = parts.observe;
    this.#publisher = parts.publisher;
    this.#matches = parts.matches;
  }

  add(run: EventRun, settlement: Settlement): void {
    if (settlement.outcome.kind !== "begun") run.beginSettling();
    const { runs, settlements } = this.#due;
    runs.push(run);
    settlements.push(settlement);
    if (this.#isAwaited || runs.length > SETTLES_WAITING_MAX || !canWait(run, settlement)) this.#leave("now");
    else if (this.#leaving === undefined && this.#pause === undefined) this.#leaveAfterPause();
  }

  /** Whether a caller waits until all is settled: then no settlement waits here. */
  set isAwaited(isAwaited: boolean) {
    this.#isAwaited = isAwaited;
    if (isAwaited && this.#due.runs.length > 0) this.#leave("now");
  }

  #leaveAfterPause(): void {
    const leftMs = this.#pausedUntilMs - this.#host.monotonic();
    if (leftMs <= 0) return this.#leave("soon");
    // It keeps the process alive until handled events are settled.
    this.#pause = this.#host.timer(leftMs, () => {
      this.#pause = undefined;
      if (this.#due.runs.length > 0) this.#leave("soon");
    });
  }

  /** Sends due settlements at the end of this turn. */
  #leave(urgency: Urgency): void {
    if (this.#leaving === undefined) this.#host.microtask(this.#flush);
    if (this.#leaving !== "now") this.#leaving = urgency;
  }

  readonly #flush = (): void => {
    const urgency = this.#leaving ?? "now";
    this.#leaving = undefined;
    this.#pausedUntilMs = this.#host.monotonic() + SETTLE_PAUSE_MS;
    // Events that handlers emitted are appended before their causes are done: the store keeps this order.
    this.#publisher.flush();
    this.#send(this.#take(), urgency);
  };

  #take(): Due {
    const due = this.#due;
    this.#due = { runs: [], settlements: [] };
    return due;
  }

  #send(due: Due, urgency: Urgency): void {
    const { runs, settlements } = due;
    this.#store.settle(settlements, urgency).then(
      (results) => {
        const outdated: EventRun[] = [];
        for (let at = 0; at < runs.length; at++) {
          if (results[at] === "consumers-moved") outdated.push(runs[at]!);
          else this.#answered(runs[at]!, settlements[at]!, results[at] === "settled");
        }
        if (outdated.length > 0) void this.#decideAnew(outdated);
      },
      (error: unknown) => this.#refused(due, error),
    );
  }

  /** A consumer was declared or removed since these events were decided. */
  async #decideAnew(runs: readonly EventRun[]): Promise<void> {
    try {
      await this.#matches.decideAnew(runs);
    } catch (error) {
      if (hasEnded(error)) {
        for (const run of runs) this.#held.over(run, "lost");
        return;
      }
      this.#observe({ kind: "store-trouble", doing: "reading the consumers", error: fromError(error).message });
      this.#host.timer(SETTLE_RETRY_MS, () => void this.#decideAnew(runs));
      return;
    }
    const left = runs.filter(({ state }) => state !== "over");
    if (left.length > 0) this.#send({ runs: left, settlements: left.map((run) => settlementOf(run)) }, "now");
  }

  #answered(run: EventRun, { outcome }: Settlement, settled: boolean): void {
    if (!settled) this.#observe({ kind: "claim-lost", event: run.id });
    if (settled && outcome.kind === "begun") {
      if (run.claim.suspicion !== undefined) run.claim.suspicion.begun = true;
      this.#held.listener?.runBegins(run);
      return;
    }
    if (settled && (outcome.kind === "retry" || outcome.kind === "waits") && outcome.atMs !== undefined)
      this.#retries.note(outcome.atMs);
    const isFinal = outcome.kind === "done" || outcome.kind === "failed";
    this.#held.over(run, !settled ? "lost" : isFinal ? "settled" : "given-back");
    // A consumer that the event waits for may have begun to run here meanwhile.
    if (settled && (outcome.kind === "release" || outcome.kind === "waits")) this.#held.listener?.backlog();
  }

  #refused(due: Due, error: unknown): void {
    const { runs, settlements } = due;
    const { message } = fromError(error);
    this.#observe({ kind: "store-trouble", doing: "settling", error: message });
    if (hasEnded(error)) {
      for (const run of runs) this.#held.over(run, "lost");
      return;
    }
    if (isMisuse(error) && !isRefusal(due)) return this.#sendApart(due, message);
    this.#host.timer(SETTLE_RETRY_MS, () => {
      // Runs that are over by now were taken from this process; settling them would have no effect.
      const isLeft = (_: unknown, at: number) => runs[at]!.state !== "over";
      const left = { runs: runs.filter(isLeft), settlements: settlements.filter(isLeft) };
      if (left.runs.length > 0) this.#send(left, "now");
    });
  }

  /** The store would refuse the batch again. One of them is wrong, and the others must not wait for it. */
  #sendApart({ runs, settlements }: Due, message: string): void {
    for (let at = 0; at < runs.length; at++) {
      const run = runs[at]!;
      if (run.state === "over") continue;
      const settlement = runs.length > 1 ? settlements[at]! : refusalOf(settlements[at]!, message);
      this.#send({ runs: [run], settlements: [settlement] }, "now");
    }
  }
}

/** The outcome of an event whose settlement the store refuses for its content. */
function refusalOf({ id, lease, attempt }: Settlement, message: string): Settlement {
  const error = `its outcome cannot be settled: ${message}`;
  return { id, lease, attempt, outcome: { kind: "failed", error } };
}

/** Whether the settlement is of this kind, or looks like it: then it cannot be made smaller. */
function isRefusal({ settlements }: Due): boolean {
  const [only, second] = settlements;
  return second === undefined && only?.outcome.kind === "failed" && only.deliveries === undefined;
}

/** Whether neither later events of a serial key, nor the next suspect (J88), nor a caller waits for it. */
function canWait({ claim, lanes }: EventRun, { outcome }: Settlement): boolean {
  return outcome.kind === "done" && claim.attempt === 1 && !lanes?.some((lane) => lane !== undefined);
}

function isMisuse(error: unknown): boolean {
  return error instanceof StoreError && error.code === "STORE_MISUSE";
}

/** Whether the store refuses all further writes. */
function hasEnded(error: unknown): boolean {
  return error instanceof StoreError && (error.code === "STORE_CLOSED" || error.code === "STORE_STOPPED");
}
