/** Misuse of a unit of work. The message says what to do instead. */
import { MillraceError } from "../message/millrace-error.ts";

export type WorkErrorCode =
  /** A handler's context or a cell was used after the handler had ended. */
  | "WORK_OVER"
  /** A transaction of one space wrote to another. */
  | "WORK_ONE_SPACE"
  /** Data that a handler emits or sends, or options of a handler, that cannot be used. */
  | "WORK_MISUSE";

export class WorkError extends MillraceError<WorkErrorCode> {
  override readonly name = "WorkError";
}
