/**
 * Creates writable folders with their parents, or explains why that is impossible. SPEC: K10, K11.
 *
 * Only a trial write proves that a folder is writable: on some file systems (`/proc`, read-only mounts, quotas) the
 * permissions are misleading. The trial is removed again.
 */

import { mkdtempSync, rmdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { MillraceError } from "../message/millrace-error.ts";
import { makeDirectory } from "../store/sqlite/database-file.ts";

const TRIAL = ".millrace-trial-";

/** The folder cannot be written; the message has the reason and a remedy. */
export class FolderError extends MillraceError<"FOLDER_UNUSABLE"> {
  override readonly name = "FolderError";

  constructor(message: string, options?: ErrorOptions) {
    super("FOLDER_UNUSABLE", message, options);
  }
}

/** Creates a folder, or uses an existing one, if it is writable. `advice` is the remedy in the error. */
export function makeFolder(path: string, { mode, advice }: { mode: number; advice: string }): void {
  try {
    makeDirectory(path, mode);
    tryToWrite(path);
  } catch (error) {
    throw new FolderError(`${path} cannot be used: ${reasonOf(error, path)}; ${advice}`, { cause: error });
  }
}

/** Why a folder is not writable or cannot be created; undefined if it can be used. */
export function folderProblem(path: string): string | undefined {
  try {
    tryToWrite(nearestExisting(path));
    return undefined;
  } catch (error) {
    return reasonOf(error, path);
  }
}

function tryToWrite(folder: string): void {
  rmdirSync(mkdtempSync(join(folder, TRIAL)));
}

/** The folder itself, or its nearest existing parent; or the obstacle. */
function nearestExisting(path: string): string {
  try {
    if (statSync(path, { throwIfNoEntry: false })) return path;
  } catch (error) {
    // A parent is not a directory or may not be entered: search further up. Other errors concern the path.
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code !== "ENOTDIR" && code !== "EACCES") throw error;
  }
  return nearestExisting(dirname(resolve(path)));
}

/** The system's error in words that name the place. */
function reasonOf(error: unknown, path: string): string {
  if (!(error instanceof Error)) return String(error);
  switch ("code" in error ? error.code : undefined) {
    case "EACCES":
    case "EPERM":
      return `this user may not write to ${nearestExisting(path)}`;
    case "EROFS":
      return `${nearestExisting(path)} is on a disk that can only be read`;
    case "ENOENT":
      return `no file can be created in ${nearestExisting(path)}`;
    case "ENOTDIR":
    case "EEXIST":
      return `${nearestExisting(path)} is not a directory`;
    case "ENAMETOOLONG":
      return "its name is too long";
    case "ENOSPC":
    case "EDQUOT":
      return "no space is left on its disk";
    default:
      return error.message;
  }
}
