/** Reports of the journal: failures, and the causal tree of a conversation. Reads only. SPEC: J77, J78. */
import { JOURNAL_PAGE_ROWS } from "../limits.ts";
import { type CausalTree, causalTrees } from "../message/causal-trees.ts";
import type { JournalRow } from "../store/journal.ts";
import type { Store } from "../store/store.ts";
import { type JournalReader, journalPages } from "./journal-pages.ts";

/** An event and what it caused. */
export type TraceNode = CausalTree<JournalRow>;

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

export async function failures(store: Store, options: { limit?: number; before?: number } = {}): Promise<Failures> {
  const { limit = JOURNAL_PAGE_ROWS, before } = options;
  const cursor = before === undefined ? {} : { cursor: before };
  const [counts, rows] = await Promise.all([
    store.count(),
    store.query({ status: "failed", order: "descending", limit, ...cursor }),
  ]);
  return { count: counts.failed, rows };
}

export async function trace(reader: JournalReader, correlation: string): Promise<Trace> {
  const rows: JournalRow[] = [];
  for await (const page of journalPages(reader, { correlation })) rows.push(...page);
  return { correlation, size: rows.length, roots: causalTrees(rows) };
}
