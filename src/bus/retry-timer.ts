/**
 * One timer for the earliest delivery that waits for its next attempt. When it fires, the store makes due rows
 * claimable. SPEC: J61. Attempts that another process has put off are found by the poll, should that process be gone.
 */
import type { Host, Timer } from "../host/host.ts";
import { TIMER_DELAY_MS_MAX } from "../limits.ts";
import { fromError } from "../message/error-data.ts";
import type { Store } from "../store/store.ts";
import type { BusObserver } from "./observation.ts";

export class RedeliveryTimer {
  readonly #host: Host;
  readonly #store: Store;
  readonly #observe: BusObserver;
  #armed: { readonly atMs: number; readonly timer: Timer } | undefined;
  #running = false;
  /** Told when events have become claimable. */
  onReleased: () => void = () => {};

  constructor(parts: { host: Host; store: Store; observe: BusObserver }) {
    this.#host = parts.host;
    this.#store = parts.store;
    this.#observe = parts.observe;
  }

  async start(): Promise<void> {
    this.#running = true;
    await this.release();
  }

  stop(): void {
    this.#running = false;
    this.#armed?.timer.cancel();
    this.#armed = undefined;
  }

  /** An event is due again at a time. */
  note(atMs: number): void {
    if (!this.#running || (this.#armed !== undefined && this.#armed.atMs <= atMs)) return;
    this.#armed?.timer.cancel();
    const delayMs = Math.min(Math.max(0, atMs - this.#store.now()), TIMER_DELAY_MS_MAX);
    const timer = this.#host.timer(delayMs, () => {
      this.#armed = undefined;
      void this.release();
    });
    this.#armed = { atMs, timer };
  }

  /** Makes due rows claimable. A store that cannot do it now is asked again by the next poll. */
  async release(): Promise<void> {
    if (!this.#running) return;
    try {
      const { released, nextAtMs } = await this.#store.releaseRetries(this.#store.now());
      if (nextAtMs !== undefined) this.note(nextAtMs);
      if (released > 0) this.onReleased();
    } catch (error) {
      this.#observe({ kind: "store-trouble", doing: "releasing retries", error: fromError(error).message });
    }
  }
}
