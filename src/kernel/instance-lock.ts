/**
 * One kernel for each data directory: an exclusive lock that the operating system releases when the process ends, however it ends.
 * It is SQLite's own lock on an empty file, because Node has none of its own; a file with a process id would outlive a kill. SPEC: K22.
 */
import { chmodSync, existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { DataDirectory } from "./data-directory.ts";

export class KernelRunningError extends Error {
  override readonly name = "KernelRunningError";
  readonly code = "KERNEL_RUNNING";
}

export class InstanceLock implements Disposable {
  readonly #database: DatabaseSync;

  /** Throws `KernelRunningError` while another kernel holds the directory. */
  static take({ path }: DataDirectory): InstanceLock {
    const file = join(path, "kernel.lock");
    const database = new DatabaseSync(file);
    try {
      // Nothing is ever written, so no journal file is wanted beside it.
      database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    } catch (error) {
      database.close();
      if (!isBusy(error)) throw error;
      throw new KernelRunningError(
        `a kernel is running in ${path}; stop it with: millrace send Syscall.Shutdown, or set MILLRACE_DIR`,
      );
    }
    chmodSync(file, 0o600);
    return new InstanceLock(database);
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
