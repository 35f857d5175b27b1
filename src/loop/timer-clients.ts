/**
 * Counts the waiting timers of each client, so that one client cannot fill the due table for all others. A timer that
 * another kernel fires is not seen here; so at the bound the rows are counted, at most once in a poll interval. SPEC:
 * T14.
 */
import type { Host } from "../host/host.ts";
import { POLL_INTERVAL_MS, TIMER_CLIENTS_COUNTED_MAX, TIMERS_REFIRED_MAX } from "../limits.ts";
import { Failure } from "../message/error-data.ts";
import type { Sender } from "../work/timer-row.ts";
import { TIMER_KIND, type TimerRows, timerIn } from "../work/timer-row.ts";

interface Count {
  timers: number;
  /** When the rows were counted last, by the monotonic clock. */
  countedAt: number;
}

export interface TimerClientsParts {
  readonly host: Host;
  readonly rows: TimerRows;
  readonly timersPerClientMax: number;
}

export class TimerClients {
  readonly #parts: TimerClientsParts;
  /** By client, in the order of their last timers. */
  readonly #counts = new Map<string, Count>();

  constructor(parts: TimerClientsParts) {
    this.#parts = parts;
  }

  /** Counts one more timer of a client, before it is set; throws at the bound. */
  async add(sender: Sender | undefined): Promise<void> {
    const { timersPerClientMax } = this.#parts;
    if (sender?.kind !== "client") return;
    const count = this.#counts.get(sender.id) ?? { timers: 0, countedAt: Number.NEGATIVE_INFINITY };
    if (count.timers >= timersPerClientMax) await this.#recount(sender.id, count);
    if (count.timers >= timersPerClientMax)
      throw new Failure(
        503,
        `this client has ${timersPerClientMax} timers waiting; cancel some, or wait until some fired`,
      );
    count.timers++;
    this.#counts.delete(sender.id);
    this.#counts.set(sender.id, count);
    if (this.#counts.size <= TIMER_CLIENTS_COUNTED_MAX) return;
    for (const oldest of this.#counts.keys()) {
      this.#counts.delete(oldest);
      return;
    }
  }

  /** A timer of a client has fired, was cancelled, or was not set. */
  remove(sender: Sender | undefined): void {
    if (sender?.kind !== "client") return;
    const count = this.#counts.get(sender.id);
    if (count === undefined) return;
    count.timers--;
    if (count.timers <= 0) this.#counts.delete(sender.id);
  }

  async #recount(client: string, count: Count): Promise<void> {
    const { host, rows } = this.#parts;
    if (host.monotonic() - count.countedAt < POLL_INTERVAL_MS) return;
    count.countedAt = host.monotonic();
    let timers = 0;
    for (const row of await rows.dueRows(Number.MAX_SAFE_INTEGER, TIMERS_REFIRED_MAX, TIMER_KIND)) {
      const { sender } = timerIn(row).data;
      if (sender?.kind === "client" && sender.id === client) timers++;
    }
    count.timers = timers;
  }
}
