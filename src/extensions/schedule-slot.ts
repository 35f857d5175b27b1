/**
 * One schedule's slot as this process knows it: its row of the due table (`schedule-row.ts`), and since when it is
 * known to be so. It is claimed, held, put down for the next slot or left to others, each time only if it is still as
 * it is known. SPEC: X43, X44, X47.
 *
 * Whether a process that holds a slot is alive is measured on the own monotonic clock, by whether its row changes: the
 * clocks of several machines are never compared. Not here: the times of looking at a slot, and its task.
 */
import type { Host } from "../host/host.ts";
import { SCHEDULE_ROWS_MAX, SLOT_TRIES_MAX } from "../limits.ts";
import { nextSlot } from "../work/schedule.ts";
import { ExtensionError } from "./extension-error.ts";
import {
  add,
  type DueTableRow,
  freeRow,
  isOutdated,
  isSameRow,
  isSameTiming,
  NEVER_MS,
  nameOf,
  put,
  SCHEDULE_KIND,
  type ScheduleDueTable,
  type ScheduleName,
  type SlotRow,
  slotIn,
  type Timing,
  take,
  takeAsRead,
} from "./schedule-row.ts";

export interface SlotParts {
  readonly host: Host;
  readonly due: ScheduleDueTable;
  /** This process, in the rows that it holds. */
  readonly holder: string;
  /** How long a slot is held without a sign of life. */
  readonly leaseMs: number;
  /** No other process has the store: other holders are dead. */
  readonly alone: boolean;
}

export class ScheduleSlot {
  readonly key: string;
  readonly #parts: SlotParts;
  readonly #schedule: ScheduleName;
  #row: SlotRow;
  /** Since when the row is known to be so, on the monotonic clock. */
  #sinceMs: number;

  private constructor(parts: SlotParts, schedule: ScheduleName, row: SlotRow) {
    this.key = nameOf(schedule);
    this.#parts = parts;
    this.#schedule = schedule;
    this.#row = row;
    this.#sinceMs = parts.host.monotonic();
  }

  /**
   * The slot that is there, if it has the schedule's timing; else its first one, which of several processes one writes.
   */
  static async of(parts: SlotParts, { extensionId, name, cron, timezone, does }: ScheduleName): Promise<ScheduleSlot> {
    const schedule = { extensionId, name, cron, timezone, does };
    return new ScheduleSlot(parts, schedule, await establish(parts, schedule));
  }

  /** Undefined when it never comes due again. */
  get slotMs(): number | undefined {
    return this.#row.slotMs === NEVER_MS ? undefined : this.#row.slotMs;
  }

  /** Starts so far. */
  get attempt(): number {
    return this.#row.attempt;
  }

  get #isMine(): boolean {
    return this.#row.hold?.by === this.#parts.holder;
  }

  /**
   * How long until it may be claimed: until its time, and while it is held until its holder has been silent for long.
   */
  waitMs(): number {
    const { host, due, alone } = this.#parts;
    const { slotMs, hold } = this.#row;
    if (slotMs === NEVER_MS) return Number.POSITIVE_INFINITY;
    const untilSlotMs = slotMs - due.now();
    if (hold === undefined || alone) return untilSlotMs;
    return Math.max(untilSlotMs, this.#sinceMs + hold.forMs - host.monotonic());
  }

  /** Makes it this process's, for one more attempt; false if another process was first. */
  async claim(): Promise<boolean> {
    const { holder: by, leaseMs: forMs, alone } = this.#parts;
    // The holder may have renewed it since.
    if (this.#row.hold !== undefined && !alone) await this.#look();
    if (this.waitMs() > 0) return false;
    return this.#replace({ ...this.#row, attempt: this.#row.attempt + 1, hold: { by, forMs, beat: 1 } });
  }

  /** Says that it is still run here; false if another process has taken it over. */
  async renew(): Promise<boolean> {
    const { hold } = this.#row;
    if (hold === undefined || !this.#isMine) return hold === undefined;
    return (
      (await this.#replace({ ...this.#row, hold: { ...hold, beat: hold.beat + 1 } })) || this.#row.hold === undefined
    );
  }

  /**
   * Puts down the first slot after now in the place of the one that is over. One that was taken over is the other's to
   * put down.
   */
  async arm(): Promise<void> {
    await this.#end(({ schedule, slotMs }) => {
      // Of kernels that say differently when it comes, the one that was opened last has it.
      const { cron, timezone } = schedule;
      return freeRow({ ...this.#schedule, cron, timezone }, slotAfter(this.#parts, schedule, slotMs));
    });
  }

  /** Leaves it to the next process. */
  async letGo(): Promise<void> {
    await this.#end(({ schedule, slotMs, attempt }) => freeRow(schedule, slotMs, attempt));
  }

  /** Puts another row in the place of the one that this process holds, for as long as it holds it. */
  async #end(next: (row: SlotRow) => SlotRow): Promise<void> {
    while (this.#isMine && !(await this.#replace(next(this.#row))));
  }

  /**
   * Puts another row in the place of the one that is known here; false if that one is not there any more, and then it
   * is known which is.
   */
  async #replace(next: SlotRow): Promise<boolean> {
    const [done = false] = await this.#parts.due.changeDue([take(this.#row), put(next)]);
    if (done) this.#note(next);
    else await this.#look();
    // A write whose answer was lost may have done it before.
    return done || isSameRow(this.#row, next);
  }

  async #look(): Promise<void> {
    this.#note((await find(this.#parts, this.key)) ?? (await establish(this.#parts, this.#schedule)));
  }

  #note(row: SlotRow): void {
    if (isSameRow(this.#row, row)) return;
    this.#row = row;
    this.#sinceMs = this.#parts.host.monotonic();
  }
}

async function establish(parts: SlotParts, schedule: ScheduleName): Promise<SlotRow> {
  const key = nameOf(schedule);
  for (let tries = 0; tries < SLOT_TRIES_MAX; tries++) {
    const stored = await findStored(parts, key);
    const row = stored && slotIn(stored);
    if (row !== undefined && isSameTiming(row.schedule, schedule)) return row;
    const first = freeRow(schedule, slotAfter(parts, schedule, 0));
    const isReplaced = stored !== undefined && (row !== undefined || isOutdated(stored));
    const [done] = await parts.due.changeDue(isReplaced ? [takeAsRead(stored), put(first)] : [add(first)]);
    if (done) return first;
  }
  throw new ExtensionError(
    "EXTENSION_SCHEDULE",
    `the row ${key} of the due table cannot be read, or changes all the time; was it written by another version?`,
  );
}

async function find(parts: SlotParts, key: string): Promise<SlotRow | undefined> {
  const stored = await findStored(parts, key);
  return stored && slotIn(stored);
}

async function findStored({ due }: SlotParts, key: string): Promise<DueTableRow | undefined> {
  return (await due.dueRows(NEVER_MS, SCHEDULE_ROWS_MAX, SCHEDULE_KIND)).find((row) => row.key === key);
}

function slotAfter({ due }: SlotParts, { cron, timezone }: Timing, slotMs: number): number {
  return nextSlot({ cron, ...(timezone && { timezone }) }, slotMs, due.now()) ?? NEVER_MS;
}
