/**
 * The store of a reading verb: named, `MILLRACE_FILE` (for a program with its own store), the database of
 * `MILLRACE_STORE`, or the file of the data directory. Creates no file. SPEC: K54, K190.
 */

import { type Stats, statSync } from "node:fs";
import { dataDirectory } from "../kernel/data-directory.ts";
import { isDatabaseUrl } from "../kernel/open-store.ts";
import { thrownText } from "../message/error-data.ts";
import { MillraceError } from "../message/millrace-error.ts";
import { UsageError } from "./verb.ts";

export class NoStoreError extends MillraceError<"NO_STORE"> {
  override readonly name = "NoStoreError";

  constructor(message: string, options?: ErrorOptions) {
    super("NO_STORE", message, options);
  }
}

/** A file, or the URL of a database. */
export function existingStore(
  named: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  if (named !== undefined && isDatabaseUrl(named)) return named;
  return databaseUrl(named, environment) ?? existingFile(named, environment);
}

/** For verbs that work on a file alone. */
export function existingDatabaseFile(
  named: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  if (databaseUrl(named, environment) === undefined) return existingFile(named, environment);
  throw new NoStoreError(
    "this verb works on a SQLite file, and MILLRACE_STORE names a Postgres database; use pg_dump or pg_basebackup there",
  );
}

/** For verbs that work on a database alone. */
export function databaseOf(
  named: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const url = named ?? (environment["MILLRACE_STORE"] || undefined);
  if (url !== undefined && isDatabaseUrl(url)) return url;
  throw new UsageError("name a postgres:// URL, or set MILLRACE_STORE");
}

function databaseUrl(
  named: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (named !== undefined || environment["MILLRACE_FILE"]) return undefined;
  const url = environment["MILLRACE_STORE"] || undefined;
  if (url === undefined || isDatabaseUrl(url)) return url;
  throw new NoStoreError("MILLRACE_STORE must be a postgres:// URL; for a file set MILLRACE_DIR or MILLRACE_FILE");
}

function existingFile(named: string | undefined, environment: Readonly<Record<string, string | undefined>>): string {
  // An empty variable counts as not set, as usual in shells.
  const chosen = named ?? (environment["MILLRACE_FILE"] || undefined);
  const path = chosen ?? dataDirectory(environment).databaseFile;
  const found = look(path);
  if (found?.isFile() && found.size === 0)
    throw new NoStoreError(`${path} is empty: no kernel has written to it yet; check the path`);
  if (found) return path;
  const hint =
    chosen === undefined
      ? 'run "millrace start" once, or set MILLRACE_DIR, MILLRACE_FILE or MILLRACE_STORE'
      : "check the path";
  throw new NoStoreError(`there is no ${path}; ${hint}`);
}

function look(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw new NoStoreError(`${path} cannot be read: ${thrownText(error)}; is it another user's?`, {
      cause: error,
    });
  }
}
