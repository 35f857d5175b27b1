/**
 * Copying the write-ahead log into the database, once it is long. The engine would do it inside a COMMIT, where it delays
 * everybody who waits for that COMMIT, and would hide its errors; so it is done between batches, and here.
 *
 * It is passive: it copies what no reader still needs and waits for nobody. When all of the log was copied, the next write
 * starts the log anew.
 */
import type { Connection, Statement, WorkCount } from "./connection.ts";

/** How much is written between two looks at the log's length: each takes as long as a tenth of a single publish. */
const LOOK_AFTER_STATEMENTS = 64;
const LOOK_AFTER_BYTES = 262_144;

export class Checkpoints {
  readonly #work: WorkCount;
  readonly #pagesMax: number;
  readonly #look: Statement;
  readonly #copy: Statement;
  #isDue = false;
  /** Of `#work`, at the last look. */
  #statementsSeen = 0;
  #bytesSeen = 0;

  constructor(connection: Connection, pagesMax: number) {
    this.#work = connection.work;
    this.#pagesMax = pagesMax;
    this.#look = connection.prepare("PRAGMA wal_checkpoint(NOOP)");
    this.#copy = connection.prepare("PRAGMA wal_checkpoint(PASSIVE)");
  }

  /** True once for every time that the log has become long; `run` is expected to follow. */
  becomesDue(): boolean {
    const { statements, bytesWritten } = this.#work;
    const isLittle =
      statements - this.#statementsSeen < LOOK_AFTER_STATEMENTS && bytesWritten - this.#bytesSeen < LOOK_AFTER_BYTES;
    if (this.#isDue || isLittle) return false;
    this.#statementsSeen = statements;
    this.#bytesSeen = bytesWritten;
    const { log, checkpointed } = this.#look.get() ?? {};
    this.#isDue = Number(log) - Number(checkpointed) >= this.#pagesMax;
    return this.#isDue;
  }

  run(): void {
    this.#isDue = false;
    this.#copy.get();
  }
}
