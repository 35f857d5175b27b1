/**
 * The engine's write lock, shared by processes on one file. SPEC: S93, S97. There is no busy handler, because it would
 * block the event loop: the caller retries a refused lock after a moment.
 *
 *   free ──take──> held ──COMMIT, ROLLBACK──> free          the engine's part
 *    │  ^
 *    │  └── again, in a moment: refused so far, or another process left a note (`write-turns.ts`) and goes first
 *    └────── refused for too long
 */
import type { Host } from "../../host/host.ts";
import type { SqliteConnection, Statement } from "./connection.ts";
import type { ResolvedOptions } from "./options.ts";
import { engineTrouble } from "./sqlite-error.ts";
import { FileTurns } from "./write-turns.ts";

export type LockAnswer =
  | { readonly kind: "held" }
  | { readonly kind: "again"; readonly inMs: number }
  | { readonly kind: "refused"; readonly waitedMs: number };

const HELD: LockAnswer = { kind: "held" };

/** How long a process pauses for another one. */
const PAUSE_MS = 5;
/** After a refusal for this long, a process requests a turn. */
const ASK_AFTER_MS = 2;
const RETRY_MS = 1;

export class WriteLock {
  readonly #host: Host;
  readonly #waitMs: number;
  readonly #turn: FileTurns;
  readonly #begin: Statement;
  /** The time of the first refusal; undefined if there is none. */
  #refusedSince: number | undefined;
  /** The start of the pause for another process; undefined outside of a pause. */
  #pausedSince: number | undefined;

  constructor(connection: SqliteConnection, { path, host, tuning }: ResolvedOptions) {
    this.#host = host;
    this.#waitMs = tuning.lockWaitMs;
    this.#turn = new FileTurns(path, host);
    this.#begin = connection.prepare("BEGIN IMMEDIATE");
  }

  /** Begins a write transaction. Throws errors other than a busy lock. */
  take(): LockAnswer {
    if (this.#pausesForOthers()) return { kind: "again", inMs: RETRY_MS };
    try {
      this.#begin.run();
    } catch (error) {
      if (engineTrouble(error) !== "busy") throw error;
      return this.#refused();
    }
    this.giveUp();
    return HELD;
  }

  /** Begins another transaction right after a rollback, for the same jobs. */
  takeAgain(): void {
    this.#begin.run();
  }

  /** The lock was taken, or is no longer needed. */
  giveUp(): void {
    this.#refusedSince = undefined;
    this.#turn.take();
  }

  /** True while another process should go first. */
  #pausesForOthers(): boolean {
    if (this.#refusedSince !== undefined || !this.#turn.isAskedFor()) {
      this.#pausedSince = undefined;
      return false;
    }
    const now = this.#host.monotonic();
    this.#pausedSince ??= now;
    if (now - this.#pausedSince < PAUSE_MS) return true;
    this.#pausedSince = undefined;
    return false;
  }

  #refused(): LockAnswer {
    const now = this.#host.monotonic();
    this.#refusedSince ??= now;
    const waitedMs = now - this.#refusedSince;
    if (waitedMs >= this.#waitMs) {
      this.giveUp();
      return { kind: "refused", waitedMs };
    }
    if (waitedMs >= ASK_AFTER_MS) this.#turn.leave();
    return { kind: "again", inMs: RETRY_MS * (0.5 + this.#host.random()) };
  }
}
