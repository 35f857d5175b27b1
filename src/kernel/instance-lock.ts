/**
 * One kernel per data directory: an exclusive lock that the operating system releases when the process ends. It is
 * SQLite's lock on an empty file, because Node has none; a pid file alone would outlive a kill. A pid file is also
 * written and valid while the lock is held: it names the process to end if the socket is gone. SPEC: K22.
 */

import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { thrownText } from "../message/error-data.ts";
import { MillraceError } from "../message/millrace-error.ts";
import type { DataDirectory } from "./data-directory.ts";
import { FolderError } from "./folder.ts";

export class KernelRunningError extends MillraceError<"KERNEL_RUNNING"> {
  override readonly name = "KernelRunningError";

  constructor(message: string, options?: ErrorOptions) {
    super("KERNEL_RUNNING", message, options);
  }
}

export class InstanceLock implements Disposable {
  readonly #database: DatabaseSync;
  readonly #directory: DataDirectory;

  /** Throws `KernelRunningError` while another kernel holds the directory, `FolderError` if it cannot be locked. */
  static take(directory: DataDirectory): InstanceLock {
    const { path } = directory;
    const file = join(path, "kernel.lock");
    let database: DatabaseSync | undefined;
    try {
      database = new DatabaseSync(file);
      // The file is never written, so it needs no journal file.
      database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
      chmodSync(file, 0o600);
      writeOwn(processFile(directory), `${process.pid}\n`);
      return new InstanceLock(database, directory);
    } catch (error) {
      database?.close();
      if (isBusy(error)) throw new KernelRunningError(`${runningIn(directory)}, or set MILLRACE_DIR`);
      const why = thrownText(error);
      throw new FolderError(
        `${file} cannot be locked: ${why}; remove it if it is in the way, or name another directory in MILLRACE_DIR`,
        { cause: error },
      );
    }
  }

  /** Whether a kernel holds the directory. Creates no file. */
  static isHeld({ path }: DataDirectory): boolean {
    const file = join(path, "kernel.lock");
    if (!existsSync(file)) return false;
    const database = new DatabaseSync(file, { readOnly: true });
    try {
      // Reading takes a shared lock, which the exclusive one prevents.
      database.exec("SELECT 1 FROM sqlite_schema");
      return false;
    } catch (error) {
      if (!isBusy(error)) throw error;
      return true;
    } finally {
      database.close();
    }
  }

  private constructor(database: DatabaseSync, directory: DataDirectory) {
    this.#database = database;
    this.#directory = directory;
  }

  [Symbol.dispose](): void {
    // The pid file may belong to another kernel if the directory was removed and created again.
    if (holderOf(this.#directory) === process.pid) rmSync(processFile(this.#directory), { force: true });
    this.#database.close();
  }
}

/**
 * Message that a kernel holds the directory, and how to end it: over its socket, or by its process if that is gone.
 */
export function runningIn(directory: DataDirectory): string {
  const { path, socketFile } = directory;
  const pid = holderOf(directory);
  if (existsSync(socketFile))
    return `a kernel is running in ${path}${pid === undefined ? "" : ` (pid ${pid})`}; stop it with: millrace send Syscall.Shutdown`;
  const end = pid === undefined ? "end its process" : `end it with: kill ${pid}`;
  return `a kernel is running in ${path} without ${socketFile}: it is starting or ending, or the file was removed; ${end}`;
}

/** Writes a new file under that name: an existing link is removed, not followed. */
function writeOwn(file: string, text: string): void {
  rmSync(file, { force: true });
  writeFileSync(file, text, { mode: 0o600, flag: "wx" });
}

function processFile({ path }: DataDirectory): string {
  return join(path, "kernel.pid");
}

/** The process in the pid file, valid while the lock is held; undefined if the file was removed. */
function holderOf(directory: DataDirectory): number | undefined {
  const file = processFile(directory);
  const pid = existsSync(file) ? Number(readFileSync(file, "utf8")) : 0;
  return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
}

function isBusy(error: unknown): boolean {
  const SQLITE_BUSY = 5;
  return error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY;
}
