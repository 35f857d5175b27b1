/** Labels of addresses: the checks of information flow that need no state (decision 0010). */
import { ambientClearance } from "../store/clearance.ts";
import { isWithin, type Label, labelOfRead, PUBLIC } from "../store/label.ts";
import { labelTaken, leak, refusal } from "../store/label-checks.ts";
import type { NodeAddress } from "./node.ts";

/** The label of a read at the address. */
export function labelSeen(address: NodeAddress, shallow: boolean): Label {
  const { labels } = address.document;
  return labels === undefined || labels.places.length === 0
    ? PUBLIC
    : labelOfRead(labels.places, address.path, shallow);
}

/** Throws unless every reader of the place is cleared for the label. */
export function requireWritable(label: Label, address: NodeAddress, who: string): void {
  if (!isWithin(label, labelTaken(address.document, address.path))) throw leak(who, address);
}

/** Throws if plain code reads data above the clearance with which it was called. */
export function requireCleared(address: NodeAddress, shallow: boolean): void {
  const clearance = ambientClearance();
  if (clearance === undefined || isWithin(labelSeen(address, shallow), clearance)) return;
  throw refusal("the handler of a capability", address);
}
