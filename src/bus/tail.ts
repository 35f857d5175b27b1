/**
 * The journal as it grows, as an async iterator: first what is there, then, if asked to follow, what comes. SPEC: J76, J95.
 *
 * It reads pages by id and keeps nothing but its position, so that a slow reader costs no memory. While it waits it is woken by
 * what is published here and by the store's word of others' writes; the poll stands behind both.
 */
import type { Host } from "../host/host.ts";
import { JOURNAL_PAGE_ROWS, POLL_INTERVAL_MS } from "../limits.ts";
import { checkTopicPattern, isWildcard, matchesTopic } from "../message/topic-pattern.ts";
import type { JournalRow } from "../store/journal.ts";
import type { Store } from "../store/store.ts";
import { EventsGone } from "./bus-error.ts";
import type { JournalSignal } from "./journal-signal.ts";

export interface TailOptions {
  /**
   * Rows after this id; whatever there is, from the beginning, unless given. Where one that came after it is there no more, the iteration
   * fails with `EventsGone`, before the next one that is.
   */
  readonly from?: number;
  /** A topic or a pattern. */
  readonly topic?: string;
  /** Whether to wait for more at the end of the journal. */
  readonly follow?: boolean;
  /** Ends the iteration, without an error. */
  readonly signal?: AbortSignal;
}

interface TailParts {
  readonly host: Host;
  readonly store: Store;
  readonly signal: JournalSignal;
}

export async function* tail(parts: TailParts, options: TailOptions): AsyncGenerator<JournalRow, void, undefined> {
  const { from = 0, topic, follow = false, signal } = options;
  if (topic !== undefined) checkTopicPattern(topic);
  const resumes = from > 0;
  // Ids have no gaps but those of retention, which show where all rows are read.
  const exact = topic !== undefined && !isWildcard(topic) && !resumes ? { topic } : {};
  let cursor = from;
  while (!signal?.aborted) {
    const mark = parts.signal.mark;
    // Asked before: what comes in between is after it.
    const lastId = resumes ? await parts.store.lastId() : 0;
    const rows = await parts.store.query({ ...exact, cursor, limit: JOURNAL_PAGE_ROWS });
    for (const row of rows) {
      if (signal?.aborted) return;
      if (resumes && row.id > cursor + 1) throw new EventsGone(cursor + 1, row.id - 1);
      cursor = row.id;
      if (topic === undefined || matchesTopic(topic, row.topic)) yield row;
    }
    if (rows.length === JOURNAL_PAGE_ROWS) {
      // Others get in between two pages, also where nothing of them is wanted.
      await parts.host.yield();
      continue;
    }
    // Nothing is there that would show the gap: all up to the end is gone.
    if (resumes && cursor < lastId) throw new EventsGone(cursor + 1, lastId);
    if (!follow) return;
    await parts.signal.after(mark, { host: parts.host, timeoutMs: POLL_INTERVAL_MS, signal });
  }
}
