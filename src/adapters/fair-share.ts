/**
 * How much of a connection's input is taken at once. What is taken is answered before more is taken: so a client goes to work on the first
 * answers while the kernel is at the next, and one that floods makes the others wait for a little of its work and not for all of it.
 *
 * A connection that is alone gets more from burst to burst; where bytes had to be waited for, it begins with a few, because then both sides
 * have taken turns. While others ask as well, it gets about as much as the most modest of them takes. SPEC: N2, N15.
 */
import { BURSTS_SHARED_AFTER, LINES_A_BURST_ALONE, LINES_A_BURST_MIN, LINES_A_BURST_SHARED } from "../limits.ts";

/** How much larger the next burst of one that is alone is: twice would be more writes, for the same wait. */
const GROWTH = 4;

export class FairShare {
  /** Who took a burst last. */
  #last: object | undefined;
  /** Bursts that one connection must take in a row until it counts as alone. */
  #untilAlone = 0;
  /** What one that is alone may take next. */
  #alone = LINES_A_BURST_ALONE;
  /** Who asked least at a time of late, with how many lines that was, and for how many bursts of others it is remembered. */
  #modest: object | undefined;
  #fewest = LINES_A_BURST_SHARED;
  #fewestFor = 0;

  /**
   * Lines that a connection may take now, before they are answered and the others get in. Of the burst before, it took so many of so
   * many; `waited` where it had nothing to do until the bytes for this one came.
   */
  burstFor(connection: object, taken: number, allowed: number, waited: boolean): number {
    if (this.#last !== connection) this.#untilAlone = BURSTS_SHARED_AFTER;
    else if (this.#untilAlone > 0) this.#untilAlone--;
    this.#last = connection;
    this.#compare(connection, taken, allowed);
    if (this.#untilAlone === 0) return this.#grown(waited);
    return this.#modest === connection ? LINES_A_BURST_SHARED : Math.max(this.#fewest, LINES_A_BURST_MIN);
  }

  #grown(waited: boolean): number {
    this.#alone = waited ? LINES_A_BURST_MIN : Math.min(this.#alone * GROWTH, LINES_A_BURST_ALONE);
    return this.#alone;
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
