/**
 * What is armed: in memory, or in the store's due table so that it survives the process. One host timer waits for the earliest.
 *
 * A durable row that comes due is first marked as fired, which no deadline waits for, and goes only when what it fired was handled. What
 * a crash leaves marked is fired again by the next process, with the same message id, which receipts make harmless.
 *
 * ```
 *   armed ──due──> fired ──handled──> gone
 *     └──cancelled──────────────────────^
 * ```
 * Timers never fire early, equal deadlines fire in the order they were set, and none fires before
 * whoever set it was told so. SPEC: T.
 */
import type { Host, Timer } from "../host/host.ts";
import { TIMER_CHUNK_MS, TIMER_RETRY_MS, TIMERS_FIRED_MAX, TIMERS_REFIRED_MAX } from "../limits.ts";
import type { Json } from "../message/json.ts";
import type { Store } from "../store/store.ts";

export interface ArmedTimer {
  readonly id: string;
  readonly dueAtMs: number;
  readonly data: Json;
}

const KIND = "timer";
/** Fired, and not known to be handled. */
const FIRED = "timer-fired";
/** A deadline that never comes, for rows that wait for no time. */
const FIRED_AT_MS = Number.MAX_SAFE_INTEGER;

export class TimerTable {
  readonly #host: Host;
  readonly #store: Store | undefined;
  readonly #fire: (timer: ArmedTimer) => Promise<void>;
  /** Without a store: in the order set. */
  readonly #armed = new Map<string, ArmedTimer>();
  /** Being set: their answers are not out. */
  readonly #setting = new Set<string>();
  #wake: Timer | undefined;
  #closed = false;
  /** Which look for the earliest deadline is the latest; what an earlier one finds is out of date. */
  #looks = 0;
  /** Timers are fired one batch after the other. */
  #firing: Promise<void> = Promise.resolve();

  constructor(options: { host: Host; store?: Store | undefined; fire: (timer: ArmedTimer) => Promise<void> }) {
    this.#host = options.host;
    this.#store = options.store;
    this.#fire = options.fire;
  }

  /** Fires what an earlier process had fired and not seen handled, and arms what it has left. */
  async open(): Promise<void> {
    try {
      for (const row of (await this.#store?.dueRows(FIRED_AT_MS, TIMERS_REFIRED_MAX)) ?? []) {
        if (row.kind === FIRED) this.#send({ id: row.key, dueAtMs: row.dueAtMs, data: row.data });
      }
    } catch {
      // They stay marked, and the next process finds them.
    }
    await this.#rearm();
  }

  async set(timer: ArmedTimer): Promise<void> {
    const { id, dueAtMs, data } = timer;
    this.#setting.add(id);
    try {
      if (this.#store) await this.#store.changeDue([{ op: "put", kind: KIND, key: id, dueAtMs, data }]);
      else this.#armed.set(id, timer);
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

  /** True when it was armed and will not fire. */
  async cancel(id: string): Promise<boolean> {
    return await this.#remove(id);
  }

  /** How many wait. With a store only whether any does: others may share it. */
  get scheduled(): number {
    if (!this.#store) return this.#armed.size;
    return this.#wake === undefined && this.#setting.size === 0 ? 0 : 1;
  }

  close(): void {
    this.#closed = true;
    this.#wake?.cancel();
  }

  async #remove(id: string): Promise<boolean> {
    if (!this.#store) return this.#armed.delete(id);
    const [removed = false] = await this.#store.changeDue([{ op: "cancel", kind: KIND, key: id }]);
    return removed;
  }

  /** Waits for the earliest deadline. Where the store cannot say, it is asked again: a timer is late then, never lost. */
  async #rearm(overdueWaitMs = 0): Promise<void> {
    const look = ++this.#looks;
    let delay: number;
    try {
      const earliest = this.#store ? await this.#store.earliestDue() : this.#earliestInMemory();
      if (look !== this.#looks) return;
      const none = earliest === undefined || earliest >= FIRED_AT_MS;
      delay = none ? Number.POSITIVE_INFINITY : earliest - this.#host.now();
      if (delay <= 0) delay = overdueWaitMs;
    } catch {
      delay = TIMER_RETRY_MS;
    }
    this.#wake?.cancel();
    this.#wake = undefined;
    if (delay === Number.POSITIVE_INFINITY || this.#closed) return;
    this.#wake = this.#host.timer(Math.min(delay, TIMER_CHUNK_MS), () => {
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
        if (await this.#mark(timer)) this.#send(timer);
        fired++;
      }
    } catch {
      fired = 0;
    }
    // What is overdue and did not fire is another's, or the store failed.
    await this.#rearm(fired === 0 ? TIMER_RETRY_MS : 0);
  }

  /** From now on it cannot be cancelled, and a crash does not lose it. */
  async #mark({ id, data }: ArmedTimer): Promise<boolean> {
    if (!this.#store) return this.#armed.delete(id);
    const [armed = false] = await this.#store.changeDue([
      { op: "cancel", kind: KIND, key: id },
      { op: "put", kind: FIRED, key: id, dueAtMs: FIRED_AT_MS, data },
    ]);
    if (!armed) await this.#forget(id);
    return armed;
  }

  #send(timer: ArmedTimer): void {
    this.#fire(timer)
      .then(() => this.#forget(timer.id))
      // Not handled, or the store failed: it stays marked, and the next process fires it again.
      .catch(() => undefined);
  }

  async #forget(id: string): Promise<void> {
    await this.#store?.changeDue([{ op: "cancel", kind: FIRED, key: id }]);
  }

  async #due(now: number): Promise<ArmedTimer[]> {
    if (this.#store) {
      const rows = await this.#store.dueRows(now, TIMERS_FIRED_MAX);
      return rows.filter(({ kind }) => kind === KIND).map(({ key, dueAtMs, data }) => ({ id: key, dueAtMs, data }));
    }
    return [...this.#armed.values()].filter(({ dueAtMs }) => dueAtMs <= now).sort((a, b) => a.dueAtMs - b.dueAtMs);
  }
}
