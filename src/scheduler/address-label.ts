/** What addresses are labelled with (decision 0010): the questions of information flow that need no state. */
import { ambientClearance } from "../store/clearance.ts";
import { isWithin, type Label, labelOfRead, PUBLIC } from "../store/label.ts";
import { labelTaken, leak, refusal } from "../store/label-checks.ts";
import type { Address } from "./address.ts";

/** The label of what a read there sees. */
export function labelSeen(address: Address, shallow: boolean): Label {
  const { labels } = address.document;
  return labels === undefined || labels.places.length === 0
    ? PUBLIC
    : labelOfRead(labels.places, address.path, shallow);
}

/** Throws unless whoever may read at a place may know what is labelled so. */
export function requireWritable(label: Label, address: Address, who: string): void {
  if (!isWithin(label, labelTaken(address.document, address.path))) throw leak(who, address);
}

/** Throws where plain code reads what is above the clearance that it was called with. */
export function requireCleared(address: Address, shallow: boolean): void {
  const clearance = ambientClearance();
  if (clearance === undefined || isWithin(labelSeen(address, shallow), clearance)) return;
  throw refusal("the handler of a capability", address);
}
