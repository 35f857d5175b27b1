/**
 * Folders that something is to be written to: made with those above them, or refused with what is wrong with the place. SPEC: K10, K11.
 *
 * Whether a place takes anything is only known by trying, because there are systems of files (`/proc`, a disk mounted to be read, a quota)
 * where permissions say yes. What is tried with is removed again.
 */

import { mkdtempSync, rmdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { MillraceError } from "../message/millrace-error.ts";
import { makeDirectory } from "../store/sqlite/database-file.ts";

const TRIAL = ".millrace-trial-";

/** Nothing can be written there; the message says why, and what to do. */
export class FolderError extends MillraceError<"FOLDER_UNUSABLE"> {
  override readonly name = "FolderError";

  constructor(message: string, options?: ErrorOptions) {
    super("FOLDER_UNUSABLE", message, options);
  }
}

/** Makes a folder, or takes the one that is there, if it can be written to. `advice` says what to do where not. */
export function makeFolder(path: string, { mode, advice }: { mode: number; advice: string }): void {
  try {
    makeDirectory(path, mode);
    tryToWrite(path);
  } catch (error) {
    throw new FolderError(`${path} cannot be used: ${reasonOf(error, path)}; ${advice}`, { cause: error });
  }
}

/** Why nothing can be written to a folder, or why it could not be made; undefined when it can. */
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

/** The folder itself, or that above it in which it would be made; or whatever stands in the way. */
function nearestExisting(path: string): string {
  try {
    if (statSync(path, { throwIfNoEntry: false })) return path;
  } catch (error) {
    // Something above is no directory or may not be entered. It is found further up; whatever else is wrong is wrong with the path.
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code !== "ENOTDIR" && code !== "EACCES") throw error;
  }
  return nearestExisting(dirname(resolve(path)));
}

/** What the system says, in words that name the place. */
function reasonOf(error: unknown, path: string): string {
  if (!(error instanceof Error)) return String(error);
  switch ("code" in error ? error.code : undefined) {
    case "EACCES":
    case "EPERM":
      return `this user may not write to ${nearestExisting(path)}`;
    case "EROFS":
      return `${nearestExisting(path)} is on a disk that can only be read`;
    case "ENOENT":
      return `nothing can be made in ${nearestExisting(path)}`;
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
