/**
 * Corrects delays after the wall clock was set back. A delay is kept as a deadline of the wall clock, so that it
 * survives the process. If the clock was ahead when the timer was set, the deadline is too late by the step; the
 * monotonic clock shows by how much. A step forward cannot be told from a machine that slept, so it is not corrected.
 * SPEC: T16.
 */
import type { Host } from "../host/host.ts";
import { CLOCK_STEP_MS, TIMERS_FIRED_MAX, TIMERS_REFIRED_MAX } from "../limits.ts";
import type { DueChange } from "../store/due.ts";
import { type ArmedTimer, armed, type ClockReading, TIMER_KIND, type TimerRows, timerIn } from "../work/timer-row.ts";

export interface ClockStepsParts {
  readonly host: Host;
  readonly rows: TimerRows;
  /** Names the readings of this process. */
  readonly table: string;
}

export class ClockSteps {
  readonly #parts: ClockStepsParts;
  /** The greatest offset since the last correction. */
  #offsetMs: number;

  constructor(parts: ClockStepsParts) {
    this.#parts = parts;
    this.#offsetMs = this.#offsetNow;
  }

  get reading(): ClockReading {
    this.#offsetMs = Math.max(this.#offsetMs, this.#offsetNow);
    return { table: this.#parts.table, offsetMs: this.#offsetNow };
  }

  get #offsetNow(): number {
    const { host, rows } = this.#parts;
    return Math.round(rows.now() - host.monotonic());
  }

  /**
   * Moves the deadlines of this process's delays that were set by a clock that was ahead. Reads rows only after the
   * clock was set back.
   */
  async correct(): Promise<void> {
    const { rows, table } = this.#parts;
    const offsetMs = this.#offsetNow;
    this.#offsetMs = Math.max(this.#offsetMs, offsetMs);
    if (offsetMs > this.#offsetMs - CLOCK_STEP_MS) return;
    const late: DueChange[][] = [];
    for (const row of await rows.dueRows(Number.MAX_SAFE_INTEGER, TIMERS_REFIRED_MAX, TIMER_KIND)) {
      const timer = timerIn(row);
      const { clock } = timer.data;
      if (clock?.table !== table || clock.offsetMs - offsetMs < CLOCK_STEP_MS) continue;
      late.push([
        { op: "take", kind: TIMER_KIND, key: row.key, was: row.data },
        armed(corrected(timer, clock, offsetMs)),
      ]);
    }
    // A timer that is gone ends a write: each of the others is then tried by itself.
    for (let from = 0; from < late.length; from += TIMERS_FIRED_MAX) {
      const step = late.slice(from, from + TIMERS_FIRED_MAX);
      const done = await rows.changeDue(step.flat());
      for (const [at, changes] of step.entries()) if (!done[2 * at]) await rows.changeDue(changes);
    }
    this.#offsetMs = offsetMs;
  }
}

function corrected({ id, dueAtMs, data }: ArmedTimer, clock: ClockReading, offsetMs: number): ArmedTimer {
  return { id, dueAtMs: dueAtMs + offsetMs - clock.offsetMs, data: { ...data, clock: { ...clock, offsetMs } } };
}
