/**
 * The peer that needs no server: plainjob, a job queue on SQLite. It is given the same engine as we have,
 * `node:sqlite`, behind the connection it asks for, and the durability of the row it is measured in; its own default is
 * `process`. It has no group commit: a call is a transaction, and many callers are many calls.
 */
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import type { JournalEntry } from "../../src/store/journal.ts";
import { type Durability, SYNCHRONOUS } from "./durability.ts";
import { TOPIC } from "./events.ts";

/** As far as it is used here. */
interface Queue {
  add(type: string, data: unknown): { id: number };
  addMany(type: string, data: readonly unknown[]): { ids: number[] };
  getAndMarkJobAsProcessing(type: string): { id: number } | undefined;
  getJobById(id: number): { data: string } | undefined;
  markJobAsDone(id: number): void;
  close(): void;
}

export class Plainjob implements Disposable {
  readonly #queue: Queue;

  private constructor(queue: Queue) {
    this.#queue = queue;
  }

  static async open(directory: string, durability: Durability): Promise<Plainjob> {
    // Not a literal, because the package is installed by the first run and not there when types are checked.
    const name = "plainjob";
    const { defineQueue } = (await import(name)) as { defineQueue(options: object): Queue };
    const database = new DatabaseSync(join(directory, "plainjob.db"));
    const queue = defineQueue({ connection: connectionOf(database), logger: SILENT });
    database.exec(`PRAGMA synchronous = ${SYNCHRONOUS[durability]}`);
    return new Plainjob(queue);
  }

  publish({ message }: JournalEntry): void {
    this.#queue.add(TOPIC, message);
  }

  publishMany(entries: readonly JournalEntry[]): void {
    this.#queue.addMany(
      TOPIC,
      entries.map((entry) => entry.message),
    );
  }

  /** The work of its worker for each job, without the worker's timers. */
  handleAll(): number {
    let handled = 0;
    for (;;) {
      const job = this.#queue.getAndMarkJobAsProcessing(TOPIC);
      if (!job) return handled;
      JSON.parse(this.#queue.getJobById(job.id)!.data);
      this.#queue.markJobAsDone(job.id);
      handled++;
    }
  }

  [Symbol.dispose](): void {
    this.#queue.close();
  }
}

const SILENT = { error() {}, warn() {}, info() {}, debug() {} };

/** The shape of better-sqlite3 as far as plainjob uses it. */
function connectionOf(database: DatabaseSync): object {
  const inTransaction =
    (begin: string, run: (...values: SQLInputValue[]) => unknown) =>
    (...values: SQLInputValue[]): unknown => {
      database.exec(begin);
      try {
        const result = run(...values);
        database.exec("COMMIT");
        return result;
      } catch (error) {
        database.exec("ROLLBACK");
        throw error;
      }
    };
  return {
    driver: "better-sqlite3",
    filename: "",
    pragma: (text: string) => database.exec(`PRAGMA ${text}`),
    exec: (text: string) => database.exec(text),
    prepare: (text: string) => database.prepare(text),
    transaction: (run: (...values: SQLInputValue[]) => unknown) =>
      Object.assign(inTransaction("BEGIN", run), { immediate: inTransaction("BEGIN IMMEDIATE", run) }),
    close: () => database.close(),
  };
}
