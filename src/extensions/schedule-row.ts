/**
 * The row of the due table in which a schedule keeps its slot: one for each schedule, under its name. A process changes
 * it only if it is unchanged (a `take` names the row as read), so of all processes on a store one gets a slot, and none
 * takes a later slot for an earlier one; and it is made only where there is none. SPEC: X43, X44, X47, X48.
 *
 * ```
 *   free   waits for its slot, or for a process that has the schedule
 *   held   a process runs it, and says so by another `beat` well before `forMs` have passed
 * ```
 * No row has a deadline in the table: an overdue one would wake the timers of an older version in vain.
 */
import { equal } from "../message/equality.ts";
import { isJsonObject, type Json } from "../message/json.ts";

/** The due table of a store, as far as it is needed here. */
export interface ScheduleDueTable {
  changeDue(changes: readonly DueRowChange[]): Promise<readonly boolean[]>;
  dueRows(nowMs: number, limit: number, kind: string): Promise<readonly DueTableRow[]>;
  /** The clock of all processes on the store. */
  now(): number;
}

export type DueRowChange =
  | {
      readonly op: "put" | "add";
      readonly kind: string;
      readonly key: string;
      readonly dueAtMs: number;
      readonly data: Json;
    }
  | { readonly op: "take"; readonly kind: string; readonly key: string; readonly was: Json };

export interface DueTableRow {
  readonly kind: string;
  readonly key: string;
  readonly dueAtMs: number;
  readonly data: Json;
}

export interface Timing {
  readonly cron: string;
  readonly timezone: string | undefined;
}

/** The schedule and its action, in words for people. */
export interface ScheduleName extends Timing {
  readonly extensionId: string;
  readonly name: string;
  readonly does: string;
}

/** A slot, as a row has it. */
export interface SlotRow {
  readonly schedule: ScheduleName;
  /** `NEVER_MS` when the schedule has no further slot. */
  readonly slotMs: number;
  /** Starts so far. */
  readonly attempt: number;
  /** Undefined while it is free. */
  readonly hold: Hold | undefined;
}

export interface Hold {
  /** The process that holds it. */
  readonly by: string;
  /** For how long after a beat no other process takes it. */
  readonly forMs: number;
  /** Signs of life so far. */
  readonly beat: number;
}

export const SCHEDULE_KIND = "schedule";
/** A deadline, or a slot, that never comes. */
export const NEVER_MS = Number.MAX_SAFE_INTEGER;

/** The schedule's name with its extension's: the key of its row. */
export function nameOf({ extensionId, name }: Pick<ScheduleName, "extensionId" | "name">): string {
  return `${extensionId}/${name}`;
}

/** A row that waits: for its slot, or once more for one that was broken off. */
export function freeRow(schedule: ScheduleName, slotMs: number, attempt = 0): SlotRow {
  return { schedule, slotMs, attempt, hold: undefined };
}

/** Sets the row where there is none. */
export function add(row: SlotRow): DueRowChange {
  return { ...setting(row), op: "add" };
}

export function put(row: SlotRow): DueRowChange {
  return { ...setting(row), op: "put" };
}

/** Takes the row if it is unchanged; the following changes depend on that. */
export function take(row: SlotRow): DueRowChange {
  return { op: "take", kind: SCHEDULE_KIND, key: nameOf(row.schedule), was: dataOf(row) };
}

/** Takes a row as it was read, with any content. */
export function takeAsRead({ kind, key, data }: Pick<DueTableRow, "kind" | "key" | "data">): DueRowChange {
  return { op: "take", kind, key, was: data };
}

function setting(row: SlotRow) {
  return { kind: SCHEDULE_KIND, key: nameOf(row.schedule), dueAtMs: NEVER_MS, data: dataOf(row) };
}

function dataOf({ schedule, slotMs, attempt, hold }: SlotRow): Json {
  const { extensionId, name, cron, timezone = null, does } = schedule;
  return { extensionId, name, cron, timezone, does, slotMs, attempt, hold: hold ? { ...hold } : null };
}

/** The slot that a row of the table holds; undefined for a row of this kind that another program wrote. */
export function slotIn({ key, data }: DueTableRow): SlotRow | undefined {
  if (!isJsonObject(data)) return undefined;
  const { extensionId, name, cron, timezone, does, slotMs, attempt, hold } = data;
  if (typeof extensionId !== "string" || typeof name !== "string" || typeof cron !== "string") return undefined;
  if (typeof slotMs !== "number" || typeof attempt !== "number" || typeof does !== "string") return undefined;
  if (hold !== null && !isHold(hold)) return undefined;
  const schedule = { extensionId, name, cron, timezone: typeof timezone === "string" ? timezone : undefined, does };
  const row = { schedule, slotMs, attempt, hold: hold ?? undefined };
  return key === nameOf(schedule) ? row : undefined;
}

/** Whether an older version wrote the row: it has a deadline, and its content is not used. */
export function isOutdated(row: DueTableRow): boolean {
  return row.dueAtMs < NEVER_MS && slotIn(row) === undefined;
}

function isHold(value: Json | undefined): value is Json & Hold {
  if (!isJsonObject(value)) return false;
  const { by, forMs, beat } = value;
  return typeof by === "string" && typeof forMs === "number" && typeof beat === "number";
}

export function isSameRow(a: SlotRow, b: SlotRow): boolean {
  return equal(dataOf(a), dataOf(b));
}

export function isSameTiming(a: Timing, b: Timing): boolean {
  return a.cron === b.cron && a.timezone === b.timezone;
}
