/** Bounds of the loop: defaults from `limits.ts`, each of which an option of `boot` replaces. SPEC: L35. */
import {
  LANE_MAX,
  MAILBOX_MAX,
  MICROTASK_DRAIN_MAX,
  TIMER_DELAY_MS_MAX,
  TIMERS_MAX,
  TIMERS_PER_CLIENT_MAX,
} from "../limits.ts";

/** Limits of a loop; a full queue refuses with 503. */
export interface LoopLimits {
  /** Messages that wait in one mailbox. */
  readonly mailboxMax: number;
  /** Messages that wait in one lane. */
  readonly laneMax: number;
  /** Microtasks at the end of one turn; the rest is carried to the next. */
  readonly microtasksMax: number;
}

export interface TimerLimits {
  /** How far ahead a timer may be set: 100 years, or less. */
  readonly timerDelayMsMax: number;
  /** Timers that wait in memory, where there is no store to keep them. */
  readonly timersMax: number;
  /** Timers of one client that wait, in memory or in the store. */
  readonly timersPerClientMax: number;
}

const LOOP_DEFAULTS: LoopLimits = { mailboxMax: MAILBOX_MAX, laneMax: LANE_MAX, microtasksMax: MICROTASK_DRAIN_MAX };
const TIMER_DEFAULTS: TimerLimits = {
  timerDelayMsMax: TIMER_DELAY_MS_MAX,
  timersMax: TIMERS_MAX,
  timersPerClientMax: TIMERS_PER_CLIENT_MAX,
};

export function loopLimits(given: Partial<LoopLimits>): LoopLimits {
  return chosenLimits(LOOP_DEFAULTS, given);
}

export function timerLimits(given: Partial<TimerLimits>): TimerLimits {
  const limits = chosenLimits(TIMER_DEFAULTS, given);
  requireTime("timerDelayMsMax", limits.timerDelayMsMax);
  return limits;
}

/** The given limits, and defaults for the others; throws for an invalid limit. Other properties are ignored. */
export function chosenLimits<Limits extends { readonly [Name in keyof Limits]: number }>(
  defaults: Limits,
  given: Partial<Limits>,
): Limits {
  const limits = { ...defaults };
  for (const name of Object.keys(defaults) as (keyof Limits & string)[]) {
    const value = given[name];
    if (value === undefined) continue;
    requireLimit(name, value);
    limits[name] = value;
  }
  return limits;
}

/** Throws for an invalid limit. */
export function requireLimit(name: string, value: number): void {
  if (Number.isSafeInteger(value) && value >= 1) return;
  throw new RangeError(`${name} must be a whole number of at least 1, got ${value}`);
}

/** Throws for a time that no timer can be set for, so that the mistake shows at boot and not with the first timer. */
export function requireTime(name: string, ms: number): void {
  requireLimit(name, ms);
  if (ms > TIMER_DELAY_MS_MAX)
    throw new RangeError(`${name} must be at most ${TIMER_DELAY_MS_MAX}, which is 100 years`);
}
