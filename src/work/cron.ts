/**
 * When a cron expression next comes due. The arithmetic of calendars and time zones is croner's; it is given the time
 * and sets no timer of its own, so that schedules follow the host's clock. SPEC: T8.
 *
 * Five fields (minute, hour, day, month, weekday), or six with seconds first, or seven with years last; `@daily` and
 * its like. In UTC unless a time zone is named: the same expression means the same moments on every machine. Where
 * clocks go forward, a time that is skipped comes at the first moment after; where they go back, a time that comes
 * twice counts once.
 */

import { Cron } from "croner";
import { CRON_LENGTH_MAX } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import { show } from "../message/problem.ts";

/** The mistake in an expression or its time zone, or undefined. An expression that never comes due is a mistake too. */
export function cronProblem(expression: unknown, timezone?: unknown): string | undefined {
  if (typeof expression !== "string" || expression.trim() === "" || expression.length > CRON_LENGTH_MAX)
    return `cron: must be an expression of at most ${CRON_LENGTH_MAX} characters, like 0 9 * * 1-5; got ${show(expression)}`;
  if (expression.includes(":"))
    return `cron: ${show(expression)} is a date; use Timer.Set with dueAt for a single moment`;
  if (timezone !== undefined && !isTimeZone(timezone))
    return `timezone: must be the name of a time zone, like Europe/Berlin; got ${show(timezone)}`;
  try {
    if (nextOccurrence(expression, 0, timezone) !== undefined) return undefined;
  } catch (thrown) {
    const reason = thrownText(thrown).replace(/^CronPattern: /, "");
    return `cron: ${show(expression)} is not a schedule: ${reason}`;
  }
  return `cron: ${show(expression)} never comes due`;
}

/**
 * The first moment after `afterMs` that fits, in milliseconds since 1970; undefined when there is none. Throws for a
 * mistake that `cronProblem` names.
 */
export function nextOccurrence(expression: string, afterMs: number, timezone = "UTC"): number | undefined {
  return next(new Cron(expression, { paused: true, timezone }), new Date(afterMs))?.getTime();
}

/** `nextRun` also reads the clock. The function below it is given the time, so that simulations stay reproducible. */
function next(schedule: Cron, after: Date): Date | null {
  const target: unknown = schedule["_nextTarget"];
  if (typeof target !== "function") return schedule.nextRun(after);
  return target.call(schedule, after, after) as Date | null;
}

function isTimeZone(name: unknown): name is string {
  if (typeof name !== "string") return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    // The one way to ask the platform whether it knows a zone.
    return false;
  }
}
