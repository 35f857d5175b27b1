/** Misuse of a computed value: only its computation writes it, there is one, and it gives the same whenever it runs. SPEC: R21, R24. */
import { MillraceError } from "../message/millrace-error.ts";
import type { Address } from "./address.ts";

export type ComputedErrorCode =
  /** A second computation of one place. */
  | "COMPUTED_TWICE"
  /** A write by anybody else. */
  | "COMPUTED_SET"
  /** A computation asked for what is another each time: the clock, chance, a new id. */
  | "COMPUTED_IMPURE"
  /** A transaction read one that has yet to follow what it is computed from. */
  | "COMPUTED_BEHIND";

export class ComputedError extends MillraceError<ComputedErrorCode> {
  override readonly name = "ComputedError";
}

/** Throws where the address lies in the output of a computation, which only that one writes. */
export function requireNotComputed({ home }: Address): void {
  if (home.document.derived && home.computation !== undefined) throw setComputed(home.root);
}

export function setComputed(place: { toString(): string }): ComputedError {
  return new ComputedError("COMPUTED_SET", `${place} is computed; change what it is computed from instead`);
}
