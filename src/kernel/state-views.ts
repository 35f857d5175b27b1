/**
 * The state of a kernel for tools: `Kernel.Failures` (dead letters by cause), `Kernel.Actors` (mailboxes, current work,
 * durations) and `Kernel.Timers`. It only reads. SPEC: W85-W87.
 */
import { failureGroups } from "../bus/failure-groups.ts";
import type { HandlingRing, HandlingTotals } from "../bus/handling-ring.ts";
import { journalFilter } from "../bus/journal-filter.ts";
import type { Host } from "../host/host.ts";
import { FAILURES_GROUPED_MAX, TIMERS_TOLD_MAX, WORK_TOLD_MAX } from "../limits.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import { dataSchema } from "../loop/message-schema.ts";
import type { Json } from "../message/json.ts";
import type { DueRow } from "../store/due.ts";
import type { Store } from "../store/store.ts";
import type { WorkBoard } from "../work/work-board.ts";
import { cursorIn } from "./journal-views.ts";

/** Whose state. */
export interface StateViewParts {
  readonly host: Host;
  readonly store: Store;
  readonly handlings: HandlingRing | undefined;
  readonly board: WorkBoard;
  loop(): EventLoop;
}

/** A capability's actor. */
export interface ActorView {
  readonly name: string;
  readonly state: string;
  /** Messages in its mailbox: those that wait, and the one that is handled. */
  readonly mailbox: number;
  /** Asynchronous handlers that run. */
  readonly running: number;
  readonly oldest?: { readonly id: string; readonly type: string; readonly ageMs: number };
  /** Of the handlings that the kernel remembers. Absent without `trace`. */
  readonly handled?: HandlingTotals;
}

/** A row of the due table. */
export interface TimerView extends Omit<DueRow, "order"> {}

export interface FailuresAsk {
  readonly filter?: string;
  /** `scannedTo` of the answer before. */
  readonly cursor?: string;
  /** The time that the buckets divide, up to now. Default: a day. */
  readonly withinMs?: number;
}

const DAY_MS = 86_400_000;

export function stateQueries(parts: StateViewParts) {
  return {
    "Kernel.Failures": {
      description: "dead letters in groups of one type, subscriber and error, with counts over time",
      input: failuresAsk,
      handle: async (asked: FailuresAsk | null) => {
        const { filter = "", cursor, withinMs = DAY_MS } = asked ?? {};
        const scan = { filter: journalFilter(filter, parts.host.now()), withinMs, rowsMax: FAILURES_GROUPED_MAX };
        return plain(await failureGroups(parts, { ...scan, ...cursorIn(cursor) }));
      },
    },
    "Kernel.Actors": {
      description: "actors with their state, mailbox, oldest running handler, and durations of handlings",
      handle: () => plain({ actors: actorViews(parts) }),
    },
    "Kernel.Timers": {
      description: "timers and slots of schedules that wait, the earliest first",
      input: timersAsk,
      handle: async (asked: { limit?: number } | null) =>
        plain({ timers: await timerViews(parts.store, asked?.limit ?? TIMERS_TOLD_MAX) }),
    },
  };
}

function plain(value: unknown): Json {
  return JSON.parse(JSON.stringify(value));
}

export function actorViews({ loop, handlings, board }: StateViewParts): ActorView[] {
  const totals = handlings?.totals();
  const running = Map.groupBy(board.list(WORK_TOLD_MAX), ({ handler }) => handler);
  return [...loop().actors].map(([name, { state, mailboxLength }]): ActorView => {
    const handled = totals?.get(name);
    const work = running.get(name) ?? [];
    const [oldest] = work;
    return {
      ...{ name, state, mailbox: mailboxLength, running: work.length },
      ...(oldest === undefined ? {} : { oldest: { id: oldest.id, type: oldest.type, ageMs: oldest.ageMs } }),
      ...(handled === undefined ? {} : { handled }),
    };
  });
}

// Timers ------------------------------------------------------------------------------------------------------------

/** Rows for the slots of extensions' schedules. */
const SCHEDULE_KIND = "schedule";
/** Rows of singletons, which wait for no time. */
const OWNER_KIND = "owner";

/** Timers, and schedules at their next slot: earliest first. */
export async function timerViews(store: Store, limit: number): Promise<TimerView[]> {
  const all = await store.dueRows(Number.MAX_SAFE_INTEGER, limit);
  const schedules = (await store.dueRows(Number.MAX_SAFE_INTEGER, limit, SCHEDULE_KIND)).map(atItsSlot);
  const others = all.filter(({ kind }) => kind !== SCHEDULE_KIND && kind !== OWNER_KIND);
  const rows = [...others, ...schedules].sort((a, b) => a.dueAtMs - b.dueAtMs).slice(0, limit);
  return rows.map(({ order: _, ...row }) => row);
}

/** A schedule has no deadline in the table; it waits for its slot, unless it runs. */
export function atItsSlot(row: DueRow): DueRow {
  const { slotMs, hold } = (row.data ?? {}) as { slotMs?: number; hold?: Json };
  return slotMs === undefined || hold ? row : { ...row, dueAtMs: slotMs };
}

// Inputs ------------------------------------------------------------------------------------------------------------

const failuresAsk = dataSchema<FailuresAsk | null>(
  (data) => {
    const { filter, cursor, withinMs } = (data ?? {}) as { readonly [name: string]: unknown };
    for (const [name, value] of Object.entries({ filter, cursor }))
      if (value !== undefined && typeof value !== "string") return `${name}: must be a text`;
    if (withinMs === undefined || (Number.isSafeInteger(withinMs) && Number(withinMs) > 0)) return undefined;
    return "withinMs: must be a whole number of at least 1";
  },
  {
    type: ["object", "null"],
    properties: { filter: { type: "string" }, cursor: { type: "string" }, withinMs: { type: "integer", minimum: 1 } },
  },
);

const timersAsk = dataSchema<{ limit?: number } | null>(
  (data) => {
    const { limit } = (data ?? {}) as { limit?: unknown };
    if (limit === undefined || (Number.isInteger(limit) && Number(limit) > 0 && Number(limit) <= TIMERS_TOLD_MAX))
      return undefined;
    return `limit: must be a whole number from 1 to ${TIMERS_TOLD_MAX}`;
  },
  { type: ["object", "null"], properties: { limit: { type: "integer", minimum: 1, maximum: TIMERS_TOLD_MAX } } },
);
