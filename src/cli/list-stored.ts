/** `ls documents` and `ls timers`: documents by name, and rows of the due table, read from the store. */
import { systemHost } from "../host/system-host.ts";
import { KERNEL_SPACE } from "../kernel/commit-story.ts";
import { openDocumentNames } from "../kernel/document-names.ts";
import type { KernelStore } from "../kernel/open-store.ts";
import { openStoreForReading } from "../kernel/open-store.ts";
import type { TimerView } from "../kernel/state-views.ts";
import { timerViews } from "../kernel/state-views.ts";
import type { Json, JsonObject } from "../message/json.ts";
import { pathText } from "../message/path.ts";
import { existingStore } from "./database-file.ts";
import type { Listing } from "./listing.ts";
import { readLimit } from "./listing.ts";
import type { VerbCall } from "./verb.ts";
import { UsageError } from "./verb.ts";

/** Longer values are cut. */
const VALUE_CHARACTERS_MAX = 60;

type Loaded = Awaited<ReturnType<KernelStore["load"]>>["documents"][number];

export const documents: Listing<Loaded> = {
  head: ["document", "scope", "sequence", "value", ""],
  takes: ["space", "prefix", "limit"],
  find,
  cells: ({ id, scope, sequence, value, labels }) => [
    ...[id, scope, String(sequence), cut(JSON.stringify(value))],
    labels.map(({ path, labels: names }) => `${pathText(path) || "all of it"} labelled ${names.join(", ")}`).join("; "),
  ],
};

async function find(call: VerbCall): Promise<readonly Loaded[]> {
  const file = existingStore(undefined, call.environment);
  const limit = readLimit(call);
  const space = String(call.options["space"] ?? KERNEL_SPACE);
  await using store = await openStoreForReading(systemHost(), file);
  await using names = await openDocumentNames(file);
  const spaces = await names.spaces();
  if (!spaces.includes(space) && spaces.length > 0)
    throw new UsageError(`there is no space "${space}"; there are: ${spaces.join(", ")}`);
  const found: Loaded[] = [];
  const query = { space, prefix: String(call.options["prefix"] ?? ""), limit };
  for (let page = await names.page({ ...query, after: undefined }); page.length > 0 && found.length < limit; ) {
    const { documents: loaded } = await store.load(space, page);
    // A deleted document still has its name.
    found.push(...loaded.filter(({ value }) => value !== undefined));
    page = await names.page({ ...query, after: page.at(-1) });
  }
  return found.slice(0, limit);
}

function cut(text: string): string {
  return text.length <= VALUE_CHARACTERS_MAX ? text : `${text.slice(0, VALUE_CHARACTERS_MAX - 1)}…`;
}

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
function dueText({ kind, dueAtMs }: Pick<TimerView, "kind" | "dueAtMs">): string {
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
