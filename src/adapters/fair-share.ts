/**
 * How much of a connection's input is taken at once: all that may be in flight while it is alone, a little while others ask as well. What
 * is taken is answered before more is taken, so a client that floods makes the others wait for a little of its work and not for all
 * of it. SPEC: N2, N15.
 */
import { BURSTS_SHARED_AFTER, LINES_A_BURST_ALONE, LINES_A_BURST_SHARED } from "../limits.ts";

export class FairShare {
  /** Who took a burst last. */
  #last: object | undefined;
  /** Bursts that one connection must take in a row until it counts as alone. */
  #untilAlone = 0;

  /** Lines that a connection may take now, before the others get in. */
  burstFor(connection: object): number {
    if (this.#last !== connection) this.#untilAlone = BURSTS_SHARED_AFTER;
    else if (this.#untilAlone > 0) this.#untilAlone--;
    this.#last = connection;
    return this.#untilAlone > 0 ? LINES_A_BURST_SHARED : LINES_A_BURST_ALONE;
  }
}
