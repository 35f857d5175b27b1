/**
 * The store file of a reading verb: named, `MILLRACE_FILE` (for a program with its own store), or that of the data
 * directory. Creates no file. SPEC: K54.
 */

import { type Stats, statSync } from "node:fs";
import { dataDirectory } from "../kernel/data-directory.ts";
import { thrownText } from "../message/error-data.ts";
import { MillraceError } from "../message/millrace-error.ts";

export class NoStoreError extends MillraceError<"NO_STORE"> {
  override readonly name = "NoStoreError";

  constructor(message: string, options?: ErrorOptions) {
    super("NO_STORE", message, options);
  }
}

export function existingDatabaseFile(
  named: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  // An empty variable counts as not set, as usual in shells.
  const chosen = named ?? (environment["MILLRACE_FILE"] || undefined);
  const path = chosen ?? dataDirectory(environment).databaseFile;
  const found = look(path);
  if (found?.isFile() && found.size === 0)
    throw new NoStoreError(`${path} is empty: no kernel has written to it yet; check the path`);
  if (found) return path;
  const hint =
    chosen === undefined ? 'run "millrace start" once, or set MILLRACE_DIR or MILLRACE_FILE' : "check the path";
  throw new NoStoreError(`there is no ${path}; ${hint}`);
}

function look(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw new NoStoreError(`${path} cannot be looked at: ${thrownText(error)}; is it another user's?`, {
      cause: error,
    });
  }
}
