/**
 * Settles of one turn, sent to the store together, so that they land in the next group commit. SPEC: J55, J71, J90.
 *
 * A few events that went well need no commit of their own: the next one takes them along, be it that of the next event. Should the
 * process die before, they are delivered again, as at any time. What somebody waits for goes at once.
 *
 * A settle that the store could not take now is offered again; one that comes too late changes nothing. Either way the run is
 * over once the store has answered.
 */
import type { Host } from "../host/host.ts";
import { SETTLE_RETRY_MS, SETTLES_WAITING_MAX } from "../limits.ts";
import { fromError } from "../message/error-data.ts";
import type { Settlement } from "../store/journal.ts";
import { type Store, StoreError } from "../store/store.ts";
import type { EventRun } from "./event-run.ts";
import type { HeldEvents } from "./held-events.ts";
import type { BusObserver } from "./observation.ts";
import type { RetryTimer } from "./retry-timer.ts";

interface Due {
  readonly run: EventRun;
  readonly settlement: Settlement;
}

export class SettleQueue {
  readonly #host: Host;
  readonly #store: Store;
  readonly #held: HeldEvents;
  readonly #retries: RetryTimer;
  readonly #observe: BusObserver;
  /** Collected in this turn. */
  #due: Due[] = [];
  /** Settles on their way to the store, or waiting to be offered again. */
  #unanswered = 0;

  constructor(parts: { host: Host; store: Store; held: HeldEvents; retries: RetryTimer; observe: BusObserver }) {
    this.#host = parts.host;
    this.#store = parts.store;
    this.#held = parts.held;
    this.#retries = parts.retries;
    this.#observe = parts.observe;
  }

  add(run: EventRun, settlement: Settlement): void {
    run.state = "settling";
    this.#due.push({ run, settlement });
    if (this.#due.length === 1) this.#host.microtask(() => this.#flush());
  }

  /** How many settles have no answer yet. */
  get outstanding(): number {
    return this.#due.length + this.#unanswered;
  }

  #flush(): void {
    const due = this.#due;
    this.#due = [];
    if (due.length > 0) void this.#send(due);
  }

  async #send(due: readonly Due[]): Promise<void> {
    this.#unanswered += due.length;
    try {
      const settlements = due.map(({ settlement }) => settlement);
      const results = await this.#store.settle(settlements, canWait(due) ? "soon" : "now");
      for (const [at, { run, settlement }] of due.entries()) {
        this.#answered(run, settlement, results[at] === "settled");
      }
    } catch (error) {
      this.#refused(due, error);
    } finally {
      this.#unanswered -= due.length;
    }
  }

  #answered(run: EventRun, { outcome }: Settlement, settled: boolean): void {
    if (!settled) this.#observe({ kind: "claim-lost", event: run.id });
    if (settled && outcome.kind === "retry") this.#retries.note(outcome.atMs);
    const isFinal = outcome.kind === "done" || outcome.kind === "failed";
    this.#held.over(run, !settled ? "lost" : isFinal ? "settled" : "given-back");
    if (settled && outcome.kind === "release") this.#held.listener?.backlog();
  }

  #refused(due: readonly Due[], error: unknown): void {
    this.#observe({ kind: "store-trouble", doing: "settling", error: fromError(error).message });
    if (hasEnded(error)) {
      for (const { run } of due) this.#held.over(run, "lost");
      return;
    }
    this.#unanswered += due.length;
    this.#host.timer(SETTLE_RETRY_MS, () => {
      this.#unanswered -= due.length;
      // Runs that are over by now were taken from us; settling them would change nothing.
      const left = due.filter(({ run }) => run.state !== "over");
      if (left.length > 0) void this.#send(left);
    });
  }
}

/** Whether nobody waits for them: later events of a serial key, the next suspect (J88), others for the room that many would take. */
function canWait(due: readonly Due[]): boolean {
  return (
    due.length <= SETTLES_WAITING_MAX && due.every(({ run, settlement }) => isDone(settlement) && isUnawaited(run))
  );
}

function isDone({ outcome }: Settlement): boolean {
  return outcome.kind === "done";
}

function isUnawaited({ claimAttempt, lanes }: EventRun): boolean {
  return claimAttempt === 1 && !lanes?.some((lane) => lane !== undefined);
}

/** Whether the store will take nothing any more. */
function hasEnded(error: unknown): boolean {
  return error instanceof StoreError && (error.code === "STORE_CLOSED" || error.code === "STORE_STOPPED");
}
