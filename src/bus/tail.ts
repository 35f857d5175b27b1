/**
 * The journal as it grows, as an async iterator: first the present rows, then, if asked to follow, later ones. SPEC:
 * J76, J95.
 *
 * It reads pages and keeps only its position, so that a slow reader costs no memory. While it waits, events of this
 * process and notices of the store about other writers wake it; a poll covers missed notices.
 */
import type { Host } from "../host/host.ts";
import { JOURNAL_PAGE_ROWS, POLL_INTERVAL_MS } from "../limits.ts";
import { checkTopicPattern, isWildcard, matchesTopic } from "../message/topic-pattern.ts";
import type { JournalRow } from "../store/journal.ts";
import {
  cursorOf,
  type JournalPage,
  type JournalPosition,
  journalLaneOf,
  passing,
  positionOf,
} from "../store/journal-position.ts";
import type { Store } from "../store/store.ts";
import { BusError, EventsGone } from "./bus-error.ts";
import type { JournalSignal } from "./journal-signal.ts";

/** Options of `bus.tail`. */
export interface TailOptions {
  /**
   * Rows after this cursor (`TailedRow.cursor`); all rows, from the beginning, unless given. If rows after it were
   * removed, the iteration fails with `EventsGone` before the next row.
   */
  readonly from?: string;
  /** A topic or a pattern. */
  readonly topic?: string;
  /** Whether to wait for more at the end of the journal. */
  readonly follow?: boolean;
  /** Ends the iteration, without an error. */
  readonly signal?: AbortSignal;
}

/** A row, with the cursor to go on from after it. */
export interface TailedRow extends JournalRow {
  readonly cursor: string;
}

interface TailParts {
  readonly host: Host;
  readonly store: Store;
  readonly signal: JournalSignal;
}

export async function* tail(parts: TailParts, options: TailOptions): AsyncGenerator<TailedRow, void, undefined> {
  const { from = "start", topic, follow = false, signal } = options;
  if (topic !== undefined) checkTopicPattern(topic);
  const position = positionOf(from);
  if (position === undefined)
    throw new BusError("BUS_MISUSE", `${JSON.stringify(from)} is not a cursor of the journal`);
  const resumes = position.history !== "";
  // Removed rows show only where rows of all topics are read.
  const exact = topic !== undefined && !isWildcard(topic) && !resumes ? topic : undefined;
  let passed = position;
  while (!signal?.aborted) {
    const mark = parts.signal.mark;
    const page = await parts.store.follow(passed, JOURNAL_PAGE_ROWS, exact);
    if (resumes && page.end.history !== passed.history) throw new EventsGone(passed, page.end);
    for (const [at, row] of page.rows.entries()) {
      if (signal?.aborted) return;
      if (resumes) requireWhole(page, at, passed);
      passed = passing(passed, page.end.history, journalLaneOf(row), row.id);
      if (topic === undefined || matchesTopic(topic, row.topic)) yield { ...row, cursor: cursorOf(passed) };
    }
    if (resumes) requireWhole(page, page.rows.length, passed);
    passed = page.end;
    if (page.isFull) {
      // Other work runs between two pages, also if no row of them is wanted.
      await parts.host.yield();
      continue;
    }
    if (!follow) return;
    await parts.signal.after(mark, { host: parts.host, timeoutMs: POLL_INTERVAL_MS, signal });
  }
}

/** Throws if rows before a row of the page were removed. */
function requireWhole({ gone, end }: JournalPage, at: number, passed: JournalPosition): void {
  const missing = gone.filter(({ before }) => before === at);
  if (missing.length === 0) return;
  const onFrom = missing.reduce((on, { lane, through }) => passing(on, end.history, lane, through), passed);
  throw new EventsGone(passed, onFrom);
}
