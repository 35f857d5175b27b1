/**
 * Timers and their firings, and the rows of the due table that hold them.
 *
 * | kind          | key       | deadline                                      |
 * | ------------- | --------- | --------------------------------------------- |
 * | `timer`       | timer id  | when the timer is due                         |
 * | `timer-fired` | firing id | until then only the kernel that fired sends it |
 */
import { TIMER_MARK_MS } from "../limits.ts";
import { contentId } from "../message/content-id.ts";
import type { Message } from "../message/envelope.ts";
import type { Json, JsonObject } from "../message/json.ts";
import type { DueChange, DueRow } from "../store/due.ts";
import type { Label } from "../store/label.ts";
import { join, labelOfMessage } from "../store/label.ts";
import { labelEvents } from "../store/label-checks.ts";
import type { Store } from "../store/store.ts";
import type { Transaction } from "../store/transaction.ts";
import { nextSlot, type Schedule } from "./schedule.ts";
import type { Template } from "./template.ts";

export const TIMER_KIND = "timer";
/** Fired, and not known to be handled. */
export const FIRED_KIND = "timer-fired";

/** The due table as timers use it, and the clock of its deadlines. `watch` is there if several kernels may share it. */
export type TimerRows = Pick<Store, "changeDue" | "dueRow" | "dueRows" | "earliestDue" | "now"> &
  Partial<Pick<Store, "watch">>;

/**
 * The authority of a message that a timer sends: that of one client, or of the kernel's own code. Without a sender it
 * has none.
 */
export type Sender = { readonly kind: "client"; readonly id: string } | { readonly kind: "kernel" };

/** The message of a timer, its sender, and its schedule. */
export interface TimerData {
  readonly lineage: JsonObject;
  readonly template: Template;
  /** Identity of the request that set it: another request under the same id is refused. */
  readonly request: string;
  readonly schedule?: Schedule;
  /** Slot that it waits for, if it has a schedule. */
  readonly slotMs?: number;
  /** The sender of the `Timer.Set`: its message has that authority, and it counts for that client. */
  readonly sender?: Sender;
  /**
   * Of a timer that a transaction has set: which setting it is, so that a timer set again under its name sends another
   * message.
   */
  readonly setting?: string;
  /** Of a delay: the clocks of the process that set it, so that a wall clock that is set back can be corrected for. */
  readonly clock?: ClockReading;
}

export interface ClockReading {
  /** The table that read it: monotonic clocks of different processes cannot be compared. */
  readonly table: string;
  /** The clock of the rows minus the monotonic clock. */
  readonly offsetMs: number;
}

export interface ArmedTimer {
  readonly id: string;
  readonly dueAtMs: number;
  readonly data: TimerData;
}

/** One firing of a timer. */
export interface Firing {
  /** The timer's id, or that of its setting; with the slot if it has a schedule. */
  readonly id: string;
  readonly timerId: string;
  /** Slot of its schedule; absent for a timer that fires once. */
  readonly slotMs?: number;
  readonly data: TimerData;
}

/**
 * The id of the message that a firing sends. It is derived: a firing that is repeated after a crash sends the same
 * message.
 */
export function messageIdOf({ id }: Pick<Firing, "id">): string {
  return contentId(["timer", id]);
}

export function armed({ id, dueAtMs, data }: ArmedTimer): DueChange & { op: "put" } {
  return { op: "put", kind: TIMER_KIND, key: id, dueAtMs, data: data as never as Json };
}

export function timerIn({ key, dueAtMs, data }: DueRow): ArmedTimer {
  return { id: key, dueAtMs, data: data as never as TimerData };
}

/**
 * A repeating timer is taken only at the slot that was read: another kernel may have armed it for the next one under
 * the same key.
 */
export function taken({ id, data }: ArmedTimer): DueChange {
  const was = data.schedule === undefined ? {} : { was: data as never as Json };
  return { op: "take", kind: TIMER_KIND, key: id, ...was };
}

/** The timer as it waits for its next slot, if it has one. */
export function following({ id, dueAtMs, data }: ArmedTimer, nowMs: number): ArmedTimer | undefined {
  const next = data.schedule && nextSlot(data.schedule, dueAtMs, nowMs);
  return next === undefined ? undefined : { id, dueAtMs: next, data: { ...data, slotMs: next } };
}

export function firingFor({ id, dueAtMs, data }: ArmedTimer): Firing {
  const { setting = id, schedule } = data;
  return schedule
    ? { id: `${setting}@${dueAtMs}`, timerId: id, slotMs: dueAtMs, data }
    : { id: setting, timerId: id, data };
}

/** The row of a firing that `owner` sends. */
export function marked(firing: Firing, owner: string, nowMs: number): DueChange & { op: "put" } {
  const data = { ...firing, owner } as never as Json;
  return { op: "put", kind: FIRED_KIND, key: firing.id, dueAtMs: nowMs + TIMER_MARK_MS, data };
}

export function firingIn({ data }: Pick<DueRow, "data">): Firing & { readonly owner: string } {
  return data as never as Firing & { owner: string };
}

/** Adds the label of the reads to the messages of a transaction, those for later too. */
export function labelMessages(label: Label, transaction: Transaction): void {
  if (label.length === 0 || transaction.extras === undefined) return;
  if (transaction.hasEntries) labelEvents(label, transaction.entries);
  const { due } = transaction.extras;
  for (const [at, change] of due.entries()) {
    if (change.kind !== TIMER_KIND || change.op !== "put") continue;
    const data = change.data as never as TimerData;
    const joined = join(labelOfMessage({ metadata: data.lineage as never as Message["metadata"] }), label);
    due[at] = { ...change, data: { ...data, lineage: { ...data.lineage, label: [...joined] } } as never as Json };
  }
}
