/**
 * `ls events`, `failures` and `requests` (including waiting ones, if a kernel runs).
 */
import { systemHost } from "../host/system-host.ts";
import { type FailureGroup, failureGroups, type JournalQuery, newestRows } from "../kernel/filtered-rows.ts";
import type { PendingView } from "../kernel/inspect-capability.ts";
import { openStoreForReading } from "../kernel/open-store.ts";
import { FAILURES_GROUPED_MAX, JOURNAL_PAGE_ROWS } from "../limits.ts";
import { nearWord } from "../message/near-word.ts";
import { askIfRunning } from "./connection.ts";
import { existingStore } from "./database-file.ts";
import { readFilter } from "./filter-option.ts";
import { creationTime, type JournalLine, type RowOutcome, troubleOf } from "./journal-lines.ts";
import { type Listing, readLimit, readStatus } from "./listing.ts";
import type { VerbCall } from "./verb.ts";

const HEAD = ["id", "status", "attempts", "created", "kind", "topic", "source", ""];

export const events: Listing<JournalLine> = {
  head: HEAD,
  takes: ["status", "topic", "filter", "limit"],
  find: (call) => {
    const status = readStatus(call);
    return rows(call, status === undefined ? {} : { status });
  },
  meant: meantTopic,
  cells: cellsOf,
};

export const failureListing: Listing<JournalLine> = {
  head: HEAD,
  takes: ["topic", "filter", "limit"],
  find: (call) => rows(call, { status: "failed" }),
  meant: meantTopic,
  cells: cellsOf,
};

/** The time that the buckets of a group divide. */
const DAY_MS = 86_400_000;

/** Failures of one cause. */
export const failureGroupList: Listing<FailureGroup> = {
  head: ["count", "first", "last", "type", "subscriber", "rows", ""],
  takes: ["filter", "limit"],
  find: async (call) => {
    const host = systemHost();
    const filter = readFilter(call.options["filter"], host);
    await using store = await openStoreForReading(host, existingStore(undefined, call.environment));
    const scan = { filter, withinMs: DAY_MS, rowsMax: FAILURES_GROUPED_MAX };
    return (await failureGroups({ host, store }, scan)).groups.slice(0, readLimit(call));
  },
  cells: ({ count, firstMs, lastMs, type, subscriber = "", sample, error }) => [
    ...[String(count), new Date(firstMs).toISOString(), new Date(lastMs).toISOString(), type, subscriber],
    ...[sample.join(", "), error],
  ],
};

/** A command of the journal, or a request without an answer. */
interface RequestItem {
  readonly id: string;
  readonly type: string;
  readonly kind: string;
  readonly state: "waiting" | "done" | "failed" | RowOutcome;
  readonly sentAtMs: number;
  readonly capability: string;
}

export const requests: Listing<RequestItem> = {
  head: ["id", "state", "sent", "kind", "type", "capability"],
  takes: ["limit"],
  find: async (call) => {
    const limit = readLimit(call);
    const file = existingStore(undefined, call.environment);
    const waiting = await askIfRunning<{ requests: readonly PendingView[] }>(call, "Kernel.Requests");
    await using store = await openStoreForReading(systemHost(), file);
    const commands = await store.query({ kind: "command", order: "descending", limit });
    // This query itself waits for its answer too, so it is left out.
    const others = (waiting?.requests ?? []).filter(({ type }) => type !== "Kernel.Requests");
    const known = new Set(others.map(({ id }) => id));
    const kept = commands.map(keptItem).filter(({ id }) => !known.has(id));
    return [...others.map(waitingItem), ...kept].slice(0, limit);
  },
  cells: ({ id, state, sentAtMs, kind, type, capability }) => [
    id,
    state,
    new Date(sentAtMs).toISOString(),
    kind,
    type,
    capability,
  ],
};

function waitingItem({ id, kind, type, sentAtMs, capability = "on its way" }: PendingView): RequestItem {
  return { id, type, kind, state: "waiting", sentAtMs, capability };
}

function keptItem({ message, topic, source, status, outcome, createdAtMs }: JournalLine): RequestItem {
  return {
    id: message?.metadata.id ?? "?",
    type: message?.type ?? topic,
    kind: "command",
    state: status === "pending" || status === "processing" ? "waiting" : (outcome ?? status),
    sentAtMs: message?.metadata.timestamp ?? createdAtMs,
    capability: source,
  };
}

async function rows(call: VerbCall, query: Omit<JournalQuery, "limit">): Promise<readonly JournalLine[]> {
  const host = systemHost();
  const { topic } = call.options;
  const filter = readFilter(call.options["filter"], host);
  const limit = readLimit(call);
  await using store = await openStoreForReading(host, existingStore(undefined, call.environment));
  const named = typeof topic === "string" ? { named: topic } : {};
  return await newestRows({ host, store }, filter, { ...query, ...named, limit });
}

/** The nearest of the topics in the last rows. */
async function meantTopic({ options, environment }: VerbCall): Promise<string | undefined> {
  const { topic } = options;
  if (typeof topic !== "string") return undefined;
  await using store = await openStoreForReading(systemHost(), existingStore(undefined, environment));
  const last = await store.query({ limit: JOURNAL_PAGE_ROWS, order: "descending" });
  const names = last.flatMap((row) => [row.topic, row.message?.type ?? row.topic]);
  const near = nearWord(topic, [...new Set(names)]);
  return near === topic ? undefined : near;
}

function cellsOf(row: JournalLine): string[] {
  const kind = row.message?.kind ?? "?";
  return [
    String(row.id),
    row.outcome ?? row.status,
    String(row.attempts),
    creationTime(row),
    kind,
    row.topic,
    row.source,
    troubleOf(row),
  ];
}
