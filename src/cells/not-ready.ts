/**
 * `NotReady`: plain code read a value that is not here yet. A default or an absence in its place would be wrong, and
 * would not be noticed. Runs of nodes and attempts never see it: they start over when the document is loaded. SPEC:
 * R102-R104.
 */
import { MillraceError } from "../message/millrace-error.ts";

/** A plain read of a value that is not loaded or computed yet. */
export class NotReady extends MillraceError<"NOT_READY"> {
  override readonly name = "NotReady";

  constructor(message: string, options?: ErrorOptions) {
    super("NOT_READY", message, options);
  }
}
