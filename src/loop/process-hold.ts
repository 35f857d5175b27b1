/**
 * Keeps the process running while the loop is alive (RFC 0032 §16): a request that waits for a promise, or an adapter
 * that holds no handle of the runtime, would let it end. Checked when the lanes come to rest, when adapters come and
 * go, and once a second. SPEC: L95.
 */
import type { Host, Timer } from "../host/host.ts";
import { HOLD_LOOK_MS } from "../limits.ts";

export class ProcessHold {
  readonly #host: Host;
  readonly #isAlive: () => boolean;
  #timer: Timer | undefined;
  #isOver = false;

  constructor(host: Host, isAlive: () => boolean) {
    this.#host = host;
    this.#isAlive = isAlive;
  }

  check(): void {
    if (!this.#isOver && this.#isAlive()) this.#timer ??= this.#host.timer(HOLD_LOOK_MS, this.#look);
    else this.#release();
  }

  end(): void {
    this.#isOver = true;
    this.#release();
  }

  readonly #look = (): void => {
    this.#timer = undefined;
    this.check();
  };

  #release(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
