/**
 * The rows of the due table in which schedules keep their slots. A slot is in the key, and so is the attempt of one that runs: a row is taken
 * by its key, so of all processes on a store one gets it, and nobody takes a later slot for an earlier one. SPEC: X43, X44, X47.
 *
 * ```
 *   schedule          <extension>/<name>/<slot>             waits for its slot
 *   schedule-running  <extension>/<name>/<slot>/<attempt>   a process runs it, until it says otherwise or `heldUntilMs` has passed;
 *                                                           or nobody does, and it waits for a process that has the schedule
 * ```
 * A running row has no deadline in the table: one that is overdue would wake the timers for nothing.
 */
import { isJsonObject, type Json } from "../message/json.ts";

/** The due table of a store, as far as it is needed here. */
export interface DueTable {
  changeDue(changes: readonly DueRowChange[]): Promise<readonly boolean[]>;
  dueRows(nowMs: number, limit: number): Promise<readonly DueTableRow[]>;
}

export type DueRowChange =
  | { readonly op: "put"; readonly kind: string; readonly key: string; readonly dueAtMs: number; readonly data: Json }
  | { readonly op: "cancel" | "take"; readonly kind: string; readonly key: string };

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

/** Which schedule, and what it does when its slot comes, for people. */
export interface ScheduleName extends Timing {
  readonly extensionId: string;
  readonly name: string;
  readonly does: string;
}

/** A slot, as a row has it. */
export interface SlotRow {
  readonly kind: typeof ARMED | typeof RUNNING;
  readonly key: string;
  readonly schedule: ScheduleName;
  readonly slotMs: number;
  /** Starts so far. */
  readonly attempt: number;
  /** Until when a process holds it; 0 where none does. */
  readonly heldUntilMs: number;
  readonly put: DueRowChange;
}

const ARMED = "schedule";
const RUNNING = "schedule-running";
/** A deadline that never comes. */
export const NEVER_MS = Number.MAX_SAFE_INTEGER;

/** The schedule's name with its extension's. */
export function nameOf({ extensionId, name }: Pick<ScheduleName, "extensionId" | "name">): string {
  return `${extensionId}/${name}`;
}

/** The row of a slot that is waited for. */
export function armedRow(schedule: ScheduleName, slotMs: number): SlotRow {
  return row({ schedule, kind: ARMED, slotMs, attempt: 0, heldUntilMs: 0 });
}

/** The row of a slot that a process holds. */
export function heldRow({ schedule, slotMs }: SlotRow, attempt: number, heldUntilMs: number): SlotRow {
  return row({ schedule, kind: RUNNING, slotMs, attempt, heldUntilMs });
}

/** The row of a slot that is left to whoever wants it next. */
export function leftRow({ schedule, slotMs, attempt }: SlotRow): SlotRow {
  return row({ schedule, kind: RUNNING, slotMs, attempt, heldUntilMs: 0 });
}

function row(parts: Omit<SlotRow, "key" | "put">): SlotRow {
  const { schedule, kind, slotMs, attempt, heldUntilMs } = parts;
  const { extensionId, name, cron, timezone = null, does } = schedule;
  const of = nameOf(schedule);
  const key = kind === ARMED ? `${of}/${slotMs}` : `${of}/${slotMs}/${attempt}`;
  const data = { extensionId, name, cron, timezone, does, slotMs, attempt, heldUntilMs };
  return { ...parts, key, put: { op: "put", kind, key, dueAtMs: kind === ARMED ? slotMs : NEVER_MS, data } };
}

/** The slots among rows of the due table, the earliest first; what somebody else wrote under these kinds is not among them. */
export function slotsIn(rows: readonly DueTableRow[]): SlotRow[] {
  return rows.flatMap((found) => readRow(found) ?? []).sort((a, b) => a.slotMs - b.slotMs);
}

function readRow({ kind, key, dueAtMs, data }: DueTableRow): SlotRow | undefined {
  if ((kind !== ARMED && kind !== RUNNING) || !isJsonObject(data)) return undefined;
  const { extensionId, name, cron, timezone, does, slotMs, attempt, heldUntilMs } = data;
  if (typeof extensionId !== "string" || typeof name !== "string" || typeof cron !== "string") return undefined;
  if (typeof slotMs !== "number" || typeof attempt !== "number" || typeof heldUntilMs !== "number") return undefined;
  const timing = { cron, timezone: typeof timezone === "string" ? timezone : undefined };
  const schedule = { extensionId, name, ...timing, does: String(does) };
  return { ...{ kind, key, schedule, slotMs, attempt, heldUntilMs }, put: { op: "put", kind, key, dueAtMs, data } };
}

/** Takes the row, and only if it is there goes on with what follows. */
export function take({ kind, key }: SlotRow): DueRowChange {
  return { op: "take", kind, key };
}

/** Whether a row of the table is one of a schedule, whatever it holds. */
export function isOfSchedule({ kind }: DueTableRow): boolean {
  return kind === ARMED || kind === RUNNING;
}

/** Whether it waits for its time: neither run nor put away. */
export function isArmed({ kind }: SlotRow): boolean {
  return kind === ARMED;
}

export function isSameTiming(a: Timing, b: Timing): boolean {
  return a.cron === b.cron && a.timezone === b.timezone;
}
