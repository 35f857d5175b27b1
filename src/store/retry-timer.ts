/**
 * Repeats failed work after a delay. Several failures during the delay cause one retry, and the delay doubles with each
 * failure in a row up to a maximum. The timer does not keep the process alive. SPEC: S64, S69.
 *
 * The caller decides whether the work is still needed.
 */
import type { Host, Timer } from "../host/host.ts";
import { StoreError } from "./store.ts";

export class RetryTimer {
  readonly #host: Host;
  readonly #work: () => void;
  readonly #startMs: number;
  readonly #maxMs: number;
  #nextMs: number;
  #timer: Timer | undefined;
  #closed = false;

  constructor(host: Host, work: () => void, { startMs, maxMs }: { readonly startMs: number; readonly maxMs: number }) {
    this.#host = host;
    this.#work = work;
    this.#startMs = startMs;
    this.#maxMs = maxMs;
    this.#nextMs = startMs;
  }

  /** No retry after the store has closed or stopped. */
  failed(error: unknown): void {
    if (this.#closed || this.#timer !== undefined || hasEnded(error)) return;
    const work = () => {
      this.#timer = undefined;
      this.#work();
    };
    this.#timer = this.#host.timer(this.#nextMs, work, { keepAlive: false });
    this.#nextMs = Math.min(this.#nextMs * 2, this.#maxMs);
  }

  succeeded(): void {
    this.#nextMs = this.#startMs;
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }
}

function hasEnded(error: unknown): boolean {
  return error instanceof StoreError && (error.code === "STORE_CLOSED" || error.code === "STORE_STOPPED");
}
