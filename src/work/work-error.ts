/** Misuse of a unit of work. The message names the remedy. */
import { MillraceError } from "../message/millrace-error.ts";

/** The codes of `WorkError`. */
export type WorkErrorCode =
  /** A handler's context or a cell was used after the handler had ended. */
  | "WORK_OVER"
  /** A transaction of one space wrote to another. */
  | "WORK_ONE_SPACE"
  /** A plain write after an `await` of a handler was committed alone; reported on engines without an async context. */
  | "WORK_ESCAPED"
  /** Data that a handler emits or sends, or options of a handler, that cannot be used. */
  | "WORK_MISUSE";

/** A handler used its transaction in a wrong way or at a wrong time. */
export class WorkError extends MillraceError<WorkErrorCode> {
  override readonly name = "WorkError";
}
