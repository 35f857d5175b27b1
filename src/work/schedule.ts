/**
 * When a repeating timer fires: at equal distances from when it was set, or by a cron expression. Each moment is a
 * slot. The next slot is always after now, so that slots which passed while no kernel ran are one firing, not many.
 * SPEC: T7.
 */
import { TIMER_DELAY_MS_MAX } from "../limits.ts";
import { show } from "../message/problem.ts";
import { cronProblem, nextOccurrence } from "./cron.ts";

export type Schedule = { readonly everyMs: number } | { readonly cron: string; readonly timezone?: string };

/** The first slot after now, of a schedule that has reached slot `slotMs`; undefined when there is none. */
export function nextSlot(schedule: Schedule, slotMs: number, nowMs: number): number | undefined {
  if ("cron" in schedule) return nextOccurrence(schedule.cron, Math.max(slotMs, nowMs), schedule.timezone);
  const { everyMs } = schedule;
  // From slot to slot, so that a late firing does not shift the next ones.
  return slotMs + (Math.floor(Math.max(0, nowMs - slotMs) / everyMs) + 1) * everyMs;
}

export function scheduleProblem(data: { cron?: unknown; everyMs?: unknown; timezone?: unknown }): string | undefined {
  const { cron, everyMs, timezone } = data;
  if ((cron === undefined) === (everyMs === undefined)) return "needs either cron or everyMs";
  if (cron !== undefined) return cronProblem(cron, timezone);
  if (timezone !== undefined) return "timezone: belongs to cron; everyMs is the same in every time zone";
  const fits = Number.isSafeInteger(everyMs) && (everyMs as number) >= 1 && (everyMs as number) <= TIMER_DELAY_MS_MAX;
  return fits ? undefined : `everyMs: must be a whole number of 1 to ${TIMER_DELAY_MS_MAX}, got ${show(everyMs)}`;
}
