/**
 * Labels for information flow: a small lattice of sets of names, ordered by inclusion, joined by union. A label says who may
 * know: whoever has all of its names in his clearance. Kept sorted and frozen, so that equal ones are mostly the same
 * object and a join that adds nothing allocates nothing. SPEC: F8.
 */

import type { Message } from "../message/envelope.ts";
import { isCleanText, type Json } from "../message/json.ts";
import { MillraceError } from "../message/millrace-error.ts";
import type { Path } from "../message/path.ts";
import { isPrefix } from "./path-operation.ts";

/** Sorted, without repetitions, frozen. */
export type Label = readonly string[];

/** What is not labelled: everybody may know it. */
export const PUBLIC: Label = Object.freeze([]);

/** What one place of a document is labelled with. */
export interface PlaceLabel {
  readonly path: Path;
  readonly label: Label;
}

export type LabelErrorCode =
  /** A read of what lies above the reader's clearance. */
  | "LABEL_REFUSED"
  /** A write of what must not be known into a place where it could be read. */
  | "LABEL_LEAK"
  /** Labels that are none, or an act that is not the way to do it. */
  | "LABEL_MISUSE";

/**
 * A refusal in place of data. The message names the place and what to do, and never the labels: what a value is labelled with can depend
 * on what it was made of.
 */
export class LabelError extends MillraceError<LabelErrorCode> {
  override readonly name = "LabelError";
}

/** A refusal is an answer, not a fault: whoever asked has it. */
export function isRefusal(error: unknown): error is LabelError {
  try {
    return error instanceof LabelError && error.code === "LABEL_REFUSED";
  } catch {
    // A revoked proxy cannot be asked for its class.
    return false;
  }
}

/** The label of these names; throws for what is no name. */
export function labelOf(names: readonly string[]): Label {
  for (const name of names) {
    if (isName(name)) continue;
    throw new LabelError("LABEL_MISUSE", `a label is a list of names, not empty and without NUL; got ${String(name)}`);
  }
  return names.length === 0 ? PUBLIC : Object.freeze([...new Set(names)].sort());
}

/** What a message was made of is labelled with (F11). Senders may write there what they like, and what is no label is none. */
export function labelOfMessage({ metadata }: Pick<Message<unknown>, "metadata">): Label {
  const label: Json | undefined = metadata.label;
  return Array.isArray(label) && label.every(isName) ? labelOf(label) : PUBLIC;
}

function isName(name: unknown): name is string {
  return typeof name === "string" && name !== "" && isCleanText(name);
}

/** Whether somebody with this clearance may know what is labelled so. */
export function isWithin(label: Label, clearance: Label): boolean {
  return label === clearance || label.every((name) => clearance.includes(name));
}

export function join(a: Label, b: Label): Label {
  if (isWithin(b, a)) return a;
  if (isWithin(a, b)) return b;
  return labelOf([...a, ...b]);
}

/**
 * The label of what a read at this path sees: of the places above it and of itself; a deep read sees what is below, a shallow one the
 * keys, and so the places one step down.
 */
export function labelOfRead(places: readonly PlaceLabel[], path: Path, shallow: boolean): Label {
  let label = PUBLIC;
  for (const place of places) {
    const below = place.path.length - path.length;
    const isSeen = below <= 0 ? isPrefix(place.path, path) : (!shallow || below === 1) && isPrefix(path, place.path);
    if (isSeen) label = join(label, place.label);
  }
  return label;
}

/** The label of what may be written at this path: of the places above it and of itself. What is labelled below only adds to it. */
export function labelOfWrite(places: readonly PlaceLabel[], path: Path): Label {
  let label = PUBLIC;
  for (const place of places) if (isPrefix(place.path, path)) label = join(label, place.label);
  return label;
}
