/**
 * Where a kernel keeps its files: `.millrace/` in the working directory, or what `MILLRACE_DIR` names. SPEC: K10.
 *
 * The directory is its owner's alone, because whoever may enter it reaches the kernel's socket. One that was open to others is
 * closed to them when a kernel starts in it; `directoryProblem` tells of it, and of whatever would keep a kernel from starting.
 */
import { chmodSync, lstatSync, statSync } from "node:fs";
import { join } from "node:path";
import { socketPathTooLong } from "../adapters/unix-socket.ts";
import { FolderError, folderProblem, makeFolder } from "./folder.ts";

export const DEFAULT_DIRECTORY = ".millrace";
const OWNER_ONLY = 0o700;
const OTHERS = 0o077;

export interface DataDirectory {
  readonly path: string;
  readonly databaseFile: string;
  readonly socketFile: string;
}

export function dataDirectory(environment: Readonly<Record<string, string | undefined>>): DataDirectory {
  // An empty variable counts as not set, as everywhere in shells.
  const path = environment["MILLRACE_DIR"] || DEFAULT_DIRECTORY;
  return { path, databaseFile: join(path, "kernel.db"), socketFile: join(path, "kernel.sock") };
}

const ADVICE = "name another directory in MILLRACE_DIR";

/** True when it was open to others until now. Throws `FolderError` where a kernel cannot keep its files. */
export function makeDataDirectory(directory: DataDirectory): boolean {
  const tooLong = socketPathTooLong(directory.socketFile);
  if (tooLong) throw new FolderError(`${tooLong}, in MILLRACE_DIR`);
  makeFolder(directory.path, { mode: OWNER_ONLY, advice: ADVICE });
  const exposed = exposure(directory) !== undefined;
  if (exposed) chmodSync(directory.path, OWNER_ONLY);
  return exposed;
}

/** Why no kernel could start here, or what others may do with the directory that they should not; undefined when all is well. */
export function directoryProblem(directory: DataDirectory): string | undefined {
  const unusable = folderProblem(directory.path);
  if (unusable) return `${directory.path} cannot be used: ${unusable}; ${ADVICE}`;
  const tooLong = socketPathTooLong(directory.socketFile);
  if (tooLong) return `${tooLong}, in MILLRACE_DIR`;
  const inTheWay = lstatSync(directory.socketFile, { throwIfNoEntry: false })?.isSocket() === false;
  return inTheWay ? `${directory.socketFile} is in the socket's way; remove it` : exposure(directory);
}

function exposure({ path }: DataDirectory): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found || process.platform === "win32") return undefined;
  const mode = found.mode & 0o777;
  return (mode & OTHERS) === 0
    ? undefined
    : `${path} is open to others (mode ${mode.toString(8)}); run: chmod 700 ${path}`;
}
