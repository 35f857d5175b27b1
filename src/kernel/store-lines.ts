/**
 * `millrace export --jsonl` and `millrace import`: a store as JSON lines in a file. An export gets its name when it
 * is complete; an import leaves a store only if every line was valid. SPEC: K120-K123.
 */
import { closeSync, createReadStream, existsSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { Host } from "../host/host.ts";
import { IMPORT_LINE_LENGTH_MAX } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import { exportStore, ImportError, importStore, type LineCounts } from "../store/sqlite/transfer.ts";
import type { DataDirectory } from "./data-directory.ts";
import { makeDataDirectory } from "./data-directory.ts";
import { InstanceLock } from "./instance-lock.ts";
import { DURABILITY, openStore } from "./open-store.ts";
import { flush, StoreCopyError } from "./store-copy.ts";

/** Lines between two reports of progress. */
const PROGRESS_LINES = 1_000;
const OWNER_ONLY = 0o600;

export type Progress = (lines: number) => void;

export function linesOfStore(host: Host, file: string, version: string): AsyncGenerator<string> {
  return exportStore({ path: file, host, durability: DURABILITY }, version);
}

/** Writes the lines under a new name; resolves with their number. */
export async function writeLines(lines: AsyncIterable<string>, target: string, progress: Progress): Promise<number> {
  if (existsSync(target)) throw new StoreCopyError(`${target} is there already; name a new file, or remove that one`);
  if (!existsSync(dirname(target))) throw new StoreCopyError(`there is no directory ${dirname(target)}; make it first`);
  const part = `${target}.part`;
  let count = 0;
  try {
    const file = openSync(part, "w", OWNER_ONLY);
    try {
      for await (const line of lines) {
        writeAll(file, `${line}\n`);
        if (++count % PROGRESS_LINES === 0) progress(count);
      }
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(part, target);
    flush(dirname(target));
    return count;
  } finally {
    rmSync(part, { force: true });
  }
}

/** Reads an export into the store of a data directory, which must be empty or missing. No kernel may run there. */
export async function importLines(
  host: Host,
  source: string,
  directory: DataDirectory,
  progress: Progress,
): Promise<LineCounts> {
  if (!existsSync(source)) throw new ImportError(`there is no ${source}; check the path`);
  makeDataDirectory(directory);
  using _lock = InstanceLock.take(directory);
  const path = directory.databaseFile;
  const isNew = !existsSync(path);
  try {
    // Creates the tables of a missing file.
    await (await openStore(host, path)).close();
    return await importStore({ path, host, durability: DURABILITY }, linesOf(source), (number) => {
      if (number % PROGRESS_LINES === 0) progress(number);
    });
  } catch (error) {
    if (isNew) for (const ending of ["", "-wal", "-shm"]) rmSync(`${path}${ending}`, { force: true });
    throw error;
  }
}

async function* linesOf(source: string): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  let count = 0;
  const decode = (chunk?: Uint8Array): string => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch (error) {
      throw new ImportError(`line ${count + 1} or one soon after it is not UTF-8 (${thrownText(error)})`, {
        cause: error,
      });
    }
  };
  for await (const chunk of createReadStream(source)) {
    const lines = (rest + decode(chunk)).split("\n");
    rest = lines.pop() as string;
    if (rest.length > IMPORT_LINE_LENGTH_MAX)
      throw new ImportError(`line ${count + lines.length + 1} is longer than ${IMPORT_LINE_LENGTH_MAX} characters`);
    for (const line of lines) {
      count++;
      yield line;
    }
  }
  rest += decode();
  if (rest !== "") yield rest;
}

function writeAll(file: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let from = 0; from < bytes.length; ) from += writeSync(file, bytes, from);
}
