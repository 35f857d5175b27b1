/**
 * What is armed: in memory, or in the store's due table so that it survives the process. One host timer waits for the earliest.
 *
 * A durable row that comes due is first marked as fired, which no deadline waits for, and goes only when what it fired was handled. What
 * was refused for the moment (503) is sent again, later and later; what a crash leaves marked is fired again by the next process, with the
 * same message id, which receipts make harmless. A timer with a
 * schedule is armed for its next slot in the same write that marks this one.
 *
 * ```
 *   armed ──due──> fired ──handled──> gone
 *     ├──due, with a schedule──> armed for the next slot, and fired for this one
 *     └──cancelled──> gone
 * ```
 * Timers never fire early, equal deadlines fire in the order they were set, and none fires before
 * whoever set it was told so. SPEC: T.
 */
import type { Host, Timer } from "../host/host.ts";
import { pause } from "../host/pause.ts";
import {
  TIMER_FIRINGS_MAX,
  TIMER_RETRY_MAX_MS,
  TIMER_RETRY_MS,
  TIMERS_FIRED_MAX,
  TIMERS_REFIRED_MAX,
  WALL_CLOCK_LOOK_MS,
} from "../limits.ts";
import { Failure } from "../message/error-data.ts";
import type { Json, JsonObject } from "../message/json.ts";
import type { DueChange } from "../store/due.ts";
import { type Store, StoreError } from "../store/store.ts";
import { nextSlot, type Schedule } from "./schedule.ts";
import type { Template } from "./template.ts";

/** What a timer sends, on whose behalf, and whether again. */
export interface TimerData {
  readonly lineage: JsonObject;
  readonly template: Template;
  readonly schedule?: Schedule;
}

export interface ArmedTimer {
  readonly id: string;
  readonly dueAtMs: number;
  readonly data: TimerData;
}

/** One firing of a timer. */
export interface Firing {
  /** The timer's own, or the timer's and the slot's. */
  readonly id: string;
  readonly timerId: string;
  /** Which slot of its schedule; absent for a timer that fires once. */
  readonly slotMs?: number;
  readonly data: TimerData;
}

export interface TimerTableOptions {
  readonly host: Host;
  readonly store?: Store | undefined;
  /** How many may wait in memory; with a store none do. */
  readonly timersMax: number;
  /** Says that one fires, before its message; throws where that is not taken for the moment. */
  readonly tell: (firing: Firing) => void;
  /** Sends its message; likewise. */
  readonly fire: (firing: Firing) => Promise<void>;
}

const KIND = "timer";
/** Fired, and not known to be handled. */
const FIRED = "timer-fired";
/** A deadline that never comes, for rows that wait for no time: an older version would wake for another. */
const FIRED_AT_MS = Number.MAX_SAFE_INTEGER;
/** A deadline that has always come. */
const AT_ONCE_MS = 0;

export class TimerTable {
  readonly #host: Host;
  readonly #store: Store | undefined;
  readonly #timersMax: number;
  readonly #tell: (firing: Firing) => void;
  readonly #fire: (firing: Firing) => Promise<void>;
  /** Without a store: in the order set. */
  readonly #armed = new Map<string, ArmedTimer>();
  /** Being set: their answers are not out. */
  readonly #setting = new Set<string>();
  /** Firings that are not handled yet. */
  readonly #sending = new Set<string>();
  /** How many of those each repeating timer has. */
  readonly #sendingOf = new Map<string, number>();
  /** Firings that are about to be tried again. */
  #pausing = 0;
  #wake: Timer | undefined;
  #closed = false;
  #isLookingForMarks = false;
  /** Which look for the earliest deadline is the latest; what an earlier one finds is out of date. */
  #looks = 0;
  /** Batches of firings and cancellations, one after the other: what is being armed for its next slot cannot be cancelled meanwhile. */
  #firing: Promise<void> = Promise.resolve();

  constructor(options: TimerTableOptions) {
    this.#host = options.host;
    this.#store = options.store;
    this.#timersMax = options.timersMax;
    this.#tell = options.tell;
    this.#fire = options.fire;
  }

  /** Fires what an earlier process had fired and not seen handled, and arms what it has left. */
  async open(): Promise<void> {
    this.#sendMarked();
    await this.#rearm();
  }

  /**
   * Sends what is marked as fired and what nobody here has sent: an earlier process has left it, or the store has marked it and did not say so. Where the
   * store cannot tell, it is asked again.
   */
  #sendMarked(): void {
    if (!this.#store || this.#isLookingForMarks) return;
    const store = this.#store;
    this.#isLookingForMarks = true;
    const sent = this.#persist(async () => {
      const sending = new Set(this.#sending);
      for (const { key, data } of await store.dueRows(FIRED_AT_MS, TIMERS_REFIRED_MAX, FIRED))
        if (!sending.has(key)) void this.#send(firingOf(key, data));
    });
    void sent.then(() => {
      this.#isLookingForMarks = false;
    });
  }

  async set(timer: ArmedTimer): Promise<void> {
    const { id } = timer;
    this.#setting.add(id);
    try {
      if (this.#store) await this.#change([armed(timer)]);
      else this.#keep(timer);
    } catch (error) {
      this.#setting.delete(id);
      throw error;
    }
    // A task later the answer is out.
    this.#host.task(() => {
      this.#setting.delete(id);
      void this.#rearm();
    });
  }

  #keep(timer: ArmedTimer): void {
    if (this.#armed.size >= this.#timersMax && !this.#armed.has(timer.id))
      throw new Failure(503, `${this.#timersMax} timers wait already; cancel some, or set it when some have fired`);
    this.#armed.set(timer.id, timer);
  }

  /** True when it was armed and will not fire. */
  cancel(id: string): Promise<boolean> {
    const cancelled = this.#firing.then(() => this.#remove(id));
    this.#firing = cancelled.then(
      () => undefined,
      () => undefined,
    );
    return cancelled;
  }

  /** How many wait. With a store only whether any does: others may share it. */
  get scheduled(): number {
    if (!this.#store) return this.#armed.size + this.#pausing;
    return this.#wake === undefined && this.#setting.size === 0 && this.#pausing === 0 ? 0 : 1;
  }

  close(): void {
    this.#closed = true;
    this.#wake?.cancel();
  }

  async #remove(id: string): Promise<boolean> {
    if (!this.#store) return this.#armed.delete(id);
    const [removed = false] = await this.#change([{ op: "cancel", kind: KIND, key: id }]);
    return removed;
  }

  /** For whoever asked: what the store does not take for the moment can be asked for again, and is the same timer then. */
  async #change(changes: readonly DueChange[]): Promise<readonly boolean[]> {
    try {
      return (await this.#store?.changeDue(changes)) ?? [];
    } catch (error) {
      if (error instanceof StoreError && error.code !== "STORE_MISUSE") throw new Failure(503, error.message);
      throw error;
    }
  }

  /** Waits for the earliest deadline. Where the store cannot say, it is asked again: a timer is late then, never lost. */
  async #rearm(overdueWaitMs = 0): Promise<void> {
    const look = ++this.#looks;
    let dueAtMs: number | undefined = AT_ONCE_MS;
    let delayMs = TIMER_RETRY_MS;
    try {
      dueAtMs = this.#store ? await this.#store.earliestDue(KIND) : this.#earliestInMemory();
      if (look !== this.#looks) return;
      delayMs = (dueAtMs ?? AT_ONCE_MS) - this.#host.now();
      if (delayMs <= 0) delayMs = overdueWaitMs;
    } catch {
      // Asked again soon.
    }
    this.#wake?.cancel();
    this.#wake = undefined;
    if (dueAtMs !== undefined && !this.#closed) this.#wait(delayMs, dueAtMs);
  }

  /** Not for long at a time: deadlines are of the wall clock, which may be put forward, or go on while the machine sleeps. */
  #wait(delayMs: number, dueAtMs: number): void {
    this.#wake = this.#host.timer(Math.min(delayMs, WALL_CLOCK_LOOK_MS), () => {
      const leftMs = dueAtMs - this.#host.now();
      if (leftMs > 0) return this.#wait(leftMs, dueAtMs);
      this.#firing = this.#firing.then(() => this.#fireDue());
    });
  }

  #earliestInMemory(): number | undefined {
    let earliest: number | undefined;
    for (const { id, dueAtMs } of this.#armed.values())
      if (!this.#setting.has(id) && (earliest === undefined || dueAtMs < earliest)) earliest = dueAtMs;
    return earliest;
  }

  async #fireDue(): Promise<void> {
    if (this.#closed) return;
    let fired = 0;
    try {
      for (const timer of await this.#due(this.#host.now())) {
        if (this.#setting.has(timer.id)) continue;
        // Somebody may have cancelled it meanwhile.
        const firing = firingFor(timer);
        if (await this.#mark(timer, firing)) void this.#send(firing);
        fired++;
      }
    } catch {
      fired = 0;
      this.#sendMarked();
    }
    // What is overdue and did not fire is being set, or was another's; or the store failed.
    await this.#rearm(fired === 0 ? TIMER_RETRY_MS : 0);
  }

  /** From now on this firing cannot be cancelled, and a crash does not lose it; a timer with a schedule is armed again. */
  async #mark(timer: ArmedTimer, firing: Firing): Promise<boolean> {
    const next = following(timer, this.#host.now());
    // A slot that comes while many are not handled is one of those that have passed: they are caught up with by the next.
    const isLeftOut = next !== undefined && (this.#sendingOf.get(timer.id) ?? 0) >= TIMER_FIRINGS_MAX;
    if (!this.#store) {
      const wasArmed = this.#armed.delete(timer.id);
      if (wasArmed && next) this.#armed.set(next.id, next);
      return wasArmed && !isLeftOut;
    }
    // Of several processes that share the store one takes it; for the others nothing of this happens.
    const fired = { op: "put", kind: FIRED, key: firing.id, dueAtMs: FIRED_AT_MS, data: markOf(firing) } as const;
    const [wasArmed = false] = await this.#store.changeDue([
      { op: "take", kind: KIND, key: timer.id },
      ...(next ? [armed(next)] : []),
      ...(isLeftOut ? [] : [fired]),
    ]);
    return wasArmed && !isLeftOut;
  }

  /** Until it was handled, and until the store has forgotten it; what a process does not come to is left to the next. */
  async #send(firing: Firing): Promise<void> {
    const { id, timerId } = firing;
    // Set again by a request that was repeated, it has come due again: what is sent already is what was asked for.
    if (this.#sending.has(id)) return;
    this.#sending.add(id);
    this.#count(timerId, 1);
    let isTold = false;
    await this.#persist(async () => {
      // Once: told again, it would take the place that the message needs where a lane has only one.
      if (!isTold) this.#tell(firing);
      isTold = true;
      await this.#fire(firing);
    });
    this.#sending.delete(id);
    this.#count(timerId, -1);
    await this.#persist(() => this.#forget(id));
  }

  #count(timerId: string, more: number): void {
    const count = (this.#sendingOf.get(timerId) ?? 0) + more;
    if (count > 0) this.#sendingOf.set(timerId, count);
    else this.#sendingOf.delete(timerId);
  }

  /** Again, after twice as long each time, while the table is open. */
  async #persist(deed: () => Promise<void>): Promise<void> {
    for (let pauseMs = TIMER_RETRY_MS; !this.#closed; pauseMs = Math.min(2 * pauseMs, TIMER_RETRY_MAX_MS)) {
      try {
        return await deed();
      } catch {
        this.#pausing++;
        await pause(this.#host, pauseMs);
        this.#pausing--;
      }
    }
  }

  async #forget(firingId: string): Promise<void> {
    await this.#store?.changeDue([{ op: "cancel", kind: FIRED, key: firingId }]);
  }

  async #due(now: number): Promise<ArmedTimer[]> {
    if (this.#store) {
      const rows = await this.#store.dueRows(now, TIMERS_FIRED_MAX, KIND);
      return rows.map(({ key, dueAtMs, data }) => ({ id: key, dueAtMs, data: data as never as TimerData }));
    }
    return [...this.#armed.values()].filter(({ dueAtMs }) => dueAtMs <= now).sort((a, b) => a.dueAtMs - b.dueAtMs);
  }
}

function armed({ id, dueAtMs, data }: ArmedTimer): DueChange {
  return { op: "put", kind: KIND, key: id, dueAtMs, data: data as never as Json };
}

/** The timer as it waits for its next slot, if it has one. */
function following({ id, dueAtMs, data }: ArmedTimer, nowMs: number): ArmedTimer | undefined {
  const next = data.schedule && nextSlot(data.schedule, dueAtMs, nowMs);
  return next === undefined ? undefined : { id, dueAtMs: next, data };
}

function firingFor({ id, dueAtMs, data }: ArmedTimer): Firing {
  return data.schedule ? { id: `${id}@${dueAtMs}`, timerId: id, slotMs: dueAtMs, data } : { id, timerId: id, data };
}

/** A firing as its row keeps it, and back. */
function markOf({ timerId, slotMs, data }: Firing): Json {
  return (slotMs === undefined ? data : { ...data, timerId, slotMs }) as never as Json;
}

function firingOf(id: string, mark: Json): Firing {
  return { id, timerId: id, ...(mark as object), data: mark as never as TimerData };
}
