/**
 * Schedules: a transaction at each slot of a cron expression, once a slot in all processes of the store. SPEC: A20-A22.
 */
import type { AppTx } from "./request.ts";

/** Options of `cron`. */
export interface CronOptions {
  /** Name of a time zone, like `Europe/Berlin`; UTC unless given. */
  readonly timezone?: string;
  /** `once`: slots that passed while no kernel ran are made up for by one run. `skip`, the default: they are not. */
  readonly missed?: "once" | "skip";
}

/** One due time of a schedule. */
export interface Slot {
  /** When the slot was due, in milliseconds since 1970. */
  readonly at: number;
}

export type ScheduleHandler = (slot: Slot, tx: AppTx) => unknown;

/** A schedule of an app. Made by `cron`. */
export class ScheduleDefinition {
  readonly pattern: string;
  readonly handler: ScheduleHandler;
  readonly options: CronOptions;

  constructor(pattern: string, handler: ScheduleHandler, options: CronOptions) {
    this.pattern = pattern;
    this.handler = handler;
    this.options = options;
  }
}

/** Runs a transaction at each slot: `cron("0 9 * * *", ({ at }, tx) => …, { timezone: "Europe/Berlin" })`. */
export function cron(pattern: string, handler: ScheduleHandler, options: CronOptions = {}): ScheduleDefinition {
  return new ScheduleDefinition(pattern, handler, options);
}
