/**
 * Copying the write-ahead log into the database, once it is long. The engine would do it inside a COMMIT, where it delays
 * everybody who waits for that COMMIT, and would hide its errors; so it is done between batches, and here.
 *
 * It is passive: it copies what no reader still needs and waits for nobody. When all of the log was copied, the next write
 * starts the log anew.
 */
import type { Connection, Statement } from "./connection.ts";

export class Checkpoints {
  readonly #pagesMax: number;
  readonly #look: Statement;
  readonly #copy: Statement;
  #isDue = false;

  constructor(connection: Connection, pagesMax: number) {
    this.#pagesMax = pagesMax;
    this.#look = connection.prepare("PRAGMA wal_checkpoint(NOOP)");
    this.#copy = connection.prepare("PRAGMA wal_checkpoint(PASSIVE)");
  }

  /** True once for every time that the log has become long; `run` is expected to follow. */
  becomesDue(): boolean {
    if (this.#isDue) return false;
    const { log, checkpointed } = this.#look.get() ?? {};
    this.#isDue = Number(log) - Number(checkpointed) >= this.#pagesMax;
    return this.#isDue;
  }

  run(): void {
    this.#isDue = false;
    this.#copy.get();
  }
}
