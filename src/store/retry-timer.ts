/**
 * Repeats failed work after a delay. Several failures during the delay cause one retry, and the delay doubles with each
 * failure in a row up to a maximum. The timer does not keep the process alive. SPEC: S64, S69.
 *
 * The caller decides whether the work is still needed.
 */
import { backoffMs } from "../host/backoff.ts";
import type { Host, Timer } from "../host/host.ts";
import { StoreError } from "./store.ts";

export class RetryTimer {
  readonly #host: Host;
  readonly #work: () => void;
  readonly #startMs: number;
  readonly #maxMs: number;
  /** Failures in a row. */
  #failures = 0;
  #timer: Timer | undefined;
  #closed = false;

  constructor(host: Host, work: () => void, { startMs, maxMs }: { readonly startMs: number; readonly maxMs: number }) {
    this.#host = host;
    this.#work = work;
    this.#startMs = startMs;
    this.#maxMs = maxMs;
  }

  /** No retry after the store has closed or stopped. */
  failed(error: unknown): void {
    if (this.#closed || this.#timer !== undefined || hasEnded(error)) return;
    const work = () => {
      this.#timer = undefined;
      this.#work();
    };
    const delayMs = backoffMs(++this.#failures, { startMs: this.#startMs, maxMs: this.#maxMs });
    this.#timer = this.#host.timer(delayMs, work, { keepAlive: false });
  }

  succeeded(): void {
    this.#failures = 0;
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }
}

function hasEnded(error: unknown): boolean {
  return error instanceof StoreError && (error.code === "STORE_CLOSED" || error.code === "STORE_STOPPED");
}
