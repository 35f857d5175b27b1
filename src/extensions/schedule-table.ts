/**
 * What is due when for schedules: rows of the due table (`schedule-row.ts`), so that a slot survives the process and is run by one of those
 * that share the store, and one timer for the earliest. SPEC: X40-X47.
 *
 * ```
 *   armed ──slot comes──> claiming ──got it──> running ──task ended, well or not──> armed at the next slot
 *     ^                      │ somebody else has it        └─process ends──> held until its time is up, then claimed by another
 *     └──what is there now───┘                                               process, or the next: tried again, up to three times
 * ```
 * Which schedules there are it learns anew at every start; their slots it finds in the table. The next slot is computed from now, so that
 * slots which were missed, or passed while a task ran, fire once and not one by one. Not here: what a task does.
 */
import type { Host, Timer } from "../host/host.ts";
import { pause } from "../host/pause.ts";
import { SCHEDULE_LOOK_MS, SCHEDULE_ROWS_MAX, SLOT_ATTEMPTS_MAX, TIMER_RETRY_MS } from "../limits.ts";
import { nextSlot } from "../loop/schedule.ts";
import type { Slot } from "./extension.ts";
import { reasonOf } from "./extension-error.ts";
import type { Logger } from "./logger.ts";
import {
  armedRow,
  type DueTable,
  heldRow,
  isArmed,
  isOfSchedule,
  isSameTiming,
  leftRow,
  NEVER_MS,
  nameOf,
  type ScheduleName,
  type SlotRow,
  slotsIn,
  take,
} from "./schedule-row.ts";

export interface Schedule extends ScheduleName {
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
  /** The slot that is waited for, or runs; undefined when it never comes due again. */
  row: SlotRow | undefined;
  state: "armed" | "running";
  readonly abort: AbortController;
}

export interface ScheduleTableParts {
  readonly host: Host;
  readonly due: DueTable;
  readonly logger: Logger;
  /** How long a slot is held without a sign of life. */
  readonly leaseMs: number;
  /** No other process has the store: whatever one holds, it is dead. */
  readonly alone: boolean;
}

export class ScheduleTable {
  readonly #host: Host;
  readonly #due: DueTable;
  readonly #logger: Logger;
  readonly #leaseMs: number;
  readonly #alone: boolean;
  readonly #armed = new Map<string, Armed>();
  /** What an earlier process left, until somebody claims it. */
  #found: SlotRow[] = [];
  #timer: Timer | undefined;
  #closed = false;
  readonly #running = new Set<Promise<void>>();

  constructor(parts: ScheduleTableParts) {
    this.#host = parts.host;
    this.#due = parts.due;
    this.#logger = parts.logger;
    this.#leaseMs = parts.leaseMs;
    this.#alone = parts.alone;
  }

  get busy(): boolean {
    return this.#running.size > 0;
  }

  /** Reads what an earlier process has left. `keep` says of which extensions rows are left alone that nobody claims. */
  async open(keep: (extensionId: string) => boolean): Promise<void> {
    const rows = (await this.#due.dueRows(NEVER_MS, SCHEDULE_ROWS_MAX)).filter(isOfSchedule);
    this.#found = slotsIn(rows).filter(({ schedule }) => keep(schedule.extensionId));
    const kept = new Set(this.#found.map(({ key }) => key));
    const gone = rows.filter(({ key }) => !kept.has(key));
    await this.#due.changeDue(gone.map(({ kind, key }) => ({ op: "cancel", kind, key })));
  }

  /** From now on it fires. A slot that an earlier process left is taken over, unless the schedule was changed. */
  async add(schedule: Schedule): Promise<() => void> {
    const key = nameOf(schedule);
    const left = this.#found.filter((row) => nameOf(row.schedule) === key);
    this.#found = this.#found.filter((row) => !left.includes(row));
    const changed = left.filter((row) => !isSameTiming(row.schedule, schedule));
    await this.#due.changeDue(changed.map(({ kind, key }) => ({ op: "cancel", kind, key })));
    const entry: Armed = { schedule, key, row: undefined, state: "armed", abort: new AbortController() };
    entry.row = left.find((row) => !changed.includes(row));
    if (entry.row === undefined) await this.#arm(entry);
    this.#armed.set(key, entry);
    this.#rearm();
    return () => this.#remove(entry);
  }

  /** Everything that is here has been added: rows that nobody claimed wait for a process in which somebody does. */
  settle(): void {
    for (const row of this.#found) if (isArmed(row)) void this.#letGo(row);
    this.#found = [];
  }

  statuses(extensionId: string): ScheduleStatus[] {
    return [...this.#armed.values()]
      .filter(({ schedule }) => schedule.extensionId === extensionId)
      .map(({ schedule: { name, cron }, row, state }) => {
        return { name, cron, nextMs: state === "armed" ? row?.slotMs : undefined };
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
    const left = [...this.#armed.values()].flatMap(({ state, row }) => (state === "running" && row ? [row] : []));
    await Promise.all(left.map((row) => this.#letGo(row)));
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
    if (entry.state === "armed" && entry.row && isArmed(entry.row) && !this.#closed) void this.#letGo(entry.row);
  }

  /** Leaves a slot to whoever wants it next, without a deadline. Should that fail, the row is as it was, and he waits a little longer. */
  async #letGo(row: SlotRow): Promise<void> {
    try {
      await this.#due.changeDue([take(row), leftRow(row).put]);
    } catch (thrown) {
      this.#logger.warn(`${nameOf(row.schedule)}: its slot could not be left to others: ${reasonOf(thrown)}`);
    }
  }

  // Waiting -----------------------------------------------------------------------------------------------------------------

  #rearm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#closed) return;
    let earliest = Number.POSITIVE_INFINITY;
    for (const entry of this.#armed.values())
      if (entry.state === "armed") earliest = Math.min(earliest, this.#dueAtMs(entry));
    if (earliest === Number.POSITIVE_INFINITY) return;
    // Not for long at a time: the wall clock may be put forward, or the machine sleep.
    const waitMs = Math.min(Math.max(0, earliest - this.#host.now()), SCHEDULE_LOOK_MS);
    this.#timer = this.#host.timer(waitMs, () => this.#fireDue());
  }

  /** When it may be claimed: at its slot, and not while somebody holds it. */
  #dueAtMs({ row }: Armed): number {
    if (row === undefined) return Number.POSITIVE_INFINITY;
    return this.#alone ? row.slotMs : Math.max(row.slotMs, row.heldUntilMs);
  }

  #fireDue(): void {
    const now = this.#host.now();
    for (const entry of this.#armed.values()) {
      if (entry.state !== "armed" || this.#dueAtMs(entry) > now) continue;
      entry.state = "running";
      const running = this.#fire(entry).finally(() => {
        this.#running.delete(running);
        entry.state = "armed";
        this.#rearm();
      });
      this.#running.add(running);
    }
    this.#rearm();
  }

  // Running -----------------------------------------------------------------------------------------------------------------

  async #fire(entry: Armed): Promise<void> {
    const claimed = await this.#stored(entry, () => this.#claim(entry));
    if (claimed === undefined) return;
    if (!claimed) return void (await this.#stored(entry, () => this.#look(entry)));
    if (await this.#run(entry)) await this.#stored(entry, () => this.#arm(entry));
    else await this.#letGo(entry.row as SlotRow);
  }

  /** Makes the slot this process's; false if somebody else was first. */
  async #claim(entry: Armed): Promise<boolean> {
    // Whoever holds it may have said since that he still does.
    if (entry.row !== undefined && entry.row.heldUntilMs > 0 && !this.#alone) await this.#look(entry);
    const { row } = entry;
    const now = this.#host.now();
    if (row === undefined || this.#dueAtMs(entry) > now) return false;
    const held = heldRow(row, row.attempt + 1, now + this.#leaseMs);
    const [taken = false] = await this.#due.changeDue([take(row), held.put]);
    if (taken) entry.row = held;
    return taken;
  }

  /** Runs the task; false if it was broken off, and the slot is to be run again. */
  async #run(entry: Armed): Promise<boolean> {
    const { schedule, key, abort } = entry;
    const { slotMs, attempt } = entry.row as SlotRow;
    if (attempt > SLOT_ATTEMPTS_MAX) {
      this.#logger.error(`${key}: its slot was begun ${attempt - 1} times and the process never outlived it; left out`);
      return true;
    }
    const held = this.#hold(entry);
    try {
      abort.signal.throwIfAborted();
      await schedule.run({ schedule: schedule.name, slotMs, attempt, signal: abort.signal });
    } catch (thrown) {
      if (abort.signal.aborted) return false;
      this.#logger.error(`${key} failed, and comes again at its next slot: ${reasonOf(thrown)}`);
    } finally {
      await held.end();
    }
    return true;
  }

  /** Says from time to time that the slot is still run here. */
  #hold(entry: Armed): { end(): Promise<void> } {
    let saying: Promise<void> = Promise.resolve();
    let timer: Timer;
    const wait = () => {
      timer = this.#host.timer(this.#leaseMs / 3, () => {
        saying = this.#renew(entry);
        wait();
      });
    };
    wait();
    return {
      end: () => {
        timer.cancel();
        return saying;
      },
    };
  }

  async #renew(entry: Armed): Promise<void> {
    const row = entry.row as SlotRow;
    const renewed = heldRow(row, row.attempt, this.#host.now() + this.#leaseMs);
    try {
      const [held] = await this.#due.changeDue([take(row), renewed.put]);
      if (!held) this.#logger.warn(`${entry.key}: took longer than it was held for, and another process runs it too`);
    } catch (thrown) {
      this.#logger.warn(`${entry.key}: the store could not note that it still runs: ${reasonOf(thrown)}`);
    }
  }

  /** Puts it down for its first slot after now, in the place of the one that is over. */
  async #arm(entry: Armed): Promise<void> {
    const { schedule, row } = entry;
    const { cron, timezone } = schedule;
    const nextMs = nextSlot({ cron, ...(timezone && { timezone }) }, row?.slotMs ?? 0, this.#host.now());
    const next = nextMs === undefined ? undefined : armedRow(schedule, nextMs);
    const [held] = await this.#due.changeDue([...(row ? [take(row)] : []), ...(next ? [next.put] : [])]);
    // Somebody has taken it over meanwhile, and sees to what comes next.
    if (row !== undefined && !held) await this.#look(entry);
    else entry.row = next;
  }

  /** Finds out which slot comes next, or who runs the one that has come. */
  async #look(entry: Armed): Promise<void> {
    const rows = slotsIn(await this.#due.dueRows(NEVER_MS, SCHEDULE_ROWS_MAX));
    const found = rows.find((row) => nameOf(row.schedule) === entry.key && isSameTiming(row.schedule, entry.schedule));
    entry.row = found;
    if (found === undefined) await this.#arm(entry);
  }

  /** A store that cannot write now is asked again until it can or the schedule ends; undefined when that is first. */
  async #stored<T>({ key, abort }: Armed, write: () => Promise<T>): Promise<T | undefined> {
    for (;;) {
      try {
        return await write();
      } catch (thrown) {
        if (abort.signal.aborted) return undefined;
        this.#logger.warn(`${key}: the store could not write, trying again: ${reasonOf(thrown)}`);
        await pause(this.#host, TIMER_RETRY_MS, { keepAlive: false });
      }
    }
  }
}
