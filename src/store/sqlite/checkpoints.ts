/**
 * Copies the write-ahead log into the database when it is long. The engine would do it inside a COMMIT, which delays
 * all waiting callers and hides errors; so it runs beside the batches and is decided here.
 *
 *   idle ──pagesMax not copied──> copying ──> idle          in a thread (`log-copier.ts`), while batches are written
 *                                    │ the log is LENGTH_MAX times as long
 *                                    v
 *                                ending ──copied once more──> turning ──batch has the lock, rest copied──> idle
 *                              no batch begins meanwhile
 *
 * Copies are passive: they copy the pages that no reader needs, and do not wait. After a complete copy the next write
 * restarts the log. Beside a constant writer a copy is never complete, so a small rest is copied here at once; after a
 * large rest, the log grows until `ending`. Other processes may still write then, so the first batch after `ending`
 * copies the rest while it holds the write lock. Without a thread (`checkpointThread: false`, or none available) the
 * copy runs between two batches.
 */
import { pathToFileURL } from "node:url";
import type { Host } from "../../host/host.ts";
import { StoreError } from "../store.ts";
import type { Row, SqliteConnection, Statement, WorkCount } from "./connection.ts";
import { rebuild, requireTruncated } from "./erase.ts";
import { LogCopier } from "./log-copier.ts";
import type { ResolvedOptions } from "./options.ts";
import { engineError } from "./sqlite-error.ts";

/** Amount written between two checks of the log's length: a check costs a tenth of a single publish. */
const LOOK_AFTER_STATEMENTS = 64;
const LOOK_AFTER_BYTES = 262_144;
/** The log may grow to this multiple of `pagesMax` before the writer waits for a complete copy. */
const LENGTH_MAX = 4;
/** A rest up to this fraction of `pagesMax` is small: its copy takes a millisecond, mostly for the flush. */
const LITTLE = 1 / 4;

/** How long the turn of the log waits for reads of other processes, which normally take a fraction of it. */
const READERS_MS = 20;

type State = "idle" | "copying" | "ending" | "turning" | "closed";

export class Checkpoints {
  readonly #connection: SqliteConnection;
  readonly #file: URL;
  readonly #options: ResolvedOptions;
  readonly #host: Host;
  readonly #work: WorkCount;
  readonly #pagesMax: number;
  /** Receives errors of the engine. */
  readonly #failed: (error: unknown) => void;
  readonly #look: Statement;
  readonly #copy: Statement;
  readonly #turn: Statement;
  #state: State = "idle";
  /** Undefined before the log has been long for the first time; null if no thread is available. */
  #copier: LogCopier | null | undefined;
  /** The current work of the thread; resolves even on failure. */
  #underWay: Promise<void> = Promise.resolve();
  /** Log length in frames from which `ending` begins. */
  #endFrom: number;
  /** Log length in frames at the last check. A smaller value at the next check means that the log was restarted. */
  #logSeen = 0;
  /** Called when `ending` is over. */
  #go: (() => void) | undefined;
  /** Values of `#work` at the last check. */
  #statementsSeen = 0;
  #bytesSeen = 0;

  constructor(connection: SqliteConnection, options: ResolvedOptions, failed: (error: unknown) => void) {
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

  /** After a batch: checks whether the log is long, and starts a copy. */
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

  /** Whether the next batch must wait for the end of `ending`; `go` is called then. */
  holdsUp(go: () => void): boolean {
    if (this.#state !== "ending") return false;
    this.#go = go;
    return true;
  }

  /** Whether the batch that has the write lock should first release it for `turn`. */
  get wantsTurn(): boolean {
    return this.#state === "turning";
  }

  /**
   * Copies the writes of other processes since `ending`, so that the next write restarts the log. Called outside of a
   * transaction, right after the lock was held: another writer would have to get in between two statements.
   */
  turn(): void {
    this.#connection.exec(`PRAGMA busy_timeout = ${READERS_MS}`);
    const found = this.#run(this.#turn);
    this.#connection.exec("PRAGMA busy_timeout = 0");
    // No reader was in the way: the next write restarts the log, so the length limit is the first one again.
    if (found?.["busy"] === 0) this.#endFrom = LENGTH_MAX * this.#pagesMax;
    // Another process is copying now, for which the engine never waits: the next batch tries again.
    if (this.#state === "turning" && found?.["log"] !== -1) this.#state = "idle";
  }

  /** Rebuilds the file and truncates the log, in the thread if there is one. No batch runs meanwhile. */
  async rebuild(): Promise<void> {
    while (this.#isBusy()) await this.#underWay;
    if (this.#state === "closed") throw new StoreError("STORE_CLOSED", "the store was closed; open it again to go on");
    this.#state = "ending";
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#underWay = promise;
    try {
      if (this.#copier === undefined) this.#copier = this.#startCopier();
      const rebuilt = await this.#copier?.rebuild();
      if (rebuilt?.kind === "failed") throw engineError(rebuilt.message, rebuilt.errcode);
      if (rebuilt?.kind === "copied") requireTruncated(rebuilt);
      else rebuild(this.#connection);
    } finally {
      if (this.#isBusy()) this.#state = "idle";
      resolve();
      const go = this.#go;
      this.#go = undefined;
      go?.();
    }
  }

  #isBusy(): boolean {
    return this.#state === "copying" || this.#state === "ending";
  }

  /** Waits for a copy in the thread and ends the thread; no copy starts afterwards. */
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

  /** Copies the few pages written during the thread's copy, so that the next write restarts the log. */
  #copyLittle(): void {
    const found = this.#look.get();
    const rest = Number(found?.["log"]) - Number(found?.["checkpointed"]);
    if (rest > 0 && rest <= this.#pagesMax * LITTLE) this.#copyNow();
  }

  /** Copies the pages written beside the current copy, while no batch runs. */
  async #end(log: number): Promise<void> {
    // A reader may prevent a complete copy: then try again when the log has grown by the same amount.
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
    // In its own task: starting the thread takes time, and callers should get their answers first.
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

  /** Null if the system cannot start a thread: the log is then copied here, only slower. */
  #startCopier(): LogCopier | null {
    try {
      return new LogCopier(this.#file, this.#options);
    } catch {
      return null;
    }
  }
}
