/**
 * How many claimed events may wait in this process for a handler. SPEC: J67.
 *
 * Many, while handlers are fast: then events are claimed as they are written and not read back. Few, while handlers are
 * slow: another process could handle the waiting events. So the bound is halved for each second that an event has
 * waited. It doubles after it has turned an event away.
 */
import { EVENT_WAIT_MS_MAX, EVENTS_WAITING_MAX } from "../limits.ts";

/** Enough for every bound. */
const MOST_HALVINGS = 16;

export class WaitingBound {
  readonly #min: number;
  readonly #max: number;
  #limit: number;
  /** An event was turned away since the last change. */
  #wanted = false;

  /** Never below the number of handlers that run at once. */
  constructor(min: number, max = EVENTS_WAITING_MAX) {
    this.#min = min;
    this.#max = Math.max(min, max);
    this.#limit = this.#max;
  }

  get limit(): number {
    return this.#limit;
  }

  turnedAway(): void {
    this.#wanted = true;
  }

  /** No event waits any more. */
  ranDry(): void {
    if (!this.#wanted) return;
    this.#wanted = false;
    this.#limit = Math.min(this.#max, this.#limit * 2);
  }

  /** The event that has waited longest has waited so long. */
  waited(ms: number): void {
    if (ms <= EVENT_WAIT_MS_MAX) return;
    this.#wanted = false;
    const halvings = Math.min(Math.floor(ms / EVENT_WAIT_MS_MAX), MOST_HALVINGS);
    this.#limit = Math.max(this.#min, this.#limit >> halvings);
  }
}
