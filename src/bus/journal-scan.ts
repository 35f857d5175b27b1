/**
 * Reads the rows that a filter finds, in pages with a cursor. Terms without an index are checked row by row; the scan
 * yields between pages and stops after a time, and the caller goes on where it stopped. SPEC: W81.
 *
 *     scanning ──enough rows, or their bytes──> next ──┐
 *        ├──JOURNAL_SCAN_MS are over──> scannedTo ──────┴──the caller asks again with the cursor──> scanning
 *        └──the journal's end, or a bound──> complete
 */
import { JOURNAL_ANSWER_BYTES_MAX, JOURNAL_PAGE_ROWS, JOURNAL_SCAN_MS } from "../limits.ts";
import type { JournalRow } from "../store/journal.ts";
import type { JournalFilter } from "./journal-filter.ts";
import type { JournalReader } from "./journal-pages.ts";

export interface JournalScan {
  readonly filter: JournalFilter;
  /** Rows after it (ascending) or before it (descending). */
  readonly cursor?: number;
  readonly order: "ascending" | "descending";
  readonly limit: number;
}

export interface JournalFound {
  readonly rows: readonly JournalRow[];
  /** More rows may follow after this id: the page is full. */
  readonly next?: number;
  /** The scan stopped here although the page is not full. */
  readonly scannedTo?: number;
}

export async function scanJournal({ host, store }: JournalReader, scan: JournalScan): Promise<JournalFound> {
  const { filter, order, limit } = scan;
  const until = host.monotonic() + JOURNAL_SCAN_MS;
  const rows: JournalRow[] = [];
  let bytes = 0;
  for (let cursor = startOf(scan); ; ) {
    const page = await store.query({
      ...filter.query,
      ...{ order, limit: JOURNAL_PAGE_ROWS },
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const row of page) {
      cursor = row.id;
      if (isPast(row.id, scan)) return { rows };
      if (!filter.matches(row)) continue;
      rows.push(row);
      bytes += JSON.stringify(row.message?.data ?? null).length;
      if (rows.length >= limit || bytes >= JOURNAL_ANSWER_BYTES_MAX) return { rows, next: row.id };
    }
    if (page.length < JOURNAL_PAGE_ROWS || isTooOld(page, scan)) return { rows };
    if (host.monotonic() >= until) return { rows, scannedTo: cursor as number };
    await host.yield();
  }
}

/** The ids of the filter's bounds spare the rows outside. */
function startOf({ filter: { bounds }, cursor, order }: JournalScan): number | undefined {
  const { fromId, toId } = bounds;
  if (order === "ascending") return Math.max(cursor ?? 0, (fromId ?? 1) - 1);
  if (toId === undefined) return cursor;
  return Math.min(cursor ?? toId + 1, toId + 1);
}

function isPast(id: number, { filter: { bounds }, order }: JournalScan): boolean {
  if (order === "ascending") return bounds.toId !== undefined && id > bounds.toId;
  return bounds.fromId !== undefined && id < bounds.fromId;
}

/** Clocks may step back a little, so that a whole page must be older. */
function isTooOld(page: readonly JournalRow[], { filter: { bounds }, order }: JournalScan): boolean {
  const { fromMs } = bounds;
  return order === "descending" && fromMs !== undefined && page.every(({ createdAtMs }) => createdAtMs < fromMs);
}
