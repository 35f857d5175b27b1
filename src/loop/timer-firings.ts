/**
 * Firings on their way: each is sent until it is handled, or in the journal; then its row of the due table goes.
 *
 * ```
 *   send ──> sending ──handled, or in the journal──> forgotten, together with others
 *               ├──refused for the moment (503)──> sent again, after twice as long each time
 *               └──withdrawn──> forgotten
 * ```
 * While a firing is sent its row is renewed. A kernel that dies stops renewing, and another one takes the firing over.
 * SPEC: T6, T9, T12.
 */
import type { Host, Timer } from "../host/host.ts";
import { pause } from "../host/pause.ts";
import { TIMER_MARK_MS, TIMER_MARKS_STEP, TIMER_RETRY_MAX_MS, TIMER_RETRY_MS } from "../limits.ts";
import type { DueChange } from "../store/due.ts";
import { FIRED_KIND, type Firing, marked } from "../work/timer-row.ts";

export interface FiringsParts {
  readonly host: Host;
  readonly changeDue: (changes: readonly DueChange[]) => Promise<unknown>;
  /** The time by the clock of the rows. */
  readonly now: () => number;
  /** Identifies the table in its rows. */
  readonly owner: string;
  /** Announces a firing before its message; throws if the loop is full. */
  readonly tell: (firing: Firing) => Promise<void>;
  /** Sends its message; rejects if the loop is full. */
  readonly fire: (firing: Firing) => Promise<void>;
}

interface Sending {
  readonly firing: Firing;
  /** Announced, with the loop, or waiting to be sent again. */
  phase: "announced" | "relayed" | "paused";
  isWithdrawn: boolean;
  /** When its row was written last, by the monotonic clock. */
  markedAt: number;
}

export class TimerFirings {
  readonly #parts: FiringsParts;
  readonly #sending = new Map<string, Sending>();
  /** How many firings of each timer are sent. */
  readonly #ofTimer = new Map<string, number>();
  /** Firings to be removed with the next write. */
  #over: string[] = [];
  #isForgetting = false;
  #renewal: Timer | undefined;
  /** Firings that wait to be sent again. */
  #pausing = 0;
  #closed = false;

  constructor(parts: FiringsParts) {
    this.#parts = parts;
  }

  get pausing(): number {
    return this.#pausing;
  }

  has(firingId: string): boolean {
    return this.#sending.has(firingId);
  }

  countOf(timerId: string): number {
    return this.#ofTimer.get(timerId) ?? 0;
  }

  send(firing: Firing): void {
    if (this.#sending.has(firing.id)) return;
    const markedAt = this.#parts.host.monotonic();
    const sending: Sending = { firing, phase: "announced", isWithdrawn: false, markedAt };
    this.#sending.set(firing.id, sending);
    this.#count(firing.timerId, 1);
    this.#renewLater();
    void this.#sendOn(sending);
  }

  /** Stops the firings of a timer that are not with the loop, and counts them; `relayed` are with the loop. */
  withdraw(timerId: string): { readonly stopped: number; readonly relayed: readonly Firing[] } {
    let stopped = 0;
    const relayed: Firing[] = [];
    if (this.countOf(timerId) === 0) return { stopped, relayed };
    for (const sending of this.#sending.values()) {
      if (sending.firing.timerId !== timerId || sending.isWithdrawn) continue;
      if (sending.phase === "relayed") relayed.push(sending.firing);
      else stopped++;
      sending.isWithdrawn = sending.phase !== "relayed";
    }
    return { stopped, relayed };
  }

  close(): void {
    this.#closed = true;
    this.#renewal?.cancel();
  }

  async #sendOn(sending: Sending): Promise<void> {
    const { firing } = sending;
    let isTold = false;
    await this.#persist(async () => {
      // Once: a second announcement could take the place in the lane that the message needs.
      if (!isTold && !sending.isWithdrawn) await this.#parts.tell(firing);
      isTold = true;
      if (sending.isWithdrawn) return;
      sending.phase = "relayed";
      try {
        await this.#parts.fire(firing);
      } catch (error) {
        sending.phase = "paused";
        throw error;
      }
    });
    // Unfinished firings of a closed table are left to the next kernel.
    if (this.#closed) return;
    this.#sending.delete(firing.id);
    this.#count(firing.timerId, -1);
    this.#forget(firing.id);
  }

  #count(timerId: string, more: number): void {
    const count = this.countOf(timerId) + more;
    if (count > 0) this.#ofTimer.set(timerId, count);
    else this.#ofTimer.delete(timerId);
  }

  /**
   * Rows go together: firings of one batch end in one turn, and each write takes those that ended during the write
   * before.
   */
  #forget(firingId: string): void {
    this.#over.push(firingId);
    if (this.#isForgetting) return;
    this.#isForgetting = true;
    this.#parts.host.task(() => void this.#forgetAll());
  }

  async #forgetAll(): Promise<void> {
    while (this.#over.length > 0 && !this.#closed) {
      const ids = this.#over.splice(0, TIMER_MARKS_STEP);
      const changes = ids.map((key) => ({ op: "cancel", kind: FIRED_KIND, key }) as const);
      await this.#persist(() => this.#parts.changeDue(changes));
    }
    this.#isForgetting = false;
  }

  #renewLater(): void {
    if (this.#closed) return;
    this.#renewal ??= this.#parts.host.timer(TIMER_MARK_MS / 2, () => void this.#renew(), { keepAlive: false });
  }

  async #renew(): Promise<void> {
    const { host, owner, changeDue, now } = this.#parts;
    const before = host.monotonic() - TIMER_MARK_MS / 4;
    const old = [...this.#sending.values()].filter(({ markedAt }) => markedAt <= before);
    for (let from = 0; from < old.length && !this.#closed; from += TIMER_MARKS_STEP) {
      const step = old.slice(from, from + TIMER_MARKS_STEP).filter(({ firing }) => this.has(firing.id));
      const nowMs = now();
      for (const sending of step) sending.markedAt = host.monotonic();
      // A row that is not renewed may be sent by another kernel too, under the same message id.
      await changeDue(step.map(({ firing }) => marked(firing, owner, nowMs))).catch(() => undefined);
    }
    this.#renewal = undefined;
    if (this.#sending.size > 0) this.#renewLater();
  }

  /** Repeats an action that fails, after twice as long each time, while the table is open. */
  async #persist(action: () => Promise<unknown>): Promise<void> {
    for (let pauseMs = TIMER_RETRY_MS; !this.#closed; pauseMs = Math.min(2 * pauseMs, TIMER_RETRY_MAX_MS)) {
      try {
        await action();
        return;
      } catch {
        this.#pausing++;
        await pause(this.#parts.host, pauseMs);
        this.#pausing--;
      }
    }
  }
}
