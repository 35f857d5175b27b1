/**
 * Taint labels: sets of names, ordered by inclusion and joined by union. A reader needs all names of a label in its
 * clearance. Labels are sorted and frozen, so that equal ones are mostly the same object and a join without a new name
 * allocates no memory. SPEC: F8.
 */

import type { Message } from "../message/envelope.ts";
import { isCleanText, type Json } from "../message/json.ts";
import { MillraceError } from "../message/millrace-error.ts";
import type { Path } from "../message/path.ts";
import { isPrefix } from "./path-operation.ts";

/** Sorted, without duplicates, frozen. */
export type Label = readonly string[];

/** The empty label: readable by all. */
export const PUBLIC: Label = Object.freeze([]);

/** The label of one place in a document. */
export interface PlaceLabel {
  readonly path: Path;
  readonly label: Label;
}

/** The codes of `LabelError`. */
export type LabelErrorCode =
  /** A read above the reader's clearance. */
  | "LABEL_REFUSED"
  /** A write of labelled data to a place with a lower label. */
  | "LABEL_LEAK"
  /** Invalid labels, or a wrong call. */
  | "LABEL_MISUSE";

/**
 * Refuses data. The message names the place and the remedy but never the labels: a label can reveal the data it was
 * derived from.
 */
export class LabelError extends MillraceError<LabelErrorCode> {
  override readonly name = "LabelError";
}

/** A refusal is an answer for its caller, not a fault. */
export function isRefusal(error: unknown): error is LabelError {
  try {
    return error instanceof LabelError && error.code === "LABEL_REFUSED";
  } catch {
    // `instanceof` throws for a revoked proxy.
    return false;
  }
}

/** The label with these names; throws if one is not a valid name. */
export function labelOf(names: readonly string[]): Label {
  for (const name of names) {
    if (isName(name)) continue;
    throw new LabelError("LABEL_MISUSE", `a label is a list of names, not empty and without NUL; got ${String(name)}`);
  }
  return names.length === 0 ? PUBLIC : Object.freeze([...new Set(names)].sort());
}

/** The label of a message (F11). Senders may write any value there; an invalid label counts as none. */
export function labelOfMessage({ metadata }: Pick<Message<unknown>, "metadata">): Label {
  const label: Json | undefined = metadata.label;
  return Array.isArray(label) && label.every(isName) ? labelOf(label) : PUBLIC;
}

function isName(name: unknown): name is string {
  return typeof name === "string" && name !== "" && isCleanText(name);
}

/** Whether a reader with this clearance may read data with this label. */
export function isWithin(label: Label, clearance: Label): boolean {
  return label === clearance || label.every((name) => clearance.includes(name));
}

export function join(a: Label, b: Label): Label {
  if (isWithin(b, a)) return a;
  if (isWithin(a, b)) return b;
  return labelOf([...a, ...b]);
}

/**
 * The label of a read at this path: of the places above it and itself. A deep read includes all places below, a shallow
 * one (keys) the places one step below.
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

/** The label accepted for a write at this path: of the places above it and itself. Labels below do not widen it. */
export function labelOfWrite(places: readonly PlaceLabel[], path: Path): Label {
  let label = PUBLIC;
  for (const place of places) if (isPrefix(place.path, path)) label = join(label, place.label);
  return label;
}
