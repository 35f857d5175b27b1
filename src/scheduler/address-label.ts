/** What addresses are labelled with, and the two refusals (decision 0010): the questions of information flow that need no state. */
import type { Path } from "../message/path.ts";
import {
  isWithin,
  join,
  type Label,
  LabelError,
  labelOf,
  labelOfRead,
  labelOfWrite,
  type PlaceLabel,
  PUBLIC,
} from "../store/label.ts";
import type { ReplicaDocument } from "../store/replica-document.ts";
import type { Transaction } from "../store/transaction.ts";
import type { Address } from "./address.ts";

const NOWHERE: readonly PlaceLabel[] = Object.freeze([]);

/** The label of what a read there sees. */
export function labelSeen(address: Address, shallow: boolean): Label {
  const { labels } = address.document;
  return labels === undefined || labels.places.length === 0
    ? PUBLIC
    : labelOfRead(labels.places, address.path, shallow);
}

/** The label of what may be written there. */
export function labelTaken({ labels }: ReplicaDocument, path: Path): Label {
  return labelOfWrite(labels?.places ?? NOWHERE, path);
}

/** Throws unless whoever may read at a place may know what is labelled so. */
export function requireWritable(label: Label, address: Address, who: string): void {
  if (!isWithin(label, labelTaken(address.document, address.path))) throw leak(who, address);
}

/** The same for all that a transaction is about to write; labels that it writes itself count. */
export function requireTransactionWritable(label: Label, { parts, extras }: Transaction, who: string): void {
  if (label.length === 0) return;
  for (const { document, draft } of parts) {
    const own = (extras?.labels ?? []).filter(({ scope, id }) => scope === document.scope && id === document.id);
    for (const { path } of draft?.operations ?? []) {
      const written = own.map(({ path: at, labels }) => ({ path: at, label: labelOf(labels) }));
      const taken = join(labelTaken(document, path), labelOfWrite(written, path));
      if (!isWithin(label, taken)) throw leak(who, `${document.id} /${path.join("/")}`);
    }
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
