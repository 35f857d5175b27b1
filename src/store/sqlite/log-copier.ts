/**
 * A thread with its own connection that copies the write-ahead log into the database while batches are written. It acts
 * only on request, and only a copy in progress keeps the process alive.
 *
 *   starting, idle ──copy()──> copying ──answer──> idle        any ──an error outside the engine, the end of the thread──> gone
 *
 * Its program is a text, because a file would have to be located again in every bundle. It contains only the work
 * outside the event loop; `checkpoints.ts` decides when to copy.
 */
import { Worker } from "node:worker_threads";
import { settingsOf } from "./connection.ts";
import { REBUILD, TRUNCATE_LOG } from "./erase.ts";
import type { ResolvedOptions } from "./options.ts";

/** The result of a copy: frames in the log and how many of them are in the database, or the engine's error. */
export type Copied =
  | { readonly kind: "copied"; readonly log: number; readonly checkpointed: number; readonly busy: number }
  | { readonly kind: "failed"; readonly message: string; readonly errcode: number }
  | { readonly kind: "gone" };

const GONE: Copied = { kind: "gone" };

/** An error without an engine code ends the thread, which also counts as an answer. */
const PROGRAM = `
const { parentPort, workerData } = require("node:worker_threads");
const { DatabaseSync } = require("node:sqlite");
const database = new DatabaseSync(workerData.url, { timeout: 0 });
for (const [name, value] of workerData.settings) {
  database.exec("PRAGMA " + name + " = " + value);
  const found = Object.values(database.prepare("PRAGMA " + name).get())[0];
  if (found !== value) throw new Error(name + " reads " + found + " instead of " + value);
}
const copy = database.prepare("PRAGMA wal_checkpoint(PASSIVE)");
parentPort.on("message", (order) => {
  if (order === "close") {
    database.close();
    parentPort.close();
    return;
  }
  try {
    if (order === "rebuild") for (const sql of workerData.rebuild) database.exec(sql);
    const { log, checkpointed, busy } = order === "rebuild" ? database.prepare(workerData.truncate).get() : copy.get();
    if (order === "rebuild") database.exec("PRAGMA busy_timeout = 0");
    parentPort.postMessage({ kind: "copied", log, checkpointed, busy });
  } catch (error) {
    if (typeof error.errcode !== "number") throw error;
    parentPort.postMessage({ kind: "failed", message: error.message, errcode: error.errcode });
  }
});
`;

/** The thread holds one page at a time and few objects; the default limits are those of a whole program. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1 };

export class LogCopier {
  readonly #worker: Worker;
  readonly #ended: Promise<void>;
  #isGone = false;
  #answer: ((copied: Copied) => void) | undefined;
  #copied: Promise<Copied> | undefined;
  #closing: Promise<void> | undefined;

  /** Throws if no thread can be started. `file` is absolute, because the process may change its directory. */
  constructor(file: URL, options: ResolvedOptions) {
    // A missing file must not be created.
    const workerData = {
      url: `${file}?mode=rw`,
      settings: settingsOf(options, false),
      rebuild: REBUILD,
      truncate: TRUNCATE_LOG,
    };
    this.#worker = new Worker(PROGRAM, {
      eval: true,
      name: "millrace checkpoints",
      workerData,
      env: {},
      // The main thread has printed this warning already, on runtimes where the engine is experimental.
      execArgv: ["--disable-warning=ExperimentalWarning"],
      resourceLimits: RESOURCE_LIMITS,
    });
    this.#worker.unref();
    this.#worker.on("message", (copied: Copied) => this.#answered(copied));
    this.#worker.on("error", () => this.#end());
    this.#ended = new Promise((resolve) => {
      this.#worker.on("exit", () => {
        this.#end();
        resolve();
      });
    });
  }

  /** One copy at a time. */
  copy(): Promise<Copied> {
    return this.#order("copy");
  }

  /** Rebuilds the file, then truncates the log. */
  rebuild(): Promise<Copied> {
    return this.#order("rebuild");
  }

  #order(order: "copy" | "rebuild"): Promise<Copied> {
    if (this.#isGone) return Promise.resolve(GONE);
    this.#worker.ref();
    this.#worker.postMessage(order);
    this.#copied = new Promise((resolve) => {
      this.#answer = resolve;
    });
    return this.#copied;
  }

  /** Waits for a copy in progress, then ends the thread. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#copied;
    this.#worker.ref();
    this.#worker.postMessage("close");
    await this.#ended;
  }

  #end(): void {
    this.#isGone = true;
    this.#answered(GONE);
  }

  #answered(copied: Copied): void {
    const answer = this.#answer;
    if (!answer) return;
    this.#answer = undefined;
    this.#worker.unref();
    answer(copied);
  }
}
