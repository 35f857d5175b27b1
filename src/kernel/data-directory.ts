/**
 * Where a kernel keeps its files: `.millrace/` in the working directory, or what `MILLRACE_DIR` names. SPEC: K10.
 *
 * The directory is its owner's alone, because whoever may enter it reaches the kernel's socket. One that was open to others is
 * closed to them when a kernel starts in it; `exposure` tells, and changes nothing.
 */
import { chmodSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";

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

/** True when it was open to others until now. */
export function makeDataDirectory(directory: DataDirectory): boolean {
  mkdirSync(directory.path, { recursive: true, mode: OWNER_ONLY });
  const exposed = exposure(directory) !== undefined;
  if (exposed) chmodSync(directory.path, OWNER_ONLY);
  return exposed;
}

/** What others may do with the directory that they should not; undefined when it is private or not there. */
export function exposure({ path }: DataDirectory): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found || process.platform === "win32") return undefined;
  if (!found.isDirectory()) return `${path} is not a directory; move it away or set MILLRACE_DIR`;
  const mode = found.mode & 0o777;
  return (mode & OTHERS) === 0
    ? undefined
    : `${path} is open to others (mode ${mode.toString(8)}); run: chmod 700 ${path}`;
}
