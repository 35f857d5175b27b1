/**
 * Pages of the journal for followers. A file has one lane, and the writer gives ids without gaps, so a gap between two
 * rows shows that rows were removed. SPEC: J171-J175.
 */
import type { JournalRow } from "../journal.ts";
import { type GoneRows, type JournalPage, type JournalPosition, passedIn, within } from "../journal-position.ts";
import type { Connection } from "./connection.ts";
import { lastJournalId, queryJournal } from "./journal-query.ts";

const LANE = 0;

export function journalEnd(connection: Connection, history: string): JournalPosition {
  return positionAt(history, lastJournalId(connection));
}

export function followJournal(
  connection: Connection,
  history: string,
  after: JournalPosition,
  { limit, topic }: { readonly limit: number; readonly topic: string | undefined },
): JournalPage {
  if (after.history !== "" && after.history !== history)
    return { rows: [], end: within(after, journalEnd(connection, history)), isFull: true, gone: [] };
  const passed = passedIn(after, LANE);
  const rows = queryJournal(connection, { cursor: passed, limit, ...(topic === undefined ? {} : { topic }) });
  const isFull = rows.length === limit;
  const newest = rows.at(-1)?.id ?? passed;
  const end = isFull ? newest : Math.max(newest, lastJournalId(connection));
  return {
    rows,
    end: positionAt(history, end),
    isFull,
    gone: topic === undefined ? goneBetween(passed, rows, end) : [],
  };
}

function goneBetween(passed: number, rows: readonly JournalRow[], end: number): readonly GoneRows[] {
  const gone: GoneRows[] = [];
  let previous = passed;
  for (const [before, { id }] of rows.entries()) {
    if (id > previous + 1) gone.push({ before, lane: LANE, through: id - 1 });
    previous = id;
  }
  if (end > previous) gone.push({ before: rows.length, lane: LANE, through: end });
  return gone;
}

function positionAt(history: string, id: number): JournalPosition {
  return { history, lanes: new Map(id === 0 ? [] : [[LANE, id]]) };
}
