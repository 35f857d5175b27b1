/**
 * Reasons to refuse messages, appended alone or with a commit. SPEC: J11, J12, S102.
 */
import { outlivedEntry } from "../commit-rules.ts";
import type { JournalEntry } from "../journal.ts";
import { type Rejection, rejected } from "../rejection.ts";
import type { DocumentDisk } from "./document-disk.ts";
import { jsonBytes } from "./json-copy.ts";

export function findTooLarge({ message }: JournalEntry, payloadBytesMax: number): Rejection | undefined {
  const { id, timestamp, correlation, causation, ...further } = message.metadata;
  const bytes = Math.max(jsonBytes(message.data), jsonBytes(further));
  if (bytes <= payloadBytesMax) return undefined;
  const what = `message ${id} has ${bytes} bytes of data or further metadata`;
  return rejected("refused", "too-large", `${what}; at most ${payloadBytesMax} fit in a journal row`);
}

export function findRefusal(entries: readonly JournalEntry[], disk: DocumentDisk): Rejection | undefined {
  const { horizonMs, payloadBytesMax } = disk;
  const { journal } = disk.tables;
  for (const entry of entries) {
    const tooLarge = findTooLarge(entry, payloadBytesMax);
    if (tooLarge !== undefined) return tooLarge;
  }
  const nameOf = ({ message: { kind, metadata } }: JournalEntry) => ({ kind, messageId: metadata.id });
  const old = horizonMs === 0 ? undefined : outlivedEntry(entries.map(nameOf), horizonMs, (id) => journal.has(id));
  if (old !== undefined) return old;
  const other = journal.findOtherContent(entries);
  if (other === undefined) return undefined;
  return rejected("permanent", "message-exists", `message ${other} is in the journal with other content`);
}
