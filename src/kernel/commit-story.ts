/**
 * The changes of a handling, from the store alone: the receipt of a transactional handling was written in the same
 * commit, so the change feed at its sequence has all changes. Works on a stopped kernel's file. SPEC: K18.
 *
 * Plain handlers leave no receipt, and commits behind the feed have no changes.
 */
import type { Message } from "../message/envelope.ts";
import type { Json } from "../message/json.ts";
import type { CommitIdentity, DocumentPatch } from "../store/commit.ts";
import type { DocumentRef } from "../store/document.ts";
import { isReceiptName, receiptOf } from "../store/receipt-name.ts";
import type { Store } from "../store/store.ts";

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
