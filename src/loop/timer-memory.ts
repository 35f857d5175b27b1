/**
 * Timers of a loop without a store: a due table in memory, bounded, that ends with the process. An id is known while
 * its timer waits or is sent; without a store there are no receipts. SPEC: T10, T13.
 */
import type { Host } from "../host/host.ts";
import { Failure } from "../message/error-data.ts";
import { changeInOrder, type DueChange, type DueRow } from "../store/due.ts";
import { DueTable } from "../store/memory/due-table.ts";
import {
  type ArmedTimer,
  armed,
  FIRED_KIND,
  firingIn,
  TIMER_KIND,
  type TimerRows,
  timerIn,
} from "../work/timer-row.ts";

export class TimerMemory implements TimerRows {
  readonly #table = new DueTable();
  readonly #host: Host;
  readonly #timersMax: number;

  constructor(host: Host, timersMax: number) {
    this.#host = host;
    this.#timersMax = timersMax;
  }

  /** Arms a timer; false if the same request has armed it before. */
  set(timer: ArmedTimer): boolean {
    const { id } = timer;
    const waiting = this.#table.row(TIMER_KIND, id);
    const fired = this.#table.row(FIRED_KIND, id);
    const known = waiting ? timerIn(waiting).data : fired && firingIn(fired).data;
    if (known !== undefined && known.request !== timer.data.request)
      throw new Failure(409, "the id of this request was used before, for another timer; choose another", {
        reason: "ID_REUSED",
      });
    if (known !== undefined) return false;
    if (this.#table.size(TIMER_KIND) >= this.#timersMax)
      throw new Failure(503, `${this.#timersMax} timers wait already; cancel some, or set it when some have fired`);
    return this.#table.change(armed(timer));
  }

  now(): number {
    return this.#host.now();
  }

  async changeDue(changes: readonly DueChange[]): Promise<readonly boolean[]> {
    return changeInOrder(changes, (change) => this.#table.change(change));
  }

  async dueRows(nowMs: number, limit: number, kind?: string): Promise<readonly DueRow[]> {
    return this.#table.due(nowMs, limit, kind);
  }

  async dueRow(kind: string, key: string): Promise<DueRow | undefined> {
    return this.#table.row(kind, key);
  }

  async earliestDue(kind?: string): Promise<number | undefined> {
    return this.#table.earliest(kind);
  }
}
