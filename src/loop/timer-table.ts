/**
 * What is armed: in memory, or in the store's due table so that it survives the process. One host timer waits for the earliest.
 *
 * A durable row goes only after what it fires has been handed to the loop: a crash in between fires it again, with the same message
 * id, which receipts make harmless. Timers never fire early; equal deadlines fire in the order they were set.
 */
import type { Host, Timer } from "../host/host.ts";
import { TIMER_CHUNK_MS } from "../limits.ts";
import type { Json } from "../message/json.ts";
import type { Store } from "../store/store.ts";

export interface ArmedTimer {
  readonly id: string;
  readonly dueAtMs: number;
  readonly data: Json;
}

/** Rows that are fired in one go. */
const FIRED_AT_ONCE_MAX = 100;
const KIND = "timer";

export class TimerTable {
  readonly #host: Host;
  readonly #store: Store | undefined;
  readonly #fire: (timer: ArmedTimer) => void;
  /** Without a store: in the order set. */
  readonly #armed = new Map<string, ArmedTimer>();
  #wake: Timer | undefined;
  #closed = false;
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
    if (this.#store)
      await this.#store.changeDue([{ op: "put", kind: KIND, key: timer.id, dueAtMs: timer.dueAtMs, data: timer.data }]);
    else this.#armed.set(timer.id, timer);
    await this.#rearm();
  }

  /** True when it was armed and will not fire. */
  async cancel(id: string): Promise<boolean> {
    if (!this.#store) return this.#armed.delete(id);
    const [cancelled = false] = await this.#store.changeDue([{ op: "cancel", kind: KIND, key: id }]);
    return cancelled;
  }

  get size(): number {
    return this.#armed.size;
  }

  close(): void {
    this.#closed = true;
    this.#wake?.cancel();
  }

  async #rearm(): Promise<void> {
    const earliest = this.#store ? await this.#store.earliestDue() : this.#earliestInMemory();
    this.#wake?.cancel();
    this.#wake = undefined;
    if (earliest === undefined || this.#closed) return;
    const delay = Math.min(Math.max(0, earliest - this.#host.now()), TIMER_CHUNK_MS);
    this.#wake = this.#host.timer(delay, () => {
      this.#firing = this.#firing.then(() => this.#fireDue());
    });
  }

  #earliestInMemory(): number | undefined {
    let earliest: number | undefined;
    for (const { dueAtMs } of this.#armed.values())
      if (earliest === undefined || dueAtMs < earliest) earliest = dueAtMs;
    return earliest;
  }

  async #fireDue(): Promise<void> {
    if (this.#closed) return;
    const now = this.#host.now();
    for (const timer of await this.#due(now)) {
      this.#fire(timer);
      await this.cancel(timer.id);
    }
    await this.#rearm();
  }

  async #due(now: number): Promise<ArmedTimer[]> {
    if (this.#store) {
      const rows = await this.#store.dueRows(now, FIRED_AT_ONCE_MAX);
      return rows.filter(({ kind }) => kind === KIND).map(({ key, dueAtMs, data }) => ({ id: key, dueAtMs, data }));
    }
    return [...this.#armed.values()].filter(({ dueAtMs }) => dueAtMs <= now).sort((a, b) => a.dueAtMs - b.dueAtMs);
  }
}
