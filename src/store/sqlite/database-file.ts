/**
 * Checks the file before it is opened: whether it is ours and writable, with a remedy if not. A refused file is not
 * changed: the check reads its first hundred bytes and uses a read-only connection.
 */

import type { BigIntStats } from "node:fs";
import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  type Stats,
  statSync,
} from "node:fs";
import { dirname } from "node:path";
import { thrownText } from "../../message/error-data.ts";
import { StoreError } from "../store.ts";
import type { ResolvedOptions } from "./options.ts";
import { APPLICATION_ID } from "./schema.ts";
import { fileErrorCode } from "./sqlite-error.ts";

/** Offset of the application id in the file format (`https://sqlite.org/fileformat.html`, 1.3). */
const APPLICATION_ID_OFFSET = 68;
const HEADER_BYTES = 100;
const MAGIC = "SQLite format 3\0";

/** `empty` is a file to be initialized: new, or left by a process that died while creating it. */
export type FileState = "empty" | "ours";

/** Creates the file if allowed and returns its state. Throws for an unusable file. */
export function prepareFile(options: ResolvedOptions): FileState {
  const { path, readOnly } = options;
  const found = statOrUndefined(path);
  if (found?.isDirectory()) throw openFailed(`${path} is a directory. Name a file inside it.`);
  if (found && !found.isFile()) throw openFailed(`${path} is not a regular file.`);
  if (!found && readOnly) throw openFailed(`There is no ${path} to read. Open it once without readOnly.`);
  const state = found && found.size > 0 ? inspect(path) : "empty";
  if (readOnly) return state;
  if (!found) create(path);
  requireWritable(path);
  return state;
}

/** The name of a new file is durable only after its directory is flushed. */
export function flushDirectory(path: string): void {
  try {
    const directory = openSync(dirname(path), "r");
    try {
      fsyncSync(directory);
    } finally {
      closeSync(directory);
    }
  } catch (error) {
    throw openFailed(`The directory of ${path} cannot be flushed to disk: ${thrownText(error)}.`, error);
  }
}

export function notOurs(path: string, what: string): StoreError {
  return new StoreError("STORE_NOT_OURS", `${path} ${what}. It was left as it is; choose another path.`);
}

export function openFailed(message: string, cause?: unknown): StoreError {
  return new StoreError("STORE_OPEN_FAILED", message, cause === undefined ? undefined : { cause });
}

export function cannotWrite(what: string, cause?: unknown): StoreError {
  return new StoreError(
    "STORE_READ_ONLY",
    `${what} cannot be written by this process. Change its owner or mode, or open the store with readOnly: true.`,
    cause === undefined ? undefined : { cause },
  );
}

function inspect(path: string): FileState {
  const header = readHeader(path);
  if (header.toString("latin1", 0, MAGIC.length) !== MAGIC) {
    // A process that died while creating the file leaves a rollback journal; the engine undoes its writes.
    if (hasRollbackJournal(path)) return "empty";
    throw notOurs(path, "is not a SQLite database");
  }
  const id = header.length >= HEADER_BYTES ? header.readInt32BE(APPLICATION_ID_OFFSET) : 0;
  if (id !== APPLICATION_ID) throw notOurs(path, "is a database of another program");
  // Only the creation of a file uses a rollback journal, and a read-only connection could not undo it.
  return hasRollbackJournal(path) ? "empty" : "ours";
}

function hasRollbackJournal(path: string): boolean {
  return (statOrUndefined(`${path}-journal`)?.size ?? 0) > 0;
}

function readHeader(path: string): Buffer {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    throw openFailed(`${path} cannot be read: ${thrownText(error)}.`, error);
  }
  try {
    const header = Buffer.alloc(Math.min(HEADER_BYTES, fstatSync(file).size));
    readSync(file, header, 0, header.length, 0);
    return header;
  } finally {
    closeSync(file);
  }
}

/**
 * Creates parents one by one: the runtime's recursive mode never ends if a parent exists but cannot hold directories,
 * as in /proc.
 */
export function makeDirectory(path: string, mode: number): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(path) !== path) makeDirectory(dirname(path), mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have created it.
    if (fileErrorCode(error) !== "EEXIST" || !statSync(path).isDirectory()) throw error;
  }
}

function create(path: string): void {
  const directory = dirname(path);
  try {
    makeDirectory(directory, 0o700);
  } catch (error) {
    throw openFailed(`The directory ${directory} is not there and cannot be made: ${thrownText(error)}.`, error);
  }
  try {
    // The engine gives its log and its index the mode of the file.
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    const code = fileErrorCode(error);
    if (code === "EEXIST") return;
    if (code === "EACCES" || code === "EPERM" || code === "EROFS") throw cannotWrite(directory, error);
    throw openFailed(`${path} cannot be made: ${thrownText(error)}.`, error);
  }
}

function requireWritable(path: string): void {
  for (const target of [path, dirname(path)]) {
    try {
      accessSync(target, constants.R_OK | constants.W_OK);
    } catch (error) {
      throw cannotWrite(target, error);
    }
  }
}

function statOrUndefined(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (fileErrorCode(error) === "ENOTDIR") throw openFailed(`${dirname(path)} is not a directory.`, error);
    throw openFailed(`${path} cannot be read: ${thrownText(error)}.`, error);
  }
}

interface Identity {
  readonly path: string;
  readonly device: bigint;
  readonly inode: bigint;
}

/**
 * Detects whether the store's files were removed or replaced. SQLite does not notice: writes then succeed and are lost
 * when the process ends. So device and inode of the database and its log are compared. SPEC: S129.
 */
export class FileGuard {
  readonly #files: readonly Identity[];

  /** Records the identity of the open files. */
  constructor(databasePath: string) {
    this.#files = [databasePath, `${databasePath}-wal`].flatMap((path) => {
      const { dev, ino } = look(path) ?? {};
      return dev === undefined || ino === undefined ? [] : [{ path, device: dev, inode: ino }];
    });
  }

  /** One sentence about a removed or replaced file; undefined if there is none. */
  trouble(): string | undefined {
    for (const { path, device, inode } of this.#files) {
      let found: BigIntStats | undefined;
      try {
        found = look(path);
      } catch (error) {
        return `${path} can no longer be read: ${thrownText(error)}`;
      }
      if (found === undefined) return `${path} was removed while it was open`;
      if (found.dev !== device || found.ino !== inode) return `${path} was replaced by another file while it was open`;
    }
    return undefined;
  }
}

function look(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}
