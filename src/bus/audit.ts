/**
 * The journal as operators use it: dead letters, the causal tree of a conversation, and the audit rows of their own
 * actions. SPEC: J77, J78, K91.
 */
import { JOURNAL_PAGE_ROWS } from "../limits.ts";
import { type CausalTree, causalTrees } from "../message/causal-trees.ts";
import type { JsonObject } from "../message/json.ts";
import { eventMessage } from "../message/lineage.ts";
import type { JournalRow } from "../store/journal.ts";
import type { Store } from "../store/store.ts";
import type { RemovedConsumer } from "./consumer-removal.ts";
import { type JournalReader, journalPages } from "./journal-pages.ts";

/** An event and its consequences. */
export type TraceNode = CausalTree<JournalRow>;

/** The events of one correlation as trees: the result of `bus.trace()`. */
export interface Trace {
  readonly correlation: string;
  readonly size: number;
  /** Events without a cause in this conversation, in the order of the journal. */
  readonly roots: readonly TraceNode[];
}

/** Dead letters: the result of `bus.failures()`. */
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

/** An action of an operator, as its audit row holds it. */
export type OperatorAction = { readonly by: string | undefined } & (
  | { readonly action: "requeue"; readonly ids: readonly number[]; readonly filter?: string }
  | {
      readonly action: "discard";
      readonly ids: readonly number[];
      readonly reason: string;
      readonly filter?: string;
    }
  | { readonly action: "replay"; readonly row: number; readonly message: string }
  | {
      readonly action: "purge";
      readonly removed: number;
      readonly settledBeforeMs?: number;
      readonly keepSettled?: number;
    }
  | { readonly action: "cancel"; readonly timerId: string }
  | { readonly action: "restart"; readonly extension: string }
  | { readonly action: "heal"; readonly capability: string }
  | { readonly action: "remove-consumer"; readonly consumer: string; readonly topics: readonly string[] }
  /** Without the subject: its name may be personal data too. */
  | { readonly action: "erase"; readonly documents: number; readonly rows: number; readonly receipts: number }
);

/** The name in the audit row of a client that gives none. */
const UNNAMED = "a client without a name";

/** Writes the audit row of an action: a done event of the kernel's own type, which clients cannot publish. */
export async function recordAction(
  { host, store }: JournalReader,
  { by = UNNAMED, ...action }: OperatorAction,
): Promise<void> {
  const message = eventMessage(host, "Sys.Audited", { by, ...action } as never as JsonObject);
  await store.append([{ message, topic: message.type, source: "operator", as: { status: "done" } }]);
}

/** The action of removing consumers; undefined if none was removed. */
export function consumersRemoved(
  by: string | undefined,
  consumer: string,
  removed: readonly RemovedConsumer[],
): OperatorAction | undefined {
  const topics = removed.filter(({ result }) => result === "removed").map(({ pattern }) => pattern);
  return topics.length === 0 ? undefined : { action: "remove-consumer", by, consumer, topics };
}

export async function trace(reader: JournalReader, correlation: string): Promise<Trace> {
  const rows: JournalRow[] = [];
  for await (const page of journalPages(reader, { correlation })) rows.push(...page);
  return { correlation, size: rows.length, roots: causalTrees(rows) };
}
