/**
 * A time limit for work in progress, counted from its creation and shared by all waits. It does not cancel the work;
 * the waiting code continues without it.
 */
import { type Host, requireDelay } from "./host.ts";

export class Grace {
  readonly ms: number;
  readonly #host: Host;
  readonly #until: number;

  constructor(host: Host, ms: number) {
    requireDelay(ms);
    this.ms = ms;
    this.#host = host;
    this.#until = host.monotonic() + ms;
  }

  /** The remaining time. */
  get leftMs(): number {
    return Math.max(0, this.#until - this.#host.monotonic());
  }

  /** Waits for work at most for the remaining time or `leastMs`; returns false if it did not finish. */
  async outlasts(work: Promise<unknown>, leastMs = 0): Promise<boolean> {
    const { promise: over, resolve } = Promise.withResolvers<boolean>();
    const timer = this.#host.timer(Math.max(this.leftMs, leastMs), () => resolve(false));
    try {
      return await Promise.race([work.then(() => true), over]);
    } finally {
      timer.cancel();
    }
  }
}
