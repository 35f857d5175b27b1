/**
 * What is armed: in memory, or in the store's due table so that it survives the process. One host timer waits for the earliest.
 *
 * A durable row goes only after what it fires has been handed to the loop: a crash in between fires it again, with the same message
 * id, which receipts make harmless. Timers never fire early, equal deadlines fire in the order they were set, and none fires before
 * whoever set it was told so. SPEC: T.
 */
import type { Host, Timer } from "../host/host.ts";
import { TIMER_CHUNK_MS, TIMER_RETRY_MS, TIMERS_FIRED_MAX } from "../limits.ts";
import type { Json } from "../message/json.ts";
import type { Store } from "../store/store.ts";

export interface ArmedTimer {
  readonly id: string;
  readonly dueAtMs: number;
  readonly data: Json;
}

const KIND = "timer";

export class TimerTable {
  readonly #host: Host;
  readonly #store: Store | undefined;
  readonly #fire: (timer: ArmedTimer) => void;
  /** Without a store: in the order set. */
  readonly #armed = new Map<string, ArmedTimer>();
  /** Being set: their answers are not out. */
  readonly #setting = new Set<string>();
  /** Fired, and their rows not yet gone: nobody can cancel them any more. */
  readonly #fired = new Set<string>();
  #wake: Timer | undefined;
  #closed = false;
  /** Which look for the earliest deadline is the latest; what an earlier one finds is out of date. */
  #looks = 0;
  /** Timers are fired one batch after the other. */
  #firing: Promise<void> = Promise.resolve();

  constructor(options: { host: Host; store?: Store | undefined; fire: (timer: ArmedTimer) => void }) {
    this.#host = options.host;
    this.#store = options.store;
    this.#fire = options.fire;
  }

  /** Arms what an earlier process has left. */
  async open(): Promise<void> {
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
    return this.#fired.has(id) ? false : await this.#remove(id);
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
      delay = earliest === undefined ? Number.POSITIVE_INFINITY : earliest - this.#host.now();
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
        if (!this.#fired.has(timer.id)) this.#fire(timer);
        this.#fired.add(timer.id);
        fired++;
        await this.#remove(timer.id);
        this.#fired.delete(timer.id);
      }
    } catch {
      // What has fired is remembered, so it does not fire again here; its row is removed with the next try.
      fired = 0;
    }
    // What is overdue and did not fire is another's, or the store failed.
    await this.#rearm(fired === 0 ? TIMER_RETRY_MS : 0);
  }

  async #due(now: number): Promise<ArmedTimer[]> {
    if (this.#store) {
      const rows = await this.#store.dueRows(now, TIMERS_FIRED_MAX);
      return rows.filter(({ kind }) => kind === KIND).map(({ key, dueAtMs, data }) => ({ id: key, dueAtMs, data }));
    }
    return [...this.#armed.values()].filter(({ dueAtMs }) => dueAtMs <= now).sort((a, b) => a.dueAtMs - b.dueAtMs);
  }
}
