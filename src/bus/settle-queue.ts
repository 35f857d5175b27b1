/**
 * Settles on their way to the store. SPEC: J55, J71, J90.
 *
 *   add ──somebody waits for it, or many are there──> at the end of the turn, `now` ──┐
 *     └──it can wait──> at the end of the turn, or a pause after those before, `soon` ─┴──> store ──> over, or offered again
 *
 * Those of a turn go together. A few events that went well need no commit of their own: one that somebody else needs takes them along, be it that
 * of the next event. While such events follow each other closely, they are settled by the pause: each with the one after it costs that
 * one a sixth of its way, sixteen together hardly more than one. Should the process die before, they are delivered again, as at any time.
 *
 * A settle that the store could not take now is offered again; one that comes too late changes nothing. Either way the run is
 * over once the store has answered. Only the word that the handling of a suspect begins (J88) leaves it in hand. Of settles that the store
 * refuses for what they are, each is offered by itself, and an event whose settle is refused alone has failed: nobody else waits for it.
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
import type { RetryTimer } from "./retry-timer.ts";
import type { TopicMatches } from "./topic-match.ts";

/** Runs and what each of them comes to, side by side: what the store is given is made once. */
interface Due {
  readonly runs: EventRun[];
  readonly settlements: Settlement[];
}

export class SettleQueue {
  readonly #host: Host;
  readonly #store: Store;
  readonly #held: HeldEvents;
  readonly #retries: RetryTimer;
  readonly #observe: BusObserver;
  readonly #publisher: Publisher;
  readonly #matches: TopicMatches;
  #due: Due = { runs: [], settlements: [] };
  /** How what is due goes at the end of this turn; undefined while nothing of it is to go. */
  #leaving: Urgency | undefined;
  /** Ends the pause; undefined while nothing waits for that. */
  #pause: Timer | undefined;
  /** Until then what can wait does. By the monotonic clock. */
  #pausedUntilMs = 0;
  /** Whether somebody waits until all is settled. */
  #isAwaited = false;

  constructor(parts: {
    host: Host;
    store: Store;
    held: HeldEvents;
    retries: RetryTimer;
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

  /** Whether somebody waits until all is settled: then nothing waits here. */
  set isAwaited(isAwaited: boolean) {
    this.#isAwaited = isAwaited;
    if (isAwaited && this.#due.runs.length > 0) this.#leave("now");
  }

  #leaveAfterPause(): void {
    const leftMs = this.#pausedUntilMs - this.#host.monotonic();
    if (leftMs <= 0) return this.#leave("soon");
    // It keeps the process alive: what was handled is settled, whoever waits.
    this.#pause = this.#host.timer(leftMs, () => {
      this.#pause = undefined;
      if (this.#due.runs.length > 0) this.#leave("soon");
    });
  }

  /** Lets what is due go at the end of this turn. */
  #leave(urgency: Urgency): void {
    if (this.#leaving === undefined) this.#host.microtask(this.#flush);
    if (this.#leaving !== "now") this.#leaving = urgency;
  }

  readonly #flush = (): void => {
    const urgency = this.#leaving ?? "now";
    this.#leaving = undefined;
    this.#pausedUntilMs = this.#host.monotonic() + SETTLE_PAUSE_MS;
    // What handlers have emitted is asked for before their events are done: the store does the one before the other.
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
      // Runs that are over by now were taken from us; settling them would change nothing.
      const isLeft = (_: unknown, at: number) => runs[at]!.state !== "over";
      const left = { runs: runs.filter(isLeft), settlements: settlements.filter(isLeft) };
      if (left.runs.length > 0) this.#send(left, "now");
    });
  }

  /** The store would say the same again. One of them is wrong, and the others must not wait for it. */
  #sendApart({ runs, settlements }: Due, message: string): void {
    for (let at = 0; at < runs.length; at++) {
      const run = runs[at]!;
      if (run.state === "over") continue;
      const settlement = runs.length > 1 ? settlements[at]! : refusalOf(settlements[at]!, message);
      this.#send({ runs: [run], settlements: [settlement] }, "now");
    }
  }
}

/** What an event comes to whose settle the store refuses for what it is. */
function refusalOf({ id, lease, attempt }: Settlement, message: string): Settlement {
  const error = `what it has come to cannot be settled: ${message}`;
  return { id, lease, attempt, outcome: { kind: "failed", error } };
}

/** Whether it is one of those, or looks like it: there is nothing more that could be left out. */
function isRefusal({ settlements }: Due): boolean {
  const [only, second] = settlements;
  return second === undefined && only?.outcome.kind === "failed" && only.deliveries === undefined;
}

/** Whether nobody waits for it: later events of a serial key, the next suspect (J88), who wants to see it fail or run again. */
function canWait({ claim, lanes }: EventRun, { outcome }: Settlement): boolean {
  return outcome.kind === "done" && claim.attempt === 1 && !lanes?.some((lane) => lane !== undefined);
}

function isMisuse(error: unknown): boolean {
  return error instanceof StoreError && error.code === "STORE_MISUSE";
}

/** Whether the store will take nothing any more. */
function hasEnded(error: unknown): boolean {
  return error instanceof StoreError && (error.code === "STORE_CLOSED" || error.code === "STORE_STOPPED");
}
