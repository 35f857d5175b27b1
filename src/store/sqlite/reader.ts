/**
 * A second, read-only connection for long reads: it sees one snapshot while the writer continues.
 */
import type { DocumentRef } from "../document.ts";
import type { LoadResult } from "../store.ts";
import { type Connection, configure, openConnection } from "./connection.ts";
import { DocumentReads } from "./document-reads.ts";
import type { ResolvedOptions } from "./options.ts";
import { Tables } from "./tables.ts";

export interface Reader extends AsyncDisposable {
  readonly connection: Connection;
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
