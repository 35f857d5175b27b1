/** The Postgres database of a store, for the command: inspection, migration, copies, and a server for development. */
import { resolve } from "node:path";
import type { Host } from "../host/host.ts";
import type { DatabaseFacts, DatabaseInspection, KernelFacts } from "../store/postgres/inspect.ts";
import type { LocalServer, LocalServerOptions } from "../store/postgres/local-server.ts";
import type { LineCounts } from "../store/sqlite/export-lines.ts";
import type { DataDirectory } from "./data-directory.ts";
import { InstanceLock } from "./instance-lock.ts";
import { databaseUrls } from "./open-store.ts";
import { linesOfStore } from "./store-lines.ts";

export type { DatabaseFacts, KernelFacts };

/** Lines between two reports of progress. */
const PROGRESS_LINES = 1_000;

/** Loaded here, because the package `pg` is optional. */
export async function inspectDatabase(url: string): Promise<DatabaseInspection> {
  const { DatabaseInspection } = await import("../store/postgres/inspect.ts");
  return DatabaseInspection.open({ url: databaseUrls(url) });
}

export async function migrateDatabase(url: string): Promise<{ from: number; to: number }> {
  const { migratePostgres } = await import("../store/postgres/store.ts");
  return migratePostgres({ url: databaseUrls(url) });
}

export async function startLocalServer(options: LocalServerOptions): Promise<LocalServer> {
  const { LocalServer } = await import("../store/postgres/local-server.ts");
  return LocalServer.start(options);
}

/** Copies a file that no kernel writes to into an empty database. */
export async function copyToDatabase(
  host: Host,
  file: string,
  url: string,
  parts: { readonly version: string; readonly directory: DataDirectory; readonly progress: (lines: number) => void },
): Promise<LineCounts> {
  const { version, directory, progress } = parts;
  using _lock = resolve(file) === resolve(directory.databaseFile) ? InstanceLock.take(directory) : undefined;
  const { importIntoPostgres } = await import("../store/postgres/import-lines.ts");
  return await importIntoPostgres({ url: databaseUrls(url), host }, linesOfStore(host, file, version), (lines) => {
    if (lines % PROGRESS_LINES === 0) progress(lines);
  });
}
