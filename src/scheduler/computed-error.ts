/**
 * Misuse of a computed value. A place has one computation, which alone writes it, and which is deterministic. SPEC:
 * R21, R24.
 */
import { MillraceError } from "../message/millrace-error.ts";
import { computationAt, type NodeAddress } from "./node.ts";

/** The codes of `ComputedError`. */
export type ComputedErrorCode =
  /** A second computation of one place. */
  | "COMPUTED_TWICE"
  /** A write by other code. */
  | "COMPUTED_SET"
  /** A computation asked for a clock, randomness or a new id. */
  | "COMPUTED_IMPURE"
  /** A transaction read a computed value that is not up to date with its inputs. */
  | "COMPUTED_BEHIND";

/** Wrong use of a computed value. */
export class ComputedError extends MillraceError<ComputedErrorCode> {
  override readonly name = "ComputedError";
}

/** Throws if the address is in the output of a computation. */
export function requireNotComputed({ home }: NodeAddress): void {
  if (home.document.derived && computationAt(home) !== undefined) throw setComputed(home.root);
}

export function setComputed(place: { toString(): string }): ComputedError {
  return new ComputedError("COMPUTED_SET", `${place} is a computed value; write to its inputs instead`);
}
