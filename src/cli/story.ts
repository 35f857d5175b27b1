/**
 * The tree of a message: all related messages under their causes. Rows come from the journal; queries and plain
 * commands leave none and come from the memory of the running kernel. A message known only as a cause appears by its
 * id. All messages of one correlation are one tree. SPEC: K71, K72.
 */
import type { HandlingView } from "../kernel/inspect-capability.ts";
import type { KernelStore } from "../kernel/open-store.ts";
import { HANDLINGS_ASKED_MAX } from "../limits.ts";
import { type CausalTree, causalTrees } from "../message/causal-trees.ts";
import { causationOf, type Message } from "../message/envelope.ts";
import { connectIfRunning } from "./connection.ts";
import { CONVERSATION_ROWS_MAX, conversation } from "./conversation.ts";
import type { JournalLine } from "./journal-lines.ts";
import type { VerbCall } from "./verb.ts";

export interface StoryItem {
  /** Its id and its cause, if known. */
  readonly message: Pick<Message, "metadata">;
  readonly atMs: number;
  /** Absent if it left no row or the row was removed. */
  readonly row?: JournalLine;
  /** Handlings in the kernel's memory; empty after a restart. */
  readonly handlings: readonly HandlingView[];
}

export type StoryTree = CausalTree<StoryItem>;

export interface Story {
  readonly rows: readonly JournalLine[];
  /** One if the messages have a correlation. */
  readonly trees: readonly StoryTree[];
}

export async function storyOf(call: VerbCall, store: KernelStore, id: string): Promise<Story> {
  const first = await handlingsOf(call, [id]);
  const own = first.find((handling) => handling.id === id);
  const found = await conversation(store, id);
  const rows = found.length > 0 || own === undefined ? found : await conversation(store, own.correlation ?? id);
  const correlation = rows[0]?.message?.metadata.correlation ?? own?.correlation;
  const ids = new Set([id, ...(correlation === undefined ? [] : [correlation]), ...rows.flatMap(messageIds)]);
  const handlings = await handlingsOf(call, [...ids]);
  return { rows, trees: treesOf(itemsOf(rows, handlings), correlation) };
}

/** Handlings of messages by id, cause or correlation; none without a running kernel. */
export async function handlingsOf(call: VerbCall, ids: readonly string[]): Promise<readonly HandlingView[]> {
  const client = await connectIfRunning(call);
  if (!client) return [];
  await using _ = client;
  const found = new Map<string, HandlingView>();
  for (let from = 0; from < ids.length; from += HANDLINGS_ASKED_MAX) {
    const asked = ids.slice(from, from + HANDLINGS_ASKED_MAX);
    const answer = (await client.query("Kernel.Handlings", { ids: asked })) as never as { handlings: HandlingView[] };
    for (const one of answer.handlings) found.set(`${one.id} ${one.handler} ${one.attempt} ${one.givenAtMs}`, one);
  }
  return [...found.values()];
}

function messageIds({ message }: JournalLine): string[] {
  return message ? [message.metadata.id] : [];
}

function itemsOf(rows: readonly JournalLine[], handlings: readonly HandlingView[]): StoryItem[] {
  const byMessage = Map.groupBy(handlings, ({ id }) => id);
  const items = rows.map((row): StoryItem => {
    const { createdAtMs, message, id } = row;
    const metadata = message?.metadata ?? { id: String(id), timestamp: createdAtMs };
    const own = byMessage.get(metadata.id) ?? [];
    byMessage.delete(metadata.id);
    return { message: { metadata }, atMs: sentAt(row), row, handlings: own };
  });
  for (const [id, own] of byMessage) {
    const [{ causation, givenAtMs: timestamp }] = own as [HandlingView];
    const metadata = { id, timestamp, ...(causation === undefined ? {} : { causation }) };
    items.push({ message: { metadata }, atMs: timestamp, handlings: own });
  }
  return items.sort((a, b) => a.atMs - b.atMs);
}

function sentAt({ message, createdAtMs }: JournalLine): number {
  return Math.min(message?.metadata.timestamp ?? createdAtMs, createdAtMs);
}

/** The trees of a story; messages known only as causes are added. */
function treesOf(items: readonly StoryItem[], correlation: string | undefined): StoryTree[] {
  const known = new Set(items.map(({ message }) => message.metadata.id));
  const missing = new Map<string, StoryItem>();
  for (const { message, atMs } of items) {
    const causation = causationOf(message);
    if (causation === undefined || known.has(causation) || missing.has(causation)) continue;
    missing.set(causation, { message: { metadata: { id: causation, timestamp: atMs } }, atMs, handlings: [] });
  }
  const all = [...missing.values(), ...items].sort((a, b) => a.atMs - b.atMs);
  const trees = causalTrees(all);
  if (correlation === undefined || trees.length < 2) return trees;
  const root = trees.find(({ row }) => row.message.metadata.id === correlation) ?? (trees[0] as StoryTree);
  const others = trees.filter((tree) => tree !== root);
  return [{ row: root.row, children: [...root.children, ...others].sort((a, b) => a.row.atMs - b.row.atMs) }];
}

export function isCut({ rows }: Story): boolean {
  return rows.length >= CONVERSATION_ROWS_MAX;
}
