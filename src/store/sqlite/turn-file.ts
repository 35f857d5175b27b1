/**
 * Turns between processes that write to one file. The engine's lock has no queue: a process that writes batch after batch takes
 * it again before the other one looks. So a process that had to wait leaves a note beside the file (`<file>-turn`), and whoever
 * finds a note of somebody else pauses between two batches until the note is gone or the pause is over.
 *
 * A note is a hint and nothing else: losing one costs a little waiting, a stale one (its process died) is removed after a second.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Host } from "../../host/host.ts";

const STALE_MS = 1_000;
/** Between two looks that find nothing: a look is a system call, and publishing one event takes hardly longer. */
const LOOK_MS = 5;

export class TurnFile {
  readonly #path: string;
  readonly #host: Host;
  /** Tells our note from that of others; several stores of one process are others too. */
  readonly #token: string;
  #isLeft = false;
  /** When a look last found no note of somebody else. By the monotonic clock. */
  #foundNoneAtMs = Number.NEGATIVE_INFINITY;

  constructor(databasePath: string, host: Host) {
    this.#path = `${databasePath}-turn`;
    this.#host = host;
    this.#token = host.id();
  }

  /** Asks for a turn. */
  leave(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    attempt(() => writeFileSync(this.#path, `${this.#token} ${this.#host.now()}`, { mode: 0o600 }));
  }

  /** The turn came, or is no longer wanted. */
  take(): void {
    if (!this.#isLeft) return;
    this.#isLeft = false;
    if (this.#read()?.token === this.#token) attempt(() => rmSync(this.#path, { force: true }));
  }

  /** Whether somebody else waits for a turn. */
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
    // Asked before every batch, and there almost never: a look is cheaper than an error.
    if (!existsSync(this.#path)) return undefined;
    const [token, at] = attempt(() => readFileSync(this.#path, "utf8"))?.split(" ") ?? [];
    return token === undefined || at === undefined ? undefined : { token, atMs: Number(at) };
  }
}

/** A note that cannot be written or read is no note; nothing depends on it. */
function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}
