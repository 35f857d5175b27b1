/**
 * A time that work under way is given to finish: counted from when it is made, shared by all that is waited for one after the other. It ends
 * no work; who waits goes on without it.
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

  /** What is left of it. */
  get leftMs(): number {
    return Math.max(0, this.#until - this.#host.monotonic());
  }

  /** Waits for work, and no longer than the grace lasts, or `leastMs`; false if it was not over by then. */
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
