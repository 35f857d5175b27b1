/**
 * Rows of a store's journal that a filter finds, for verbs that read the file themselves. SPEC: W80, W82.
 */
import type { JournalFilter } from "../bus/journal-filter.ts";
import { type JournalReader, journalPages } from "../bus/journal-pages.ts";
import { JOURNAL_PAGE_ROWS } from "../limits.ts";
import type { JournalQuery, JournalRow } from "../store/journal.ts";

export { type FailureGroup, failureGroups } from "../bus/failure-groups.ts";
export { type JournalFilter, journalFilter } from "../bus/journal-filter.ts";
export type { JournalQuery } from "../store/journal.ts";

/** The failed rows that match, oldest first. */
export async function* failedRowsOf(
  reader: JournalReader,
  filter: JournalFilter,
  query: Omit<JournalQuery, "limit" | "order" | "status">,
): AsyncGenerator<JournalRow, void, undefined> {
  for await (const rows of journalPages(reader, { ...query, ...filter.query, status: "failed" }))
    for (const row of rows) if (filter.matches(row)) yield row;
}

/** The newest rows that match, newest first. */
export async function newestRows(
  { host, store }: JournalReader,
  filter: JournalFilter,
  query: Omit<JournalQuery, "order">,
): Promise<JournalRow[]> {
  const rows: JournalRow[] = [];
  for (let { cursor } = query; ; await host.yield()) {
    const page = await store.query({
      ...{ ...filter.query, ...query, order: "descending", limit: JOURNAL_PAGE_ROWS },
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const row of page) {
      if (filter.matches(row)) rows.push(row);
      if (rows.length === query.limit) return rows;
    }
    if (page.length < JOURNAL_PAGE_ROWS) return rows;
    cursor = page.at(-1)?.id;
  }
}
