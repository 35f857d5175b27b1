/**
 * Journaled commands that are not delivered to this loop: another process shares the journal, and may have taken or
 * handled a command that a client asked for here. This component asks the journal for their status. SPEC: L43.
 *
 * ```
 *   idle ──a journaled command is not delivered──> asks the journal every second ──all delivered or settled──> idle
 * ```
 * If commands are delivered as soon as they are journaled, it asks for none. Of a long backlog it asks for a bounded
 * number at a time, in turn.
 */
import type { Host, Timer } from "../host/host.ts";
import { KEPT_ASKED_MAX, KEPT_LOOK_MS } from "../limits.ts";
import type { CommandJournal, KeptBefore } from "./command-journal.ts";
import type { PendingRequest } from "./pending-table.ts";

export interface KeptElsewhereParts {
  readonly host: Host;
  readonly journal: CommandJournal;
  /** Receives the status of a command; if it still waits, the callee calls `watch` again. */
  readonly found: (entry: PendingRequest, now: KeptBefore) => void;
}

/** A removed row was settled: retention has removed it. */
const REMOVED: KeptBefore = { status: "done" };
/** The journal gave no answer: it is asked again. */
const UNKNOWN: KeptBefore = { status: "pending" };

export class KeptElsewhere {
  readonly #parts: KeptElsewhereParts;
  readonly #watched = new Set<PendingRequest>();
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(parts: KeptElsewhereParts) {
    this.#parts = parts;
  }

  watch(entry: PendingRequest): void {
    this.#watched.add(entry);
    if (!this.#isStopped)
      this.#timer ??= this.#parts.host.timer(KEPT_LOOK_MS, () => void this.#look(), { keepAlive: false });
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #look(): Promise<void> {
    const { journal, found } = this.#parts;
    const asked = [...this.#watched].slice(0, KEPT_ASKED_MAX);
    for (const entry of asked) {
      this.#watched.delete(entry);
      const row = journal.find(entry.id);
      found(entry, await row.then((now = REMOVED) => now).catch(() => UNKNOWN));
    }
    this.#timer = undefined;
    for (const entry of this.#watched) return this.watch(entry);
  }
}
