/**
 * Copies of a store file: `millrace backup` and `millrace restore`. The engine copies one snapshot of the file
 * (`VACUUM INTO`), also while a kernel runs, including commits in the log. Every copy is verified before it gets its
 * name. SPEC: K65-K67.
 */

import { chmodSync, closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Host } from "../host/host.ts";
import { MillraceError } from "../message/millrace-error.ts";
import { newHistory } from "../store/history.ts";
import type { VerifyReport } from "../store/journal.ts";
import type { DataDirectory } from "./data-directory.ts";
import { makeDataDirectory } from "./data-directory.ts";
import { InstanceLock } from "./instance-lock.ts";
import { openStoreForReading } from "./open-store.ts";

export class StoreCopyError extends MillraceError<"STORE_COPY"> {
  override readonly name = "StoreCopyError";

  constructor(message: string, options?: ErrorOptions) {
    super("STORE_COPY", message, options);
  }
}

/** Copies a store file to a new name. */
export async function backUp(host: Host, file: string, target: string): Promise<VerifyReport> {
  if (existsSync(target)) throw new StoreCopyError(`${target} is there already; name a new file, or remove that one`);
  if (!existsSync(dirname(target))) throw new StoreCopyError(`there is no directory ${dirname(target)}; make it first`);
  const part = `${target}.part`;
  rmSync(part, { force: true });
  try {
    copy(host, file, part);
    const report = await verified(host, part, file);
    flush(part);
    renameSync(part, target);
    flush(dirname(target));
    return report;
  } finally {
    for (const ending of ["", "-wal", "-shm", "-journal"]) rmSync(`${part}${ending}`, { force: true });
  }
}

export interface Restored {
  readonly report: VerifyReport;
  /** Where the earlier store was moved; undefined if there was none. */
  readonly movedTo: string | undefined;
}

/** Replaces a directory's store by a copy; the earlier store is moved aside. No kernel may run there. */
export async function restore(host: Host, source: string, directory: DataDirectory): Promise<Restored> {
  makeDataDirectory(directory);
  using _lock = InstanceLock.take(directory);
  const { databaseFile } = directory;
  const incoming = join(directory.path, "kernel.restored.db");
  rmSync(incoming, { force: true });
  const report = await backUp(host, source, incoming);
  const movedTo = existsSync(databaseFile) ? aside(host, databaseFile) : undefined;
  renameSync(incoming, databaseFile);
  flush(directory.path);
  return { report, movedTo };
}

/** Together with its log. */
function aside(host: Host, file: string): string {
  const name = `${file}.before-restore-${new Date(host.now()).toISOString().replaceAll(":", "")}`;
  for (const ending of ["-wal", "-shm", ""])
    if (existsSync(`${file}${ending}`)) renameSync(`${file}${ending}`, `${name}${ending}`);
  return name;
}

function copy(host: Host, file: string, target: string): void {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5_000 });
  try {
    database.prepare("VACUUM INTO ?").run(target);
  } finally {
    database.close();
  }
  chmodSync(target, 0o600);
  // The copy includes the log, so it has no open mark. It lacks later commits of the original: another history.
  const made = new DatabaseSync(target);
  try {
    made.prepare("UPDATE store_file SET opened_by = NULL, history = ?").run(newHistory(host));
  } finally {
    made.close();
  }
}

async function verified(host: Host, part: string, file: string): Promise<VerifyReport> {
  await using store = await openStoreForReading(host, part);
  const report = await store.verify();
  if (report.ok) return report;
  const first = report.problems[0] ?? "";
  throw new StoreCopyError(
    `${file} is damaged, and so would be its copy: ${first} Run "millrace verify" for all of it.`,
  );
}

/** Flushes a file, or the names in a directory. */
export function flush(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
