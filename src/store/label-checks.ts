/**
 * Rules of taint labels (decision 0010): the label accepted at a place, the check of a whole transaction, the two
 * refusals, and the labels of published events. SPEC: F4, F5, F11.
 */
import { type Path, placeText } from "../message/path.ts";
import type { JournalEntry } from "./journal.ts";
import {
  isWithin,
  join,
  type Label,
  LabelError,
  labelOf,
  labelOfMessage,
  labelOfWrite,
  type PlaceLabel,
} from "./label.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import type { Transaction } from "./transaction.ts";

const NOWHERE: readonly PlaceLabel[] = Object.freeze([]);

/** The label accepted at the place. */
export function labelTaken({ labels }: ReplicaDocument, path: Path): Label {
  return labelOfWrite(labels?.places ?? NOWHERE, path);
}

/**
 * Throws if a transaction with this label writes to a place whose readers lack it. Labels that it writes itself count.
 */
export function requireTransactionWritable(label: Label, { parts, extras }: Transaction, who: string): void {
  if (label.length === 0) return;
  if (extras !== undefined && extras.statements.length > 0) throw leak(who, "a table of the database");
  for (const { document, draft } of parts) {
    const own = (extras?.labels ?? []).filter(({ scope, id }) => scope === document.scope && id === document.id);
    for (const { path } of draft?.operations ?? []) {
      const written = own.map(({ path: at, labels }) => ({ path: at, label: labelOf(labels) }));
      const taken = join(labelTaken(document, path), labelOfWrite(written, path));
      if (!isWithin(label, taken)) throw leak(who, placeText(document.id, path));
    }
  }
}

/** Adds the transaction's label to the events that it publishes. Rows that are already done are not published. */
export function labelEvents(label: Label, entries: JournalEntry[]): void {
  if (label.length === 0) return;
  for (const [at, entry] of entries.entries()) {
    if (entry.as.status === "done") continue;
    const { message } = entry;
    const metadata = { ...message.metadata, label: [...join(labelOfMessage(message), label)] };
    entries[at] = { ...entry, message: { ...message, metadata } };
  }
}

export function leak(who: string, place: { toString(): string }): LabelError {
  return new LabelError(
    "LABEL_LEAK",
    `${who} must not write to ${place}: it has read, or was triggered by, what not everybody who may read there may know. ` +
      "Label that place first, or let a computed value carry it.",
  );
}

export function refusal(who: string, place: { toString(): string }): LabelError {
  return new LabelError(
    "LABEL_REFUSED",
    `${who} may not read ${place}: its label is above the clearance. ` +
      "Give the reader a clearance that covers it, or declassify what he is to know.",
  );
}
