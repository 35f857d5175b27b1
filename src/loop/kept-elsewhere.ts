/**
 * Commands that this loop has kept and that are not delivered to it: another process shares the journal, and may take what was kept here, or have in hand
 * what is asked for here under the same id. So the journal is asked what became of them. SPEC: L43.
 *
 * ```
 *   nothing ──a command is kept and not delivered──> once a second the journal is asked ──each was delivered, or is settled──> nothing
 * ```
 * Where commands are delivered as soon as they are kept, nothing is asked. Of a long backlog a bounded number is asked for at a time, by turns.
 */
import type { Host, Timer } from "../host/host.ts";
import { KEPT_ASKED_MAX, KEPT_LOOK_MS } from "../limits.ts";
import type { CommandJournal, KeptBefore } from "./command-journal.ts";
import type { PendingRequest } from "./pending-table.ts";

export interface KeptElsewhereParts {
  readonly host: Host;
  readonly journal: CommandJournal;
  /** Tells what the journal says of a command; whoever still waits for it calls `watch` again. */
  readonly found: (entry: PendingRequest, now: KeptBefore) => void;
}

/** A row that is there no more was settled: retention has removed it. */
const REMOVED: KeptBefore = { status: "done" };
/** The journal did not say: it is asked again. */
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
