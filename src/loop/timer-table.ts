/**
 * Armed timers: rows of the due table, in the store or in memory. One host timer waits for the earliest deadline.
 *
 * ```
 *   armed ──due──> fired ──handled, or in the journal──> gone
 *     ├──due, with a schedule──> armed for the next slot, and fired for this one
 *     └──cancelled──> gone
 * ```
 * Kernels that share a store share its timers: each looks at the due table on a poll and after writes of others, so the
 * timers of a kernel that died or stopped fire on the next one. Due timers are taken in batches, one write for each
 * batch; exactly one kernel takes a timer. A timer never fires early, equal deadlines fire in the order of setting, and
 * no timer fires before its `Timer.Set` is answered. SPEC: T.
 */
import type { Host, Timer } from "../host/host.ts";
import {
  POLL_INTERVAL_MS,
  RELAYED_LOOKS_MAX,
  TIMER_FIRINGS_MAX,
  TIMER_LOOK_PAUSE_MS,
  TIMER_RETRY_MS,
  TIMERS_FIRED_MAX,
  TIMERS_REFIRED_MAX,
  WALL_CLOCK_LOOK_MS,
} from "../limits.ts";
import { Failure } from "../message/error-data.ts";
import type { DueChange } from "../store/due.ts";
import { StoreError } from "../store/store.ts";
import {
  type ArmedTimer,
  armed,
  type ClockReading,
  FIRED_KIND,
  type Firing,
  firingFor,
  firingIn,
  following,
  marked,
  messageIdOf,
  TIMER_KIND,
  type TimerData,
  type TimerRows,
  taken,
  timerIn,
} from "../work/timer-row.ts";
import type { Relayed, Withdrawn } from "./capability.ts";
import { ClockSteps } from "./clock-steps.ts";
import { TimerFirings } from "./timer-firings.ts";

export interface TimerTableOptions {
  readonly host: Host;
  readonly rows: TimerRows;
  readonly tell: (firing: Firing) => Promise<void>;
  readonly fire: (firing: Firing) => Promise<void>;
  /** Takes messages back that the loop or the journal has. */
  readonly withdraw: (which: Relayed) => Promise<Withdrawn>;
  /** Called with each timer that was taken here. */
  readonly gone: (timer: ArmedTimer) => void;
}

export interface TimerCancellation extends Withdrawn {
  /** Whether the timer was armed. */
  readonly isDisarmed: boolean;
}

/** A deadline after every other. */
const LAST_MS = Number.MAX_SAFE_INTEGER;

export class TimerTable {
  readonly #host: Host;
  readonly #rows: TimerRows;
  readonly #firings: TimerFirings;
  readonly #steps: ClockSteps;
  readonly #gone: (timer: ArmedTimer) => void;
  readonly #takeBack: (which: Relayed) => Promise<Withdrawn>;
  readonly #owner: string;
  /** Ids of timers with an unanswered `Timer.Set`. */
  readonly #setting = new Set<string>();
  /** Whether a timer is armed, by this kernel or another, as of the last look. */
  #isArmed = false;
  /** When the first row of a firing is no longer its kernel's own, as of the last look. */
  #markedUntilMs = LAST_MS;
  #wake: Timer | undefined;
  /** A look that follows writes of others. */
  #lookSoon: Timer | undefined;
  #unwatch: (() => void) | undefined;
  #closed = false;
  /**
   * Rows of firings that the next turn takes over besides expired ones: all at the start, this table's own after a
   * failed write.
   */
  #claims: "all" | "own" | "none" = "all";
  /** Number of the latest look; the result of an earlier one is out of date. */
  #looks = 0;
  /**
   * Batches and cancellations, one after the other: a timer that is being armed for its next slot cannot be cancelled
   * meanwhile.
   */
  #turns: Promise<unknown> = Promise.resolve();

  constructor({ host, rows, tell, fire, withdraw, gone }: TimerTableOptions) {
    this.#host = host;
    this.#takeBack = withdraw;
    this.#rows = rows;
    this.#owner = host.id();
    this.#gone = gone;
    const changeDue = (changes: readonly DueChange[]) => rows.changeDue(changes);
    this.#firings = new TimerFirings({ host, changeDue, now: () => rows.now(), owner: this.#owner, tell, fire });
    this.#steps = new ClockSteps({ host, rows, table: this.#owner });
  }

  /** Sends the firings that an earlier process did not finish, and waits for the timers that it left. */
  open(): void {
    this.#unwatch = this.#rows.watch?.(({ journal, own }) => {
      if (journal && own?.due !== false) this.#lookLater();
    });
    this.#takeTurn();
  }

  /** The time that deadlines are compared with: by the clock of the rows. */
  now(): number {
    return this.#rows.now();
  }

  /** The clocks as they are now, for a timer that is set by a delay. */
  get clock(): ClockReading {
    return this.#steps.reading;
  }

  /** Arms a timer by `arm`. It fires in a later task than the one in which `arm` has answered. */
  async set<Answer>(id: string, arm: () => Promise<Answer>): Promise<Answer> {
    this.#setting.add(id);
    try {
      return await asFailure(arm());
    } finally {
      // The answer is out one task later.
      this.#host.task(() => {
        this.#setting.delete(id);
        void this.#look();
      });
    }
  }

  /** Disarms a timer, and takes back its messages before their handlers begin. */
  cancel(id: string): Promise<TimerCancellation> {
    return this.#queue(async () => {
      const row = await asFailure(this.#rows.dueRow(TIMER_KIND, id));
      const [isRemoved = false] = await asFailure(this.#rows.changeDue([{ op: "cancel", kind: TIMER_KIND, key: id }]));
      if (isRemoved) void this.#look();
      const { withdrawn, underway } = await asFailure(this.#withdraw(id, row && timerIn(row).data));
      return { isDisarmed: isRemoved, withdrawn, underway };
    });
  }

  async #withdraw(id: string, data: TimerData | undefined): Promise<Withdrawn> {
    const { stopped, relayed } = this.#firings.withdraw(id);
    const cause = data?.schedule && data.lineage["causation"];
    const causedBy = typeof cause === "string" ? { causedBy: { request: cause, type: data!.template.type } } : {};
    let { withdrawn, underway } = await this.#takeBack({
      ids: [messageIdOf({ id: data?.setting ?? id })],
      ...causedBy,
    });
    // A message that is in a lane comes to its actor, or to the journal, within a few tasks.
    for (let looks = 0; looks < RELAYED_LOOKS_MAX && withdrawn + underway === 0; looks++) {
      const left = relayed.filter((firing) => this.#firings.has(firing.id));
      if (left.length === 0) break;
      await this.#host.yield();
      ({ withdrawn, underway } = await this.#takeBack({ ids: left.map(messageIdOf), ...causedBy }));
    }
    return { withdrawn: withdrawn + stopped, underway };
  }

  /** 1 if a timer or a firing is left. The store is shared, so it is no count of this kernel's own timers. */
  get scheduled(): number {
    return this.#isArmed || this.#setting.size > 0 || this.#firings.pausing > 0 ? 1 : 0;
  }

  close(): void {
    this.#closed = true;
    this.#unwatch?.();
    this.#wake?.cancel();
    this.#lookSoon?.cancel();
    this.#firings.close();
  }

  // Looking ---------------------------------------------------------------------------------------------------------

  #lookLater(): void {
    if (this.#closed) return;
    const look = () => {
      this.#lookSoon = undefined;
      void this.#look();
    };
    this.#lookSoon ??= this.#host.timer(TIMER_LOOK_PAUSE_MS, look, { keepAlive: false });
  }

  /**
   * Waits for the earliest deadline, but not longer than a poll interval: another kernel may set or leave a timer, and
   * deadlines are of the wall clock, which may step. If the store cannot be read, the look is repeated: a timer is late
   * then, never lost.
   */
  async #look(overdueWaitMs = 0): Promise<void> {
    const look = ++this.#looks;
    let delayMs = TIMER_RETRY_MS;
    try {
      await this.#steps.correct();
      const [armedAt, firedAt] = await Promise.all([
        this.#rows.earliestDue(TIMER_KIND),
        this.#rows.earliestDue(FIRED_KIND),
      ]);
      if (look !== this.#looks) return;
      this.#isArmed = armedAt !== undefined;
      this.#markedUntilMs = (this.#isShared ? firedAt : undefined) ?? LAST_MS;
      const leftMs = Math.min(armedAt ?? LAST_MS, this.#markedUntilMs) - this.#rows.now();
      if (leftMs <= 0) return this.#waitFor(overdueWaitMs, () => this.#takeTurn());
      delayMs = Math.min(leftMs, this.#isShared ? POLL_INTERVAL_MS : WALL_CLOCK_LOOK_MS);
    } catch {
      if (look !== this.#looks) return;
    }
    this.#waitFor(delayMs, () => void this.#look());
  }

  #waitFor(delayMs: number, then: () => void): void {
    this.#wake?.cancel();
    this.#wake = undefined;
    if (this.#closed || !(this.#isArmed || this.#isShared)) return;
    this.#wake = this.#host.timer(delayMs, then, { keepAlive: this.#isArmed });
  }

  /** Whether other kernels may have timers in the same table. */
  get #isShared(): boolean {
    return this.#rows.watch !== undefined;
  }

  // Firing ----------------------------------------------------------------------------------------------------------

  #takeTurn(): void {
    void this.#queue(async () => {
      if (this.#closed) return;
      let progress = 0;
      try {
        if (this.#claims !== "none" || this.#markedUntilMs <= this.#rows.now()) progress += await this.#takeOver();
        progress += await this.#fireDue();
      } catch {
        // The write may have landed: its firings are found among the rows of this table.
        if (this.#claims === "none") this.#claims = "own";
        progress = 0;
      }
      // Rows that are overdue and did not fire are being set, or were taken by another kernel; or the store failed.
      await this.#look(progress === 0 ? TIMER_RETRY_MS : 0);
    });
  }

  /** Runs after all turns that were queued before. */
  #queue<Result>(run: () => Promise<Result>): Promise<Result> {
    const result = this.#turns.then(run);
    this.#turns = result.catch(() => undefined);
    return result;
  }

  /**
   * Takes a batch of due timers with one write. Where one of them is gone, those after it are left for the next turn.
   */
  async #fireDue(): Promise<number> {
    const now = this.#rows.now();
    const rows = await this.#rows.dueRows(now, TIMERS_FIRED_MAX, TIMER_KIND);
    const timers = rows.map(timerIn).filter(({ id }) => !this.#setting.has(id));
    const plans = timers.map((timer) => this.#plan(timer, now));
    if (plans.length === 0) return 0;
    const done = await this.#rows.changeDue(plans.flatMap(({ changes }) => changes));
    let at = 0;
    for (const { timer, changes, firing } of plans) {
      if (!done[at]) break;
      at += changes.length;
      this.#gone(timer);
      if (firing) this.#firings.send(firing);
    }
    return plans.length;
  }

  /** From the write on this firing survives a crash; a timer with a schedule is armed again. */
  #plan(timer: ArmedTimer, now: number): { timer: ArmedTimer; changes: DueChange[]; firing: Firing | undefined } {
    const next = following(timer, now);
    // A slot that comes while many are not handled counts as passed, and the next one catches up.
    const isLeftOut = next !== undefined && this.#firings.countOf(timer.id) >= TIMER_FIRINGS_MAX;
    const firing = isLeftOut ? undefined : firingFor(timer);
    const changes = [taken(timer)];
    if (next) changes.push(armed(next));
    if (firing) changes.push(marked(firing, this.#owner, now));
    return { timer, changes, firing };
  }

  /**
   * Sends firings of kernels that are gone: their kernel has stopped renewing their rows, or this table has just
   * opened.
   */
  async #takeOver(): Promise<number> {
    const claims = this.#claims;
    const now = this.#rows.now();
    const [before, limit] = claims === "none" ? [now, TIMERS_FIRED_MAX] : [LAST_MS, TIMERS_REFIRED_MAX];
    const rows = (await this.#rows.dueRows(before, limit, FIRED_KIND)).filter(({ key, dueAtMs, data }) => {
      if (this.#firings.has(key)) return false;
      return dueAtMs <= now || claims === "all" || firingIn({ data }).owner === this.#owner;
    });
    for (let from = 0; from < rows.length; from += TIMERS_FIRED_MAX) {
      const step = rows.slice(from, from + TIMERS_FIRED_MAX);
      const done = await this.#rows.changeDue(
        step.flatMap((row): DueChange[] => [
          { op: "take", kind: FIRED_KIND, key: row.key, was: row.data },
          marked(withoutOwner(firingIn(row)), this.#owner, now),
        ]),
      );
      for (const [at, row] of step.entries()) if (done[2 * at]) this.#firings.send(withoutOwner(firingIn(row)));
    }
    this.#claims = "none";
    return rows.length;
  }
}

function withoutOwner({ owner: _, ...firing }: Firing & { readonly owner: string }): Firing {
  return firing;
}

/** A store that takes no write for the moment is a 503: the same request may be repeated later. */
async function asFailure<Result>(write: Promise<Result>): Promise<Result> {
  try {
    return await write;
  } catch (error) {
    if (error instanceof StoreError && error.code !== "STORE_MISUSE") throw new Failure(503, error.message);
    throw error;
  }
}
