/**
 * `ls timers`: rows of the due table, earliest first, from the file.
 */
import { systemHost } from "../host/system-host.ts";
import { openStoreForReading } from "../kernel/open-store.ts";
import { type TimerView, timerViews } from "../kernel/state-views.ts";
import type { Json, JsonObject } from "../message/json.ts";
import { existingStore } from "./database-file.ts";
import { type Listing, readLimit } from "./listing.ts";

/** Rows of timers that have fired and are not known to be handled. */
const FIRED_KIND = "timer-fired";
/** The last time of a JavaScript date: later rows wait for no time. */
const DATE_MS_MAX = 8_640_000_000_000_000;

export const timers: Listing<TimerView> = {
  head: ["id", "due", "kind", "sends", ""],
  takes: ["limit"],
  find: async (call) => {
    await using store = await openStoreForReading(systemHost(), existingStore(undefined, call.environment));
    return await timerViews(store, readLimit(call));
  },
  cells: (row) => [row.key, dueText(row), row.kind, messageText(timerData(row)), repeatText(timerData(row))],
};

/** The deadline in the row of a firing is that of its kernel's claim. */
export function dueText({ kind, dueAtMs }: Pick<TimerView, "kind" | "dueAtMs">): string {
  return kind !== FIRED_KIND && dueAtMs <= DATE_MS_MAX ? new Date(dueAtMs).toISOString() : "fired";
}

/** The timer's own data: the row of a firing has it beside its owner. */
function timerData({ kind, data }: TimerView): Json {
  return kind === FIRED_KIND ? ((data as { data?: Json } | null)?.data ?? null) : data;
}

/** The message of a timer, or the action of a schedule; other kinds of due rows have other data. */
function messageText(data: Json): string {
  const { template, does } = (data ?? {}) as { template?: { kind?: string; type?: string }; does?: string };
  return template ? `${template.kind} ${template.type}` : (does ?? "");
}

function repeatText(data: Json): string {
  const { schedule, cron, timezone } = (data ?? {}) as { schedule?: JsonObject; cron?: string; timezone?: string };
  if (cron !== undefined) return JSON.stringify({ cron, ...(timezone ? { timezone } : {}) });
  return schedule === undefined ? "" : JSON.stringify(schedule);
}
