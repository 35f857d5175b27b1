/**
 * Fairness between processes that write to one file. The engine's lock has no queue: a process that writes constantly
 * retakes it before others try. So a process that had to wait leaves a note beside the file (`<file>-turn`), and others
 * that find it pause between two batches until the note is gone or the pause is over.
 *
 * A note is only a hint: a lost one costs a short wait, and a stale one (its process died) is removed after a second.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Host } from "../../host/host.ts";

const STALE_MS = 1_000;
/**
 * Delay between two checks without a result: a check is a system call, and takes almost as long as publishing one
 * event.
 */
const LOOK_MS = 5;

export class FileTurns {
  readonly #path: string;
  readonly #host: Host;
  /** Distinguishes our note from others, also those of other stores in this process. */
  readonly #token: string;
  #isLeft = false;
  /** The last check that found no foreign note, by the monotonic clock. */
  #foundNoneAtMs = Number.NEGATIVE_INFINITY;

  constructor(databasePath: string, host: Host) {
    this.#path = `${databasePath}-turn`;
    this.#host = host;
    this.#token = host.id();
  }

  /** Requests a turn. */
  leave(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    attempt(() => writeFileSync(this.#path, `${this.#token} ${this.#host.now()}`, { mode: 0o600 }));
  }

  /** The turn came, or is no longer needed. */
  take(): void {
    if (!this.#isLeft) return;
    this.#isLeft = false;
    if (this.#read()?.token === this.#token) attempt(() => rmSync(this.#path, { force: true }));
  }

  /** Whether another process waits for a turn. */
  isAskedFor(): boolean {
    const nowMs = this.#host.monotonic();
    if (nowMs - this.#foundNoneAtMs < LOOK_MS) return false;
    const note = this.#read();
    if (!note || note.token === this.#token) {
      this.#foundNoneAtMs = nowMs;
      return false;
    }
    if (Math.abs(this.#host.now() - note.atMs) <= STALE_MS) return true;
    attempt(() => rmSync(this.#path, { force: true }));
    return false;
  }

  #read(): { token: string; atMs: number } | undefined {
    // Checked before every batch and almost always absent: `existsSync` is cheaper than an exception.
    if (!existsSync(this.#path)) return undefined;
    const [token, at] = attempt(() => readFileSync(this.#path, "utf8"))?.split(" ") ?? [];
    return token === undefined || at === undefined ? undefined : { token, atMs: Number(at) };
  }
}

/** Errors are ignored, because the note is only a hint. */
function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}
