/**
 * Copying the write-ahead log into the database, once it is long. The engine would do it inside a COMMIT, where it delays
 * everybody who waits for that COMMIT, and would hide its errors; so it is done beside the batches, and decided here.
 *
 *   idle ──pagesMax not copied──> copying ──> idle          in a thread (`log-copier.ts`), while batches are written
 *                                    │ the log is LENGTH_MAX times as long
 *                                    v
 *                                ending ──copied once more──> turning ──batch has the lock, rest copied──> idle
 *                              no batch begins meanwhile
 *
 * It is passive: it copies what no reader still needs and waits for nobody. When all of the log was copied, the next write
 * starts the log anew; beside a writer who never rests that would never be so. Where little was written beside a copy, that is copied here at once, so that the
 * log stays short; where much was, the end comes when the log is long. Other processes write on meanwhile, and with two that never rest there would be no moment in which all of
 * it is copied: so the first batch after the end copies the rest in its own turn, when nobody else may write. Without a thread
 * (`checkpointThread: false`, or none can be had) the copy is made between two batches, and is its own end beside no other process.
 */
import { pathToFileURL } from "node:url";
import type { Host } from "../../host/host.ts";
import type { Connection, Row, Statement, WorkCount } from "./connection.ts";
import { LogCopier } from "./log-copier.ts";
import type { ResolvedOptions } from "./options.ts";
import { engineError } from "./sqlite-error.ts";

/** How much is written between two looks at the log's length: each takes as long as a tenth of a single publish. */
const LOOK_AFTER_STATEMENTS = 64;
const LOOK_AFTER_BYTES = 262_144;
/** How many times as long as the pages after which it is copied the log becomes before the writer waits for its end. */
const LENGTH_MAX = 4;
/** Which part of those pages is little: copying it takes a millisecond, most of it for the flush. */
const LITTLE = 1 / 4;

/** How long the turn of the log waits for reads that are under way in other processes: they take a fraction of it, if they have a core. */
const READERS_MS = 20;

type State = "idle" | "copying" | "ending" | "turning" | "closed";

export class Checkpoints {
  readonly #connection: Connection;
  readonly #file: URL;
  readonly #options: ResolvedOptions;
  readonly #host: Host;
  readonly #work: WorkCount;
  readonly #pagesMax: number;
  /** Is told of what the engine could not do. */
  readonly #failed: (error: unknown) => void;
  readonly #look: Statement;
  readonly #copy: Statement;
  readonly #turn: Statement;
  #state: State = "idle";
  /** Undefined before the log has been long for the first time; null where there is none to be had. */
  #copier: LogCopier | null | undefined;
  /** What is under way in the thread; resolves, whatever comes of it. */
  #underWay: Promise<void> = Promise.resolve();
  /** Frames of the log from which on it is brought to its end. */
  #endFrom: number;
  /** Frames of the log at the last look. Fewer at the next one: the log has begun anew. */
  #logSeen = 0;
  /** Whoever waits for the end. */
  #go: (() => void) | undefined;
  /** Of `#work`, at the last look. */
  #statementsSeen = 0;
  #bytesSeen = 0;

  constructor(connection: Connection, options: ResolvedOptions, failed: (error: unknown) => void) {
    this.#connection = connection;
    this.#file = pathToFileURL(options.path);
    this.#options = options;
    this.#host = options.host;
    this.#work = connection.work;
    this.#pagesMax = options.tuning.checkpointPages;
    this.#endFrom = LENGTH_MAX * this.#pagesMax;
    this.#failed = failed;
    this.#copier = options.tuning.checkpointThread ? undefined : null;
    this.#look = connection.prepare("PRAGMA wal_checkpoint(NOOP)");
    this.#copy = connection.prepare("PRAGMA wal_checkpoint(PASSIVE)");
    this.#turn = connection.prepare("PRAGMA wal_checkpoint(RESTART)");
  }

  /** After a batch: looks whether the log has become long, and has it copied. */
  look(): void {
    const { statements, bytesWritten } = this.#work;
    const isLittle =
      statements - this.#statementsSeen < LOOK_AFTER_STATEMENTS && bytesWritten - this.#bytesSeen < LOOK_AFTER_BYTES;
    if (isLittle || this.#state === "closed") return;
    this.#statementsSeen = statements;
    this.#bytesSeen = bytesWritten;
    const found = this.#look.get();
    const [log, checkpointed] = [Number(found?.["log"]), Number(found?.["checkpointed"])];
    const isLong = log - checkpointed >= this.#pagesMax;
    if (log < this.#logSeen) this.#endFrom = LENGTH_MAX * this.#pagesMax;
    this.#logSeen = log;
    if (log >= this.#endFrom) this.#underWay = this.#end(log);
    else if (isLong && this.#state === "idle") this.#underWay = this.#start();
  }

  /** Whether the next batch has to wait until the log has come to its end; `go` is called when it has. */
  holdsUp(go: () => void): boolean {
    if (this.#state !== "ending") return false;
    this.#go = go;
    return true;
  }

  /** Whether the batch that has the write lock should first let go of it for `turn`. */
  get wantsTurn(): boolean {
    return this.#state === "turning";
  }

  /**
   * Copies what other processes have written since the end, and has the next write start the log anew. Called outside of a transaction, right
   * after the lock was ours: whoever else writes would have to come between two statements.
   */
  turn(): void {
    this.#connection.exec(`PRAGMA busy_timeout = ${READERS_MS}`);
    const found = this.#run(this.#turn);
    this.#connection.exec("PRAGMA busy_timeout = 0");
    // No reader was in the way: the next write starts the log anew, so the length that ends it is the first one again.
    if (found?.["busy"] === 0) this.#endFrom = LENGTH_MAX * this.#pagesMax;
    // Another process copies at this moment, for which the engine waits in no case: the next batch tries again.
    if (this.#state === "turning" && found?.["log"] !== -1) this.#state = "idle";
  }

  /** Lets a copy in the thread end, and the thread with it; afterwards nothing is copied any more. */
  async close(): Promise<void> {
    this.#state = "closed";
    await this.#copier?.close();
  }

  async #start(): Promise<void> {
    this.#state = "copying";
    await this.#copyOnce();
    if (this.#state !== "copying") return;
    this.#state = "idle";
    if (this.#copier) this.#copyLittle();
  }

  /** What little was written while the thread copied: with that, the next write starts the log anew. */
  #copyLittle(): void {
    const found = this.#look.get();
    const rest = Number(found?.["log"]) - Number(found?.["checkpointed"]);
    if (rest > 0 && rest <= this.#pagesMax * LITTLE) this.#copyNow();
  }

  /** What was written beside the copy that is under way is copied while nothing is. */
  async #end(log: number): Promise<void> {
    // Where a reader is in the way, not all of it can be copied: then it is tried again when the log is as much longer.
    this.#endFrom = log + LENGTH_MAX * this.#pagesMax;
    this.#state = "ending";
    await this.#underWay;
    await this.#copyOnce();
    if (this.#state === "ending") this.#state = "turning";
    const go = this.#go;
    this.#go = undefined;
    go?.();
  }

  async #copyOnce(): Promise<void> {
    // In a task of its own: it takes time, be it only to start the thread, and callers should have their answers first.
    await this.#host.yield();
    if (this.#state === "closed") return;
    if (this.#copier === undefined) this.#copier = this.#startCopier();
    const copied = await this.#copier?.copy();
    if (copied?.kind === "copied") this.#work.statements++;
    else if (copied?.kind === "failed") this.#failed(engineError(copied.message, copied.errcode));
    else this.#copyHere();
  }

  #copyHere(): void {
    this.#copier = null;
    this.#copyNow();
  }

  #copyNow(): void {
    if (this.#state !== "closed" && !this.#connection.inTransaction) this.#run(this.#copy);
  }

  #run(copy: Statement): Row | undefined {
    try {
      return copy.get();
    } catch (error) {
      this.#failed(error);
      return undefined;
    }
  }

  /** Null where the system has no thread to give: the log is then copied here, which is slower and nothing else. */
  #startCopier(): LogCopier | null {
    try {
      return new LogCopier(this.#file, this.#options);
    } catch {
      return null;
    }
  }
}
