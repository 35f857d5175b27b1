/**
 * Commands that this loop has kept and that are not delivered to it: another process shares the journal, and may take
 * what was kept here. The journal is asked for their outcome. SPEC: L43, L111.
 *
 * ```
 *   none ──a command is kept and not delivered──> waiting ──another process writes to the journal, or 5 s──> asking
 *    ^                                               ^                                                      │
 *    └────────────each was delivered or settled──────┴──────────────────────────some are left───────────────┘
 * ```
 * Commands that are delivered as soon as they are kept cost no question: only writes of other processes wake it.
 * Of a long backlog a bounded number is asked for at a time, by turns.
 */
import type { Host, Timer } from "../host/host.ts";
import { KEPT_ASKED_MAX, KEPT_LOOK_MS, KEPT_LOOK_PAUSE_MS } from "../limits.ts";
import type { CommandJournal, KeptBefore } from "./command-journal.ts";
import type { PendingRequest } from "./pending-request.ts";

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
  #state: "none" | "waiting" | "asking" | "stopped" = "none";
  #timer: Timer | undefined;
  /** Another process has written since the last question. */
  #isWoken = false;
  /** No question before this time, by the monotonic clock. */
  #pauseUntilMs = 0;
  #unwatch: (() => void) | undefined;

  constructor(parts: KeptElsewhereParts) {
    this.#parts = parts;
  }

  watch(entry: PendingRequest): void {
    this.#watched.add(entry);
    if (this.#state !== "none") return;
    this.#unwatch ??= this.#parts.journal.onForeignChange?.(() => this.#wake());
    this.#wait();
  }

  stop(): void {
    this.#state = "stopped";
    this.#timer?.cancel();
    this.#unwatch?.();
  }

  #wake(): void {
    if (this.#state === "none" || this.#state === "stopped" || this.#isWoken) return;
    this.#isWoken = true;
    if (this.#state === "waiting") this.#wait();
  }

  #wait(): void {
    const { host } = this.#parts;
    this.#state = "waiting";
    this.#timer?.cancel();
    const delayMs = this.#isWoken ? Math.max(0, this.#pauseUntilMs - host.monotonic()) : KEPT_LOOK_MS;
    this.#timer = host.timer(delayMs, () => void this.#ask(), { keepAlive: false });
  }

  async #ask(): Promise<void> {
    const { host, journal, found } = this.#parts;
    this.#state = "asking";
    this.#isWoken = false;
    const startMs = host.monotonic();
    const asked = [...this.#watched].slice(0, KEPT_ASKED_MAX);
    for (const entry of asked) {
      this.#watched.delete(entry);
      const row = journal.find(entry.id);
      found(entry, await row.then((now = REMOVED) => now).catch(() => UNKNOWN));
    }
    if (this.#isStopped) return;
    this.#pauseUntilMs = host.monotonic() + Math.max(KEPT_LOOK_PAUSE_MS, 2 * (host.monotonic() - startMs));
    if (this.#watched.size > 0) return this.#wait();
    this.#state = "none";
    this.#unwatch?.();
    this.#unwatch = undefined;
  }

  /** `stop` may be called while the journal is asked. */
  get #isStopped(): boolean {
    return this.#state === "stopped";
  }
}
