/**
 * The board lists every asynchronous handler that runs in this process: entry point, handler, message, start, timeout.
 * SPEC: U60-U64, U113.
 *
 *     begin -> running -> ended
 *                 └ timeout -> left behind -> ended
 *
 * The entry points bound the number of running handlers. Handlers that are left behind have no bound: the board lists
 * the last of them and counts all. A synchronous handler never appears, because no query is answered while it runs.
 */
import type { Host } from "../host/host.ts";
import { HANDLER_TIMEOUT_MS, LEFT_BEHIND_FAULT, LEFT_BEHIND_LISTED_MAX, STUCK_MS_MIN } from "../limits.ts";

export type EntryPoint = "command" | "query" | "event" | "subscriber" | "stream";

/** The handler of a call. */
export interface WorkFacts {
  readonly entryPoint: EntryPoint;
  /** The capability, the subscriber or the stream. */
  readonly handler: string;
  /** 0 if the handler has no timeout. */
  readonly timeoutMs: number;
}

/** One running handler. */
export interface WorkView extends Omit<WorkFacts, "timeoutMs"> {
  /** Id and type of the message; of a stream, the id of the send and the word `send`. */
  readonly id: string;
  readonly type: string;
  readonly state: "running" | "stuck" | "left-behind";
  /** Wall clock when the handler was called. */
  readonly sinceMs: number;
  readonly ageMs: number;
  /** Absent if the handler has no timeout. */
  readonly timeoutMs?: number;
}

export interface WorkHealth {
  /** Asynchronous handlers that run and have not timed out. */
  readonly open: number;
  /** Age of the oldest of them; 0 if there is none. */
  readonly oldestMs: number;
  /** Those older than half their timeout, and than 30 s. */
  readonly stuck: number;
  /** Handlers that have timed out and still run. */
  readonly leftBehind: number;
}

/** Made by `begin`. */
export class WorkEntry implements WorkFacts {
  readonly entryPoint: EntryPoint;
  readonly handler: string;
  readonly id: string;
  readonly type: string;
  readonly timeoutMs: number;
  /** On the monotonic clock. */
  readonly since: number;
  isLeftBehind = false;

  constructor({ entryPoint, handler, timeoutMs }: WorkFacts, id: string, type: string, since: number) {
    this.entryPoint = entryPoint;
    this.handler = handler;
    this.id = id;
    this.type = type;
    this.timeoutMs = timeoutMs;
    this.since = since;
  }
}

export class WorkBoard {
  readonly #host: Host;
  /** In the order of their start. */
  readonly #running = new Set<WorkEntry>();
  /** The last ones, in the order of their timeouts. */
  readonly #leftBehind = new Set<WorkEntry>();
  #leftBehindCount = 0;
  /** How many each handler has left behind. */
  readonly #leftBy = new Map<string, number>();
  /** Handlers with ten or more left behind. */
  readonly #overrun = new Set<string>();
  /** Told when a handler has left ten behind; again only after it had fewer. */
  onOverrun: ((entry: WorkEntry, count: number) => void) | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  /** `id` and `type` are those of the message. */
  begin(facts: WorkFacts, id: string, type: string): WorkEntry {
    const entry = new WorkEntry(facts, id, type, this.#host.monotonic());
    this.#running.add(entry);
    return entry;
  }

  /** The handler has timed out. It runs on, and no caller waits for it. */
  leaveBehind(entry: WorkEntry): void {
    if (!this.#running.delete(entry)) return;
    entry.isLeftBehind = true;
    this.#leftBehindCount++;
    this.#countLeft(entry, 1);
    this.#leftBehind.add(entry);
    if (this.#leftBehind.size <= LEFT_BEHIND_LISTED_MAX) return;
    const [oldest] = this.#leftBehind;
    this.#leftBehind.delete(oldest as WorkEntry);
  }

  /** Called once for each entry. */
  end(entry: WorkEntry): void {
    if (!entry.isLeftBehind) {
      this.#running.delete(entry);
      return;
    }
    this.#leftBehindCount--;
    this.#countLeft(entry, -1);
    this.#leftBehind.delete(entry);
  }

  /** Whether some handler has left ten or more behind. */
  get isOverrun(): boolean {
    return this.#overrun.size > 0;
  }

  #countLeft(entry: WorkEntry, change: 1 | -1): void {
    const { handler } = entry;
    const count = (this.#leftBy.get(handler) ?? 0) + change;
    if (count === 0) this.#leftBy.delete(handler);
    else this.#leftBy.set(handler, count);
    if (count < LEFT_BEHIND_FAULT) this.#overrun.delete(handler);
    else if (!this.#overrun.has(handler)) {
      this.#overrun.add(handler);
      this.onOverrun?.(entry, count);
    }
  }

  health(): WorkHealth {
    const now = this.#host.monotonic();
    const [oldest] = this.#running;
    let stuck = 0;
    for (const entry of this.#running) if (isStuck(entry, now)) stuck++;
    const oldestMs = oldest === undefined ? 0 : Math.round(now - oldest.since);
    return { open: this.#running.size, oldestMs, stuck, leftBehind: this.#leftBehindCount };
  }

  /** Running handlers, the oldest first. */
  list(limit: number): WorkView[] {
    const now = this.#host.monotonic();
    const all = [...this.#leftBehind, ...this.#running].sort((a, b) => a.since - b.since);
    return all.slice(0, limit).map((entry) => this.#view(entry, now));
  }

  #view(entry: WorkEntry, now: number): WorkView {
    const { entryPoint, handler, id, type, timeoutMs, since, isLeftBehind } = entry;
    const state = isLeftBehind ? "left-behind" : isStuck(entry, now) ? "stuck" : "running";
    const ageMs = Math.round(now - since);
    const limited = timeoutMs === 0 ? {} : { timeoutMs };
    return { ...{ entryPoint, handler, id, type, state, ageMs, sinceMs: this.#host.now() - ageMs }, ...limited };
  }
}

/** A handler without a timeout is measured by the default timeout. */
function isStuck({ timeoutMs, since }: WorkEntry, now: number): boolean {
  return now - since > Math.max(STUCK_MS_MIN, (timeoutMs || HANDLER_TIMEOUT_MS) / 2);
}
