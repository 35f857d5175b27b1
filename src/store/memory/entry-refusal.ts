/** Why messages cannot be appended, whether alone or with a commit. SPEC: J11, J12. */
import { PAYLOAD_BYTES_MAX } from "../../limits.ts";
import type { JournalEntry } from "../journal.ts";
import { type Rejection, rejected } from "../rejection.ts";
import type { JournalTable } from "./journal-table.ts";
import { jsonBytes } from "./json-copy.ts";

export function findRefusal(entries: readonly JournalEntry[], journal: JournalTable): Rejection | undefined {
  for (const { message } of entries) {
    const { id, timestamp, correlation, causation, ...further } = message.metadata;
    const bytes = Math.max(jsonBytes(message.data), jsonBytes(further));
    if (bytes <= PAYLOAD_BYTES_MAX) continue;
    const what = `message ${id} has ${bytes} bytes of data or further metadata`;
    return rejected("refused", "too-large", `${what}; at most ${PAYLOAD_BYTES_MAX} fit in a journal row`);
  }
  const other = journal.findOtherContent(entries);
  if (other === undefined) return undefined;
  return rejected("permanent", "message-exists", `message ${other} is in the journal with other content`);
}
