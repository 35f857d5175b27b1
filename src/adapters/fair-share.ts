/**
 * How much of a connection's input is taken at once: all that may be in flight while it is alone; while others ask as well, about as much
 * as the most modest of them takes. What is taken is answered before more is taken, so a client that floods makes the others wait for
 * a little of its work and not for all of it. SPEC: N2, N15.
 */
import { BURSTS_SHARED_AFTER, LINES_A_BURST_ALONE, LINES_A_BURST_SHARED, LINES_A_BURST_SHARED_MIN } from "../limits.ts";

export class FairShare {
  /** Who took a burst last. */
  #last: object | undefined;
  /** Bursts that one connection must take in a row until it counts as alone. */
  #untilAlone = 0;
  /** Who asked least at a time of late, with how many lines that was, and for how many bursts of others it is remembered. */
  #modest: object | undefined;
  #fewest = LINES_A_BURST_SHARED;
  #fewestFor = 0;

  /** Lines that a connection may take now, before the others get in. Of the burst before, it took so many of so many. */
  burstFor(connection: object, taken: number, allowed: number): number {
    if (this.#last !== connection) this.#untilAlone = BURSTS_SHARED_AFTER;
    else if (this.#untilAlone > 0) this.#untilAlone--;
    this.#last = connection;
    this.#compare(connection, taken, allowed);
    if (this.#untilAlone === 0) return LINES_A_BURST_ALONE;
    return this.#modest === connection ? LINES_A_BURST_SHARED : Math.max(this.#fewest, LINES_A_BURST_SHARED_MIN);
  }

  #compare(connection: object, taken: number, allowed: number): void {
    // Who took all that it was allowed may have wanted more: that is no modesty.
    if (taken < allowed && (taken <= this.#fewest || this.#modest === connection)) {
      this.#modest = connection;
      this.#fewest = Math.min(taken, LINES_A_BURST_SHARED);
      this.#fewestFor = BURSTS_SHARED_AFTER;
    } else if (this.#modest === connection || --this.#fewestFor <= 0) {
      this.#modest = undefined;
      this.#fewest = LINES_A_BURST_SHARED;
    }
  }
}
