/**
 * Decides how many lines of a connection are taken at once. A burst is answered before the next is taken, so that a
 * client can use the first answers early, and a flooding client delays others only by a small burst.
 *
 * A single active connection gets growing bursts; after a wait for bytes it starts small, because both sides have taken
 * turns. While others are active, it gets about as much as the smallest of them uses. SPEC: N2, N15.
 */
import { BURSTS_SHARED_AFTER, LINES_A_BURST_ALONE, LINES_A_BURST_MIN, LINES_A_BURST_SHARED } from "../limits.ts";

/** Growth factor of bursts of a single connection: doubling would cause more writes for the same wait. */
const GROWTH = 4;

export class FairShare {
  /** The connection of the last burst. */
  #last: object | undefined;
  /** Consecutive bursts that one connection must take until it counts as alone. */
  #untilAlone = 0;
  /** The next burst of a single connection. */
  #alone = LINES_A_BURST_ALONE;
  /**
   * The connection with the smallest recent burst, its number of lines, and for how many foreign bursts it is
   * remembered.
   */
  #modest: object | undefined;
  #fewest = LINES_A_BURST_SHARED;
  #fewestFor = 0;

  /**
   * Lines that a connection may take now, before they are answered and others run. `taken` of `allowed` lines were used
   * in its last burst; `waited` is true if it was idle until the bytes came.
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
    // A connection that used its whole allowance may have wanted more, so it does not count as small.
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
