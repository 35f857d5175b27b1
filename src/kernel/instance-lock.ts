/**
 * One kernel for each data directory: an exclusive lock that the operating system releases when the process ends, however it ends.
 * It is SQLite's own lock on an empty file, because Node has none of its own; a file with a process id would outlive a kill. SPEC: K22.
 */

import { chmodSync, existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { thrownText } from "../message/error-data.ts";
import type { DataDirectory } from "./data-directory.ts";
import { FolderError } from "./folder.ts";

export class KernelRunningError extends Error {
  override readonly name = "KernelRunningError";
  readonly code = "KERNEL_RUNNING";
}

export class InstanceLock implements Disposable {
  readonly #database: DatabaseSync;

  /** Throws `KernelRunningError` while another kernel holds the directory, `FolderError` where there can be no lock. */
  static take({ path }: DataDirectory): InstanceLock {
    const file = join(path, "kernel.lock");
    let database: DatabaseSync | undefined;
    try {
      database = new DatabaseSync(file);
      // Nothing is ever written, so no journal file is wanted beside it.
      database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
      chmodSync(file, 0o600);
      return new InstanceLock(database);
    } catch (error) {
      database?.close();
      if (isBusy(error))
        throw new KernelRunningError(
          `a kernel is running in ${path}; stop it with: millrace send Syscall.Shutdown, or set MILLRACE_DIR`,
        );
      const why = thrownText(error);
      throw new FolderError(
        `${file} cannot be locked: ${why}; remove it if it is in the way, or name another directory in MILLRACE_DIR`,
        { cause: error },
      );
    }
  }

  /** Whether a kernel holds the directory. Looks, and makes no file. */
  static isHeld({ path }: DataDirectory): boolean {
    const file = join(path, "kernel.lock");
    if (!existsSync(file)) return false;
    const database = new DatabaseSync(file, { readOnly: true });
    try {
      // Reading takes a shared lock, which the exclusive one keeps out.
      database.exec("SELECT 1 FROM sqlite_schema");
      return false;
    } catch (error) {
      if (!isBusy(error)) throw error;
      return true;
    } finally {
      database.close();
    }
  }

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }
}

function isBusy(error: unknown): boolean {
  const SQLITE_BUSY = 5;
  return error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY;
}
