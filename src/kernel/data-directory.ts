/**
 * The data directory of a kernel: `.millrace/` in the working directory, or `MILLRACE_DIR`. SPEC: K10.
 *
 * Only its owner may enter it, because it contains the kernel's socket. A directory that was open to others is closed
 * when a kernel starts; `directoryProblem` reports that and every obstacle to a start.
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
  // An empty variable counts as not set, as usual in shells.
  const path = environment["MILLRACE_DIR"] || DEFAULT_DIRECTORY;
  return { path, databaseFile: join(path, "kernel.db"), socketFile: join(path, "kernel.sock") };
}

const ADVICE = "name another directory in MILLRACE_DIR";

/** True if it was open to others until now. Throws `FolderError` if it cannot be used. */
export function makeDataDirectory(directory: DataDirectory): boolean {
  const tooLong = socketPathTooLong(directory.socketFile);
  if (tooLong) throw new FolderError(`${tooLong}, in MILLRACE_DIR`);
  makeFolder(directory.path, { mode: OWNER_ONLY, advice: ADVICE });
  const exposed = exposure(directory) !== undefined;
  if (exposed) chmodSync(directory.path, OWNER_ONLY);
  return exposed;
}

/** Why no kernel could start here, or which rights others should not have; undefined if all is well. */
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
