/**
 * The changes of a handling, from the store alone: the receipt of a transactional handling was written in the same
 * commit, so the change feed at its sequence has all changes. Works on a stopped kernel's file. SPEC: K18.
 *
 * Plain handlers leave no receipt, and commits behind the feed have no changes.
 */

import { FEED_PAGE_COMMITS } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import type { Json } from "../message/json.ts";
import { placeText } from "../message/path.ts";
import type { CommitIdentity, DocumentPatch } from "../store/commit.ts";
import type { DocumentRef } from "../store/document.ts";
import type { Invocation } from "../store/receipt-name.ts";
import { invocationOf, isReceiptName, receiptOf } from "../store/receipt-name.ts";
import type { Store } from "../store/store.ts";
import type { KernelStore } from "./open-store.ts";
import { concerns } from "./run-log.ts";

export { isReceiptName };

/** The space of a kernel's own documents; the default of its options. */
export const KERNEL_SPACE = "kernel";

export interface StoryCommit extends CommitIdentity {
  readonly sequence: number;
  /** The receipt's value, which contains the answer. */
  readonly receipt: Json;
  /** Without the receipts themselves. */
  readonly patches: readonly DocumentPatch[];
  /** True if the feed no longer reaches back to it. */
  readonly compacted: boolean;
}

/**
 * The commits in which a message was handled: one for a command, one for each transactional subscriber of an event.
 */
export async function commitsOf(
  store: Store,
  message: Message,
  subscribers: readonly string[],
  spaces: readonly string[],
): Promise<StoryCommit[]> {
  const refs =
    message.kind === "command"
      ? [receiptOf({ kind: "command", id: message.metadata.id })]
      : subscribers.map((subscriber) => receiptOf({ kind: "event", id: message.metadata.id, subscriber }));
  if (refs.length === 0) return [];
  const stories: StoryCommit[] = [];
  for (const space of spaces) {
    const { documents } = await store.load(space, refs);
    for (const { value, sequence } of documents)
      if (value !== undefined) stories.push(await storyAt(store, space, sequence, value));
  }
  return stories;
}

async function storyAt(store: Store, space: string, sequence: number, receipt: Json): Promise<StoryCommit> {
  const { commits } = await store.changesSince(space, sequence - 1, 1);
  const [commit] = commits;
  if (commit?.sequence !== sequence)
    return { sequence, session: "", localSequence: 0, receipt, patches: [], compacted: true };
  const { session, localSequence } = commit;
  const patches = commit.patches.filter((patch) => !isReceiptName(patch.id));
  return { sequence, session, localSequence, receipt, patches, compacted: false };
}

/** The answer in a command's receipt; undefined if there is none. */
export async function findReceipt(store: Store, id: string, spaces: readonly string[]): Promise<Json | undefined> {
  return (await findDocument(store, receiptOf({ kind: "command", id }), spaces))?.value;
}

/** The document of that name in the first space that has one. */
export async function findDocument(store: Store, ref: DocumentRef, spaces: readonly string[]) {
  for (const space of spaces) {
    const { documents } = await store.load(space, [ref]);
    if (documents[0]?.value !== undefined) return { ...documents[0], space };
  }
  return undefined;
}

interface Writer {
  /** The sequence of the commit. */
  readonly sequence: number;
  /** Undefined if plain code wrote it, outside of a transactional handler. */
  readonly invocation?: Invocation;
}

/**
 * The message whose handling last wrote to a place: its commit has a receipt with the message id in its name. Reads the
 * change feed, newest first, so it works on a stopped kernel's file too. Undefined if the place was not written, or the
 * change feed does not reach back. SPEC: K73.
 */
export async function lastWriter(
  store: KernelStore,
  address: string,
  spaces: readonly string[],
): Promise<Writer | undefined> {
  for (const space of spaces) {
    const writer = await lastWriterIn(store, address, space);
    if (writer !== undefined) return writer;
  }
  return undefined;
}

async function lastWriterIn(store: KernelStore, address: string, space: string): Promise<Writer | undefined> {
  const { sequence: head } = await store.load(space, []);
  for (let before = head; before > 0; before -= FEED_PAGE_COMMITS) {
    const after = Math.max(0, before - FEED_PAGE_COMMITS);
    const { commits } = await store.changesSince(space, after, FEED_PAGE_COMMITS);
    const writer = commits.findLast(({ patches }) => patches.some((patch) => writes(patch, address)));
    if (writer) {
      const invocation = writer.patches.map(({ id }) => invocationOf(id)).find((found) => found !== undefined);
      return { sequence: writer.sequence, ...(invocation ? { invocation } : {}) };
    }
    if (commits.length === 0) return undefined;
  }
  return undefined;
}

function writes({ scope, id, operations }: DocumentPatch, address: string): boolean {
  const document = scope === "space" ? id : `${scope}:${id}`;
  return operations.some(({ path }) => concerns(placeText(document, path), address));
}
