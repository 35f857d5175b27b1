/**
 * Whether a journal row matches a query: every given field must match. SPEC: J29.
 */
import type { JournalQuery } from "../journal.ts";
import type { JournalRecord } from "./journal-record.ts";

export function matches(record: JournalRecord, query: JournalQuery): boolean {
  return (
    holds(query.id, record.id) &&
    holds(query.messageId, record.messageId) &&
    holds(query.status, record.state.status) &&
    holds(query.topic, record.topic) &&
    (query.named === undefined || query.named === record.topic || query.named === record.type) &&
    holds(query.kind, record.kind) &&
    holds(query.correlation, record.correlation) &&
    holds(query.causation, record.causation) &&
    (query.createdFromMs === undefined || record.createdAtMs >= query.createdFromMs) &&
    (query.createdBeforeMs === undefined || record.createdAtMs < query.createdBeforeMs) &&
    isPastCursor(record.id, query)
  );
}

function holds<T>(asked: T | undefined, found: T | undefined): boolean {
  return asked === undefined || asked === found;
}

function isPastCursor(id: number, { cursor, order }: JournalQuery): boolean {
  if (cursor === undefined) return true;
  return order === "descending" ? id < cursor : id > cursor;
}
