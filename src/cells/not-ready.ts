/**
 * `NotReady`: plain code read a value that is not here yet. A default or an absence in its place would be wrong, and would not be
 * noticed. Runs of nodes and attempts never see it: they start over when the document is loaded. SPEC: R102-R104.
 */
import { MillraceError } from "../message/millrace-error.ts";
import type { Address } from "../scheduler/address.ts";
import { followLinks, type LinkTargets } from "./links.ts";

export class NotReady extends MillraceError<"NOT_READY"> {
  override readonly name = "NotReady";

  constructor(message: string, options?: ErrorOptions) {
    super("NOT_READY", message, options);
  }
}

/** Throws in plain code if the absence of a value only says that its document is not loaded. */
export function requireReady(address: Address, targets: LinkTargets): void {
  if (!targets.refusesUnloaded) return;
  const place = followLinks(address, targets);
  if (!place.document.isReadable) refuse(place, targets, place.document.loadError);
}

/** Throws in plain code of a space that refuses to give absence in place of a value which is still to come. */
export function refuse(place: { toString(): string }, targets: LinkTargets, cause?: unknown): void {
  const { scheduler } = targets;
  if (!targets.refusesUnloaded || scheduler.isUnderWay || scheduler.isUntracked) return;
  throw new NotReady(
    `${place} is not here yet: await cell.pull(), or read it in a query, a computed value, an effect or a transaction`,
    cause === undefined ? undefined : { cause },
  );
}
