/**
 * A second, read-only connection for long reads: it sees one snapshot while the writer continues.
 */

import type { Host } from "../../host/host.ts";
import { pause } from "../../host/pause.ts";
import { thrownText } from "../../message/error-data.ts";
import type { DocumentRef } from "../document.ts";
import type { LoadResult } from "../store.ts";
import { StoreError } from "../store.ts";
import { configure, openConnection, type SqliteConnection } from "./connection.ts";
import { DocumentReads } from "./document-reads.ts";
import type { ResolvedOptions } from "./options.ts";
import { engineTrouble } from "./sqlite-error.ts";
import { Tables } from "./tables.ts";

export interface Reader extends AsyncDisposable {
  readonly connection: SqliteConnection;
}

/** The snapshot is taken at its first read. */
export function openReader(options: ResolvedOptions): Reader {
  const connection = openConnection(options, true);
  configure(connection, options, true);
  connection.exec("BEGIN");
  return {
    connection,
    [Symbol.asyncDispose]: async () => {
      connection.rollback();
      connection.close();
    },
  };
}

/** Loads documents from one snapshot and yields to the event loop in between; `refs` must not change meanwhile. */
export async function loadInSlices(
  options: ResolvedOptions,
  space: string,
  refs: readonly DocumentRef[],
  sliceLength: number,
): Promise<LoadResult> {
  await using reader = openReader(options);
  const tables = new Tables(reader.connection);
  const reads = new DocumentReads(tables, options.tuning.feedCommits);
  const documents: LoadResult["documents"][number][] = [];
  let sequence = 0;
  for (let from = 0; from < refs.length; from += sliceLength) {
    const page = reads.load(space, refs.slice(from, from + sliceLength));
    documents.push(...page.documents);
    sequence = page.sequence;
    await options.host.yield();
  }
  return { sequence, history: tables.history, documents };
}

const RETRY_MS = 1;

/**
 * Retries reads that meet a short recovery by another process, for as long as a writer would wait for its lock. Other
 * errors become a `StoreError`.
 */
export class PatientReads {
  readonly #host: Host;
  readonly #waitMs: number;

  constructor(host: Host, waitMs: number) {
    this.#host = host;
    this.#waitMs = waitMs;
  }

  async read<T>(run: () => T): Promise<T> {
    const startMs = this.#host.monotonic();
    for (;;) {
      try {
        return run();
      } catch (error) {
        const trouble = engineTrouble(error);
        if (trouble === undefined) throw error;
        const waited = this.#host.monotonic() - startMs;
        if (trouble !== "busy" || waited > this.#waitMs) throw readFailed(trouble, error);
        await pause(this.#host, RETRY_MS);
      }
    }
  }
}

function readFailed(trouble: ReturnType<typeof engineTrouble>, error: unknown): StoreError {
  const code = trouble === "corrupt" ? "STORE_CORRUPT" : trouble === "busy" ? "STORE_BUSY" : "STORE_IO";
  return new StoreError(code, `The database could not be read: ${thrownText(error)}.`, { cause: error });
}
