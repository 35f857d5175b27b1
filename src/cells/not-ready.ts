/**
 * `NotReady`: plain code read a value that is not loaded or computed yet. A default in its place would be a silent
 * error. Runs of nodes and attempts never get it: they start over when the document is loaded. SPEC: R102-R104.
 */
import { MillraceError } from "../message/millrace-error.ts";

/** A plain read of a value that is not loaded or computed yet. */
export class NotReady extends MillraceError<"NOT_READY"> {
  override readonly name = "NotReady";

  constructor(message: string, options?: ErrorOptions) {
    super("NOT_READY", message, options);
  }
}
