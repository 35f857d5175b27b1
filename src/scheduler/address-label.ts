/** What addresses are labelled with, and the two refusals (decision 0010): the questions of information flow that need no state. */
import type { Path } from "../message/path.ts";
import {
  isWithin,
  type Label,
  LabelError,
  labelOfRead,
  labelOfWrite,
  type PlaceLabel,
  PUBLIC,
} from "../store/label.ts";
import type { ReplicaDocument } from "../store/replica-document.ts";
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
