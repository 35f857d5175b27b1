/** Opens a file to export all of it, or to import into it. SPEC: S140-S144. */
import type { Host } from "../../host/host.ts";
import { StoreError } from "../store.ts";
import { configure, openConnection } from "./connection.ts";
import { exportLines, type LineCounts } from "./export-lines.ts";
import { ImportError, ImportLines, requireEmpty } from "./import-lines.ts";
import { resolveOptions, type SqliteStoreOptions } from "./options.ts";
import { openReader } from "./reader.ts";
import { verifyStore } from "./verify.ts";

export type { LineCounts } from "./export-lines.ts";
export { ImportError } from "./import-lines.ts";

/** The lines of a sound store, as of one moment, also while a kernel runs on it. */
export async function* exportStore(options: SqliteStoreOptions, version: string): AsyncGenerator<string> {
  const resolved = resolveOptions(options);
  await using reader = openReader(resolved);
  const { ok, problems } = await verifyStore(reader.connection, resolved.host);
  if (!ok)
    throw new StoreError(
      "STORE_CORRUPT",
      `${resolved.path} is damaged: ${problems[0]} Run "millrace verify" for all of it.`,
    );
  yield* exportLines(reader.connection, resolved.host, version);
}

/**
 * Takes all lines in one transaction, and verifies the result before it is committed. No other process has the file
 * open.
 */
export async function importStore(
  options: SqliteStoreOptions,
  lines: AsyncIterable<string>,
  onLine: (number: number) => void,
): Promise<LineCounts> {
  const resolved = resolveOptions(options);
  const connection = openConnection(resolved, false);
  try {
    configure(connection, resolved, false);
    connection.exec("BEGIN EXCLUSIVE");
    requireEmpty(connection, resolved.path);
    const taken = new ImportLines(connection);
    let number = 0;
    for await (const line of lines) {
      taken.take(line, ++number);
      onLine(number);
    }
    taken.finish();
    await requireSound(connection, resolved.host);
    connection.exec("COMMIT");
    connection.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    return taken.counts;
  } finally {
    connection.rollback();
    connection.close();
  }
}

async function requireSound(connection: Parameters<typeof verifyStore>[0], host: Host): Promise<void> {
  const { ok, problems } = await verifyStore(connection, host);
  if (!ok) throw new ImportError(`the lines were changed after the export: ${problems[0]} Nothing was imported.`);
}
