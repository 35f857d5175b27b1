/** The store file that a looking verb was asked about: named, or that of the data directory. Looking makes no file. */
import { existsSync } from "node:fs";
import { dataDirectory } from "../kernel/data-directory.ts";

export class NoStoreError extends Error {
  override readonly name = "NoStoreError";
  readonly code = "NO_STORE";
}

export function existingDatabaseFile(
  named: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const path = named ?? dataDirectory(environment).databaseFile;
  if (existsSync(path)) return path;
  const hint = named === undefined ? 'run "millrace start" once, or set MILLRACE_DIR' : "check the path";
  throw new NoStoreError(`there is no ${path}; ${hint}`);
}
