/**
 * A thread with a connection of its own that copies the write-ahead log into the database, while the event loop goes on and other batches are
 * written. It does nothing unasked, and nothing of it keeps the process alive but a copy that is under way.
 *
 *   starting, idle ──copy()──> copying ──answer──> idle        any ──an error outside the engine, the end of the thread──> gone
 *
 * Its program is a text and not a file: a file would have to be found again in every bundle that this one ends up in. It holds what must be
 * done beside the event loop and nothing else; when to copy is decided in `checkpoints.ts`.
 */
import { Worker } from "node:worker_threads";
import { settingsOf } from "./connection.ts";
import type { ResolvedOptions } from "./options.ts";

/** What came of a copy. Frames of the log, and how many of them are in the database; or what the engine said instead. */
export type Copied =
  | { readonly kind: "copied"; readonly log: number; readonly checkpointed: number }
  | { readonly kind: "failed"; readonly message: string; readonly errcode: number }
  | { readonly kind: "gone" };

const GONE: Copied = { kind: "gone" };

/** Whatever fails here without the engine's code ends the thread, which is an answer too. */
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
    const { log, checkpointed } = copy.get();
    parentPort.postMessage({ kind: "copied", log, checkpointed });
  } catch (error) {
    if (typeof error.errcode !== "number") throw error;
    parentPort.postMessage({ kind: "failed", message: error.message, errcode: error.errcode });
  }
});
`;

/** It keeps a page of the database at a time and no objects to speak of; by itself it would take as much as a program may. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1 };

export class LogCopier {
  readonly #worker: Worker;
  readonly #ended: Promise<void>;
  #isGone = false;
  #answer: ((copied: Copied) => void) | undefined;
  #copied: Promise<Copied> | undefined;
  #closing: Promise<void> | undefined;

  /** Throws where no thread can be had. `file` is the database, wherever the process is by now. */
  constructor(file: URL, options: ResolvedOptions) {
    // A file that is gone is not to be made anew.
    const workerData = { url: `${file}?mode=rw`, settings: settingsOf(options, false) };
    this.#worker = new Worker(PROGRAM, {
      eval: true,
      name: "millrace checkpoints",
      workerData,
      env: {},
      // The event loop's own thread has said it already, on runtimes where the engine is called experimental.
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

  /** One at a time. */
  copy(): Promise<Copied> {
    if (this.#isGone) return Promise.resolve(GONE);
    this.#worker.ref();
    this.#worker.postMessage("copy");
    this.#copied = new Promise((resolve) => {
      this.#answer = resolve;
    });
    return this.#copied;
  }

  /** Lets a copy that is under way end, and the thread after it. */
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
