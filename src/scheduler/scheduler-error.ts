/** Misuse of a scheduler, and what it could not do before it had to end. */
import { MillraceError } from "../message/millrace-error.ts";

export type SchedulerErrorCode =
  /** It was closed before what was asked of it was done. */
  | "SCHEDULER_CLOSED"
  /** A run, a send or a commit was not over when the grace of the close was. */
  | "SCHEDULER_GAVE_UP"
  /** A run or a handler awaits what ends only after it. */
  | "SCHEDULER_WAITS_FOR_ITSELF";

export class SchedulerError extends MillraceError<SchedulerErrorCode> {
  override readonly name = "SchedulerError";
}
