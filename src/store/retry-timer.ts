/**
 * Does something again a while after it has failed. However often it fails meanwhile it is done once, and each time in a row it is waited
 * twice as long, up to a maximum. Nobody is kept alive by it. SPEC: S64, S69.
 *
 * Not here: what failed, and whether it is still of use to anybody; whoever does it knows.
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

  /** Nothing to do again where the store will say nothing any more. */
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
