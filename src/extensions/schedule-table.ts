/**
 * The due times of schedules: the slot of each (`schedule-slot.ts`), which survives the process and is run by one of
 * those that share the store, and one timer for the earliest. SPEC: X40-X48.
 *
 * ```
 *   waiting ──slot comes──> claiming ──got it──> running ──task ended, well or not──> waiting for the next slot
 *     ^                        │ another process has it      └─process ends──> held until it was silent for a lease,
 *     └──the row of now────────┘                            then claimed by another one: up to three times
 * ```
 * Which schedules there are it learns anew at every start; their slots it finds in the table. The next slot is computed
 * from now, so that slots which were missed, or passed while a task ran, fire once and not one by one. Not here: the
 * tasks.
 */
import type { Host, Timer } from "../host/host.ts";
import { pause } from "../host/pause.ts";
import {
  SCHEDULE_KEPT_MS,
  SCHEDULE_ROWS_MAX,
  SLOT_ATTEMPTS_MAX,
  TIMER_RETRY_MS,
  WALL_CLOCK_LOOK_MS,
} from "../limits.ts";
import { extensionReason } from "./extension-error.ts";
import type { Logger } from "./logger.ts";
import type { ScheduledRun } from "./providers.ts";
import {
  isOutdated,
  NEVER_MS,
  SCHEDULE_KIND,
  type ScheduleDueTable,
  type ScheduleName,
  slotIn,
  takeAsRead,
} from "./schedule-row.ts";
import { ScheduleSlot, type SlotParts } from "./schedule-slot.ts";

export interface ExtensionSchedule extends ScheduleName {
  /** Runs the task. A throw is logged, and the next slot comes as usual. */
  run(slot: ScheduledRun): Promise<void>;
}

/** Begins the owner of a schedule that belongs to an app: extension ids cannot begin with it. */
export const APP_OWNER = "app:";

/** A schedule, and when it runs next. */
export interface ScheduleStatus {
  readonly name: string;
  readonly cron: string;
  /** Undefined while it runs, and when it never comes due again. */
  readonly nextMs: number | undefined;
}

interface Entry {
  readonly schedule: ExtensionSchedule;
  readonly slot: ScheduleSlot;
  state: "waiting" | "running";
  readonly abort: AbortController;
}

export interface ScheduleTableParts {
  readonly host: Host;
  readonly due: ScheduleDueTable;
  readonly logger: Logger;
  /** How long a slot is held without a sign of life. */
  readonly leaseMs: number;
  /** No other process has the store: other holders are dead, and a schedule that is not known here has no owner. */
  readonly alone: boolean;
}

export class ScheduleTable {
  readonly #host: Host;
  readonly #logger: Logger;
  readonly #slots: SlotParts;
  readonly #entries = new Map<string, Entry>();
  #timer: Timer | undefined;
  #closed = false;
  readonly #running = new Set<Promise<void>>();

  constructor({ host, due, logger, leaseMs, alone }: ScheduleTableParts) {
    this.#host = host;
    this.#logger = logger;
    this.#slots = { host, due, leaseMs, alone, holder: host.id() };
  }

  get busy(): boolean {
    return this.#running.size > 0;
  }

  /** From now on it fires. The slot that is there is taken over, unless the schedule was changed. */
  async add(schedule: ExtensionSchedule): Promise<() => void> {
    const slot = await ScheduleSlot.of(this.#slots, schedule);
    const entry: Entry = { schedule, slot, state: "waiting", abort: new AbortController() };
    this.#entries.set(slot.key, entry);
    this.#rearm();
    return () => this.#remove(entry);
  }

  /**
   * All schedules of this process have been added; rows of others are removed. Not rows of extensions that have failed;
   * and if processes share the store, not rows that were run lately, which may be another's. Rows of an older version
   * have no owner.
   */
  async settle(hasFailed: (extensionId: string) => boolean): Promise<void> {
    const { due, alone } = this.#slots;
    const since = alone ? NEVER_MS : due.now() - SCHEDULE_KEPT_MS;
    const left: string[] = [];
    const outdated: string[] = [];
    for (const stored of await due.dueRows(NEVER_MS, SCHEDULE_ROWS_MAX, SCHEDULE_KIND)) {
      const row = slotIn(stored);
      if (this.#entries.has(stored.key) || (row && hasFailed(row.schedule.extensionId))) continue;
      const isOld = isOutdated(stored);
      if (isOld) outdated.push(stored.key);
      if (isOld || (row?.slotMs ?? NEVER_MS) <= since) await due.changeDue([takeAsRead(stored)]);
      else left.push(stored.key);
    }
    if (outdated.length > 0)
      this.#logger.warn(`slots that an older version has left are removed, and come anew: ${outdated.join(", ")}`);
    if (left.length > 0) this.#logger.info(`schedules that are not known here are left to others: ${left.join(", ")}`);
  }

  statuses(extensionId: string): ScheduleStatus[] {
    return [...this.#entries.values()]
      .filter(({ schedule }) => schedule.extensionId === extensionId)
      .map(({ schedule: { name, cron }, slot, state }) => {
        return { name, cron, nextMs: state === "waiting" ? slot.slotMs : undefined };
      });
  }

  /**
   * Starts no more tasks, and waits for running ones within the grace; then aborts them and leaves their slots to the
   * next process.
   */
  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    const { promise: enough, resolve } = Promise.withResolvers<void>();
    const timer = this.#host.timer(graceMs, resolve);
    await Promise.race([this.idle(), enough]);
    timer.cancel();
    for (const { abort } of this.#entries.values()) abort.abort(new Error("the kernel is shutting down"));
    await Promise.all([...this.#entries.values()].map(({ slot }) => this.#letGo(slot)));
  }

  /** Resolves when no task runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #remove(entry: Entry): void {
    entry.abort.abort(new Error("the extension has stopped"));
    if (this.#entries.get(entry.slot.key) !== entry) return;
    this.#entries.delete(entry.slot.key);
    this.#rearm();
  }

  // Waiting ---------------------------------------------------------------------------------------------------------

  #rearm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#closed) return;
    let earliest = Number.POSITIVE_INFINITY;
    for (const { state, slot } of this.#entries.values())
      if (state === "waiting") earliest = Math.min(earliest, slot.waitMs());
    if (earliest === Number.POSITIVE_INFINITY) return;
    // Not for long at a time: the wall clock may be put forward, or the machine sleep.
    const waitMs = Math.min(Math.max(0, earliest), WALL_CLOCK_LOOK_MS);
    this.#timer = this.#host.timer(waitMs, () => this.#fireDue());
  }

  #fireDue(): void {
    for (const entry of this.#entries.values()) {
      if (entry.state !== "waiting" || entry.slot.waitMs() > 0) continue;
      entry.state = "running";
      const running = this.#fire(entry).finally(() => {
        this.#running.delete(running);
        entry.state = "waiting";
        this.#rearm();
      });
      this.#running.add(running);
    }
    this.#rearm();
  }

  // Running ---------------------------------------------------------------------------------------------------------

  async #fire(entry: Entry): Promise<void> {
    const { slot } = entry;
    if (!(await this.#stored(entry, () => slot.claim()))) return;
    if (await this.#run(entry)) await this.#stored(entry, () => slot.arm());
    else await this.#letGo(slot);
  }

  /** Runs the task; false if it was broken off, and the slot is to be run again. */
  async #run({ schedule, slot, abort }: Entry): Promise<boolean> {
    const { key, slotMs = NEVER_MS, attempt } = slot;
    if (attempt > SLOT_ATTEMPTS_MAX) {
      this.#logger.error(`${key}: its slot was begun ${attempt - 1} times and the process never outlived it; left out`);
      return true;
    }
    const held = this.#hold(slot);
    try {
      abort.signal.throwIfAborted();
      await schedule.run({ schedule: schedule.name, slotMs, attempt, signal: abort.signal });
    } catch (thrown) {
      if (abort.signal.aborted) return false;
      this.#logger.error(`${key} failed, and comes again at its next slot: ${extensionReason(thrown)}`);
    } finally {
      await held.end();
    }
    return true;
  }

  /** Says from time to time that the slot is still run here. */
  #hold(slot: ScheduleSlot): { end(): Promise<void> } {
    let ended = false;
    let saying: Promise<boolean> = Promise.resolve(true);
    let timer: Timer;
    const wait = () => {
      timer = this.#host.timer(this.#slots.leaseMs / 3, () => {
        saying = this.#renew(slot);
        void saying.then((isHeld) => isHeld && !ended && wait());
      });
    };
    wait();
    return {
      end: async () => {
        ended = true;
        timer.cancel();
        await saying;
      },
    };
  }

  /** False if another process has taken the slot. */
  async #renew(slot: ScheduleSlot): Promise<boolean> {
    try {
      if (await slot.renew()) return true;
      this.#logger.warn(`${slot.key}: took longer than it was held for, and another process runs it too`);
      return false;
    } catch (thrown) {
      this.#logger.warn(`${slot.key}: the store could not note that it still runs: ${extensionReason(thrown)}`);
      return true;
    }
  }

  /** If it fails, the row is unchanged, and the next process waits a little longer. */
  async #letGo(slot: ScheduleSlot): Promise<void> {
    try {
      await slot.letGo();
    } catch (thrown) {
      this.#logger.warn(`${slot.key}: its slot could not be left to others: ${extensionReason(thrown)}`);
    }
  }

  /** A store that cannot write now is asked again until it can or the schedule ends; undefined when that is first. */
  async #stored<T>({ slot, abort }: Entry, write: () => Promise<T>): Promise<T | undefined> {
    for (;;) {
      try {
        return await write();
      } catch (thrown) {
        if (abort.signal.aborted) return undefined;
        this.#logger.warn(`${slot.key}: the store could not write, trying again: ${extensionReason(thrown)}`);
        await pause(this.#host, TIMER_RETRY_MS, { keepAlive: false });
      }
    }
  }
}
