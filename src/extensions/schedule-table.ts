/**
 * What is due when for schedules: rows of the due table, so that a slot survives the process, and one timer for the earliest. SPEC: X40-X46.
 *
 * ```
 *   armed ──slot comes──> running ──task ended, well or not──> armed at the next slot
 *                            └──process ends──> running, found by the next process: tried again, up to three times
 * ```
 * Which schedules there are it learns anew at every start; their slots it finds in the table. The next slot is computed from now, so that
 * slots which were missed, or passed while a task ran, fire once and not one by one. Not here: what a task does.
 */
import type { Host, Timer } from "../host/host.ts";
import { SCHEDULE_LOOK_MS, SCHEDULE_ROWS_MAX, SLOT_ATTEMPTS_MAX, TIMER_RETRY_MS } from "../limits.ts";
import { nextSlot } from "../loop/schedule.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import type { Slot } from "./extension.ts";
import { reasonOf } from "./extension-error.ts";
import type { Logger } from "./logger.ts";

/** The due table of a store, as far as it is needed here. */
export interface DueTable {
  changeDue(changes: readonly DueRowChange[]): Promise<readonly boolean[]>;
  dueRows(nowMs: number, limit: number): Promise<readonly DueTableRow[]>;
}

type DueRowChange =
  | { readonly op: "put"; readonly kind: string; readonly key: string; readonly dueAtMs: number; readonly data: Json }
  | { readonly op: "cancel"; readonly kind: string; readonly key: string };

interface DueTableRow {
  readonly kind: string;
  readonly key: string;
  readonly dueAtMs: number;
  readonly data: Json;
}

interface Timing {
  readonly cron: string;
  readonly timezone?: string | undefined | null;
}

export interface Schedule {
  readonly extensionId: string;
  readonly name: string;
  readonly cron: string;
  readonly timezone: string | undefined;
  /** Does what is to be done. What it throws is logged, and the next slot comes as if it had not. */
  run(slot: Slot): Promise<void>;
}

export interface ScheduleStatus {
  readonly name: string;
  readonly cron: string;
  /** Undefined while it runs, and when it never comes due again. */
  readonly nextMs: number | undefined;
}

interface Armed {
  readonly schedule: Schedule;
  readonly key: string;
  slotMs: number;
  attempt: number;
  state: "armed" | "running" | "over";
  readonly abort: AbortController;
}

const ARMED = "schedule";
const RUNNING = "schedule-running";
/** A deadline that never comes: a running row waits for no time. */
const NEVER_MS = Number.MAX_SAFE_INTEGER;

export class ScheduleTable {
  readonly #host: Host;
  readonly #due: DueTable;
  readonly #logger: Logger;
  readonly #armed = new Map<string, Armed>();
  /** What an earlier process left, until somebody claims it. */
  #found = new Map<string, DueTableRow>();
  #timer: Timer | undefined;
  #closed = false;
  readonly #running = new Set<Promise<void>>();

  constructor(parts: { host: Host; due: DueTable; logger: Logger }) {
    this.#host = parts.host;
    this.#due = parts.due;
    this.#logger = parts.logger;
  }

  get busy(): boolean {
    return this.#running.size > 0;
  }

  /** Reads what an earlier process has left. `keep` says of which extensions rows are left alone that nobody claims. */
  async open(keep: (extensionId: string) => boolean): Promise<void> {
    const rows = await this.#due.dueRows(NEVER_MS, SCHEDULE_ROWS_MAX);
    const own = rows.filter(({ kind }) => kind === ARMED || kind === RUNNING);
    const gone = own.filter(({ key }) => !keep(key.split("/", 1)[0] as string));
    await this.#due.changeDue(gone.map(({ kind, key }) => ({ op: "cancel", kind, key })));
    this.#found = new Map(own.filter((row) => !gone.includes(row)).map((row) => [row.key, row]));
  }

  /** From now on it fires. A slot that an earlier process left is taken over, unless the schedule was changed. */
  async add(schedule: Schedule): Promise<() => void> {
    const key = `${schedule.extensionId}/${schedule.name}`;
    const entry: Armed = { schedule, key, slotMs: 0, attempt: 0, state: "armed", abort: new AbortController() };
    const row = this.#found.get(key);
    this.#found.delete(key);
    const left = row && slotOf(row, schedule);
    if (left === undefined) await this.#arm(entry);
    else await this.#takeOver(entry, left);
    this.#armed.set(key, entry);
    this.#rearm();
    return () => this.#remove(entry);
  }

  async #takeOver(entry: Armed, left: Pick<Armed, "slotMs" | "attempt">): Promise<void> {
    Object.assign(entry, left);
    if (left.attempt < SLOT_ATTEMPTS_MAX) return;
    this.#logger.error(
      `${entry.key}: its slot was begun ${left.attempt} times and the process never outlived it; left out`,
    );
    await this.#arm(entry);
  }

  /** Everything that is here has been added: rows that nobody claimed wait for a process in which somebody does. */
  settle(): void {
    this.#park([...this.#found.values()].filter(({ kind }) => kind === ARMED));
    this.#found.clear();
  }

  statuses(extensionId: string): ScheduleStatus[] {
    return [...this.#armed.values()]
      .filter(({ schedule }) => schedule.extensionId === extensionId)
      .map(({ schedule: { name, cron }, slotMs, state }) => {
        return { name, cron, nextMs: state === "armed" ? slotMs : undefined };
      });
  }

  /** Starts nothing more, and lets what runs finish for as long as the grace lasts; then it is told, and its slot left to the next process. */
  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    const { promise: enough, resolve } = Promise.withResolvers<void>();
    const timer = this.#host.timer(graceMs, resolve);
    await Promise.race([this.idle(), enough]);
    timer.cancel();
    for (const { abort } of this.#armed.values()) abort.abort(new Error("the kernel is shutting down"));
  }

  /** Resolves when no task runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #remove(entry: Armed): void {
    entry.abort.abort(new Error("the extension has stopped"));
    if (this.#armed.get(entry.key) !== entry) return;
    this.#armed.delete(entry.key);
    this.#rearm();
    if (entry.state === "armed") this.#park([{ key: entry.key, data: rowData(entry) }]);
  }

  /** Slots that nobody here will fire wait for the next process without a deadline: an overdue row would wake others for nothing. */
  #park(slots: readonly { readonly key: string; readonly data: Json }[]): void {
    if (this.#closed || slots.length === 0) return;
    const changes = slots.flatMap(({ key, data }): DueRowChange[] => [
      { op: "cancel", kind: ARMED, key },
      { op: "put", kind: RUNNING, key, dueAtMs: NEVER_MS, data },
    ]);
    // Should it fail, the row is as it was, and the next process finds that.
    this.#due.changeDue(changes).catch((thrown: unknown) => this.#logger.warn(reasonOf(thrown)));
  }

  /** Puts it down for its first slot after now. */
  async #arm(entry: Armed): Promise<void> {
    const { schedule, key } = entry;
    const { cron, timezone } = schedule;
    const slotMs = nextSlot({ cron, ...(timezone && { timezone }) }, entry.slotMs, this.#host.now());
    await this.#due.changeDue([
      { op: "cancel", kind: RUNNING, key },
      slotMs === undefined
        ? { op: "cancel", kind: ARMED, key }
        : { op: "put", kind: ARMED, key, dueAtMs: slotMs, data: rowData({ schedule, slotMs, attempt: 0 }) },
    ]);
    entry.state = slotMs === undefined ? "over" : "armed";
    entry.slotMs = slotMs ?? 0;
    entry.attempt = 0;
  }

  #rearm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const waiting = [...this.#armed.values()].filter(({ state }) => state === "armed");
    if (waiting.length === 0 || this.#closed) return;
    const earliest = Math.min(...waiting.map(({ slotMs }) => slotMs));
    // Not for long at a time: the wall clock may be put forward, or the machine sleep.
    const waitMs = Math.min(Math.max(0, earliest - this.#host.now()), SCHEDULE_LOOK_MS);
    this.#timer = this.#host.timer(waitMs, () => this.#fireDue());
  }

  #fireDue(): void {
    const now = this.#host.now();
    for (const entry of this.#armed.values()) {
      if (entry.state !== "armed" || entry.slotMs > now) continue;
      entry.state = "running";
      const running = this.#fire(entry).finally(() => {
        this.#running.delete(running);
        this.#rearm();
      });
      this.#running.add(running);
    }
    this.#rearm();
  }

  async #fire(entry: Armed): Promise<void> {
    const { schedule, key, slotMs, abort } = entry;
    if (!(await this.#stored(entry, () => this.#begin(entry)))) return;
    const { attempt } = entry;
    try {
      abort.signal.throwIfAborted();
      await schedule.run({ schedule: schedule.name, slotMs, attempt, signal: abort.signal });
    } catch (thrown) {
      // What was broken off is left as running, for the next process.
      if (abort.signal.aborted) return;
      this.#logger.error(`${key} failed, and comes again at its next slot: ${reasonOf(thrown)}`);
    }
    await this.#stored(entry, () => this.#arm(entry));
  }

  async #begin(entry: Armed): Promise<void> {
    const { schedule, key, slotMs } = entry;
    const attempt = entry.attempt + 1;
    await this.#due.changeDue([
      { op: "cancel", kind: ARMED, key },
      { op: "put", kind: RUNNING, key, dueAtMs: NEVER_MS, data: rowData({ schedule, slotMs, attempt }) },
    ]);
    entry.attempt = attempt;
  }

  /** A store that cannot write now is asked again until it can or the schedule ends; says whether it was written. */
  async #stored({ key, abort }: Armed, write: () => Promise<void>): Promise<boolean> {
    for (;;) {
      try {
        await write();
        return true;
      } catch (thrown) {
        if (abort.signal.aborted) return false;
        this.#logger.warn(`${key}: the store could not write, trying again: ${reasonOf(thrown)}`);
        await new Promise<void>((resolve) => this.#host.timer(TIMER_RETRY_MS, resolve, { keepAlive: false }));
      }
    }
  }
}

function rowData(row: { readonly schedule: Timing; readonly slotMs: number; readonly attempt: number }): Json {
  const { schedule, slotMs, attempt } = row;
  return { cron: schedule.cron, timezone: schedule.timezone ?? null, slotMs, attempt };
}

/** The slot that a row holds, unless it is another schedule's by now or nobody can read it. */
function slotOf({ data }: DueTableRow, { cron, timezone }: Timing): Pick<Armed, "slotMs" | "attempt"> | undefined {
  if (!isJsonObject(data) || data["cron"] !== cron || data["timezone"] !== (timezone ?? null)) return undefined;
  const { slotMs, attempt } = data;
  return typeof slotMs === "number" && typeof attempt === "number" ? { slotMs, attempt } : undefined;
}
