/**
 * `ls timers`: rows of the due table, earliest first, from the file.
 */
import { systemHost } from "../host/system-host.ts";
import { type KernelStore, openStoreForReading } from "../kernel/open-store.ts";
import type { Json, JsonObject } from "../message/json.ts";
import { existingStore } from "./database-file.ts";
import { type Listing, readLimit } from "./listing.ts";

type DueRow = Awaited<ReturnType<KernelStore["dueRows"]>>[number];

/** Rows for the slots of extensions' schedules. */
const SCHEDULE_KIND = "schedule";
/** Rows of singletons, which wait for no time. */
const OWNER_KIND = "owner";
/** Rows of timers that have fired and are not known to be handled. */
const FIRED_KIND = "timer-fired";
/** The last time of a JavaScript date: later rows wait for no time. */
const DATE_MS_MAX = 8_640_000_000_000_000;

export const timers: Listing<DueRow> = {
  head: ["id", "due", "kind", "sends", ""],
  takes: ["limit"],
  find: async (call) => {
    await using store = await openStoreForReading(systemHost(), existingStore(undefined, call.environment));
    const limit = readLimit(call);
    const all = await store.dueRows(Number.MAX_SAFE_INTEGER, limit);
    const schedules = (await store.dueRows(Number.MAX_SAFE_INTEGER, limit, SCHEDULE_KIND)).map(atItsSlot);
    const others = all.filter(({ kind }) => kind !== SCHEDULE_KIND && kind !== OWNER_KIND);
    return [...others, ...schedules].sort((a, b) => a.dueAtMs - b.dueAtMs).slice(0, limit);
  },
  cells: (row) => [row.key, dueText(row), row.kind, messageText(timerData(row)), repeatText(timerData(row))],
};

/** A schedule has no deadline in the table; it waits for its slot, unless it runs. */
export function atItsSlot(row: DueRow): DueRow {
  const { slotMs, hold } = (row.data ?? {}) as { slotMs?: number; hold?: Json };
  return slotMs === undefined || hold ? row : { ...row, dueAtMs: slotMs };
}

/** The deadline in the row of a firing is that of its kernel's claim. */
export function dueText({ kind, dueAtMs }: Pick<DueRow, "kind" | "dueAtMs">): string {
  return kind !== FIRED_KIND && dueAtMs <= DATE_MS_MAX ? new Date(dueAtMs).toISOString() : "fired";
}

/** The timer's own data: the row of a firing has it beside its owner. */
function timerData({ kind, data }: DueRow): Json {
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
