/**
 * A directory of its own for each test, a store in it, and a plain connection to look at what the store made of its
 * file.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openSqliteStore, type SqliteStoreOptions } from "../../../src/store/sqlite/index.ts";
import type { Store } from "../../../src/store/store.ts";

export class StoreFile implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), "millrace-sqlite-"));
  readonly path = join(this.directory, "app.db");
  readonly #stores: Store[] = [];
  readonly #databases: DatabaseSync[] = [];

  /** Power loss is not what most tests are about, so they need not wait for the disk. */
  async open(options: Partial<SqliteStoreOptions> = {}): Promise<Store> {
    const store = await openSqliteStore({ path: this.path, durability: "process", ...options });
    this.#stores.push(store);
    return store;
  }

  /** A plain connection, as a person with the `sqlite3` shell has. */
  database(): DatabaseSync {
    const database = new DatabaseSync(this.path, { timeout: 10_000 });
    this.#databases.push(database);
    return database;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const database of this.#databases) database.close();
    for (const store of this.#stores) await store.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}
