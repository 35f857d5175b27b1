/**
 * Journal rows that belong together: by correlation, or by causation if there is none.
 */
import type { KernelStore } from "../kernel/open-store.ts";
import { causationOf } from "../message/envelope.ts";
import type { JournalLine } from "./journal-lines.ts";

/** A larger conversation is cut with a note. */
export const CONVERSATION_ROWS_MAX = 1_000;

/** All rows of the conversation of an id; without a correlation, those reached by causation from its first cause. */
export async function conversation(store: KernelStore, id: string): Promise<readonly JournalLine[]> {
  const [row] = await store.query({ messageId: id, limit: 1 });
  const correlation = row?.message?.metadata.correlation ?? id;
  const correlated = await store.query({ correlation, limit: CONVERSATION_ROWS_MAX });
  if (correlated.length > 0) return correlated;
  const found = new Map<number, JournalLine>();
  const starts = row
    ? [(await causeChain(store, row)).at(-1) ?? row]
    : await store.query({ causation: id, limit: CONVERSATION_ROWS_MAX });
  for (const start of starts) await collect(store, start, found);
  return [...found.values()];
}

/** The causes of a row, nearest first, as far as they are in the journal. */
export async function causeChain(store: KernelStore, row: JournalLine): Promise<JournalLine[]> {
  const causes: JournalLine[] = [];
  const seen = new Set([row.id]);
  for (let effect = row; ; ) {
    const causation = effect.message && causationOf(effect.message);
    const [cause] = causation === undefined ? [] : await store.query({ messageId: causation, limit: 1 });
    if (!cause || seen.has(cause.id)) return causes;
    seen.add(cause.id);
    causes.push(cause);
    effect = cause;
  }
}

async function collect(store: KernelStore, row: JournalLine, found: Map<number, JournalLine>): Promise<void> {
  if (found.has(row.id) || found.size >= CONVERSATION_ROWS_MAX) return;
  found.set(row.id, row);
  const causation = row.message?.metadata.id;
  if (causation === undefined) return;
  for (const caused of await store.query({ causation, limit: CONVERSATION_ROWS_MAX }))
    await collect(store, caused, found);
}
