/**
 * Rows of the journal, page by page, in the order of their ids. The host runs between two pages: a store may answer by
 * promises alone, and would keep all other work waiting, however long the journal is. SPEC: L1, J95.
 */
import type { Host } from "../host/host.ts";
import { JOURNAL_PAGE_ROWS } from "../limits.ts";
import type { JournalQuery, JournalRow } from "../store/journal.ts";
import type { Store } from "../store/store.ts";

/** The journal, and the host that runs between pages. */
export interface JournalReader {
  readonly host: Host;
  readonly store: Store;
}

/** The pages that a query finds, from its cursor on; none of them is empty. */
export async function* journalPages(
  { host, store }: JournalReader,
  query: Omit<JournalQuery, "limit" | "order">,
): AsyncGenerator<readonly JournalRow[], void, undefined> {
  for (let { cursor = 0 } = query; ; ) {
    const page = await store.query({ ...query, cursor, limit: JOURNAL_PAGE_ROWS });
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    if (page.length < JOURNAL_PAGE_ROWS) return;
    cursor = last.id;
    await host.yield();
  }
}
