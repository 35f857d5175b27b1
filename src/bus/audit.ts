/**
 * What the journal tells a person: failures, and the causal tree of a conversation. Reads only, except that it puts failed
 * events back. SPEC: J75, J77, J78.
 */
import { JOURNAL_PAGE_ROWS } from "../limits.ts";
import { causationOf } from "../message/envelope.ts";
import type { JournalQuery, JournalRow } from "../store/journal.ts";
import type { Store } from "../store/store.ts";

/** An event and what it caused. */
export interface TraceNode {
  readonly row: JournalRow;
  /** In the order of the journal. */
  readonly children: readonly TraceNode[];
}

export interface Trace {
  readonly correlation: string;
  readonly size: number;
  /** Events that nothing in this conversation caused, in the order of the journal. */
  readonly roots: readonly TraceNode[];
}

export interface Failures {
  /** How many rows of the journal have failed: events, and commands whose handling failed. */
  readonly count: number;
  /** The latest of them, newest first. */
  readonly rows: readonly JournalRow[];
}

/** Which failed events to put back. */
export type RequeueQuery = Pick<JournalQuery, "topic" | "correlation" | "createdFromMs" | "createdBeforeMs">;

export async function failures(store: Store, options: { limit?: number; before?: number } = {}): Promise<Failures> {
  const { limit = JOURNAL_PAGE_ROWS, before } = options;
  const cursor = before === undefined ? {} : { cursor: before };
  const [counts, rows] = await Promise.all([
    store.count(),
    store.query({ status: "failed", order: "descending", limit, ...cursor }),
  ]);
  return { count: counts.failed, rows };
}

/** Puts all failed events that a query finds back to pending, page by page. */
export async function requeueWhere(store: Store, query: RequeueQuery): Promise<number[]> {
  const requeued: number[] = [];
  for (let cursor = 0; ; ) {
    const rows = await store.query({ ...query, status: "failed", kind: "event", cursor, limit: JOURNAL_PAGE_ROWS });
    if (rows.length > 0) requeued.push(...(await store.requeue(rows.map((row) => row.id))));
    if (rows.length < JOURNAL_PAGE_ROWS) return requeued;
    cursor = rows.at(-1)!.id;
  }
}

export async function trace(store: Store, correlation: string): Promise<Trace> {
  const rows = await rowsOf(store, correlation);
  const nodes = new Map<string, { row: JournalRow; children: TraceNode[] }>();
  const roots: TraceNode[] = [];
  for (const row of rows) if (row.message) nodes.set(row.message.metadata.id, { row, children: [] });
  for (const row of rows) {
    const node = (row.message && nodes.get(row.message.metadata.id)) ?? { row, children: [] };
    const cause = row.message && causationOf(row.message);
    const parent = cause === undefined ? undefined : nodes.get(cause);
    // A cause comes before its effect in the journal; what says otherwise would make a circle.
    if (parent && parent.row.id < row.id) parent.children.push(node);
    else roots.push(node);
  }
  return { correlation, size: rows.length, roots };
}

async function rowsOf(store: Store, correlation: string): Promise<JournalRow[]> {
  const rows: JournalRow[] = [];
  for (let cursor = 0; ; ) {
    const page = await store.query({ correlation, cursor, limit: JOURNAL_PAGE_ROWS });
    rows.push(...page);
    if (page.length < JOURNAL_PAGE_ROWS) return rows;
    cursor = page.at(-1)!.id;
  }
}
