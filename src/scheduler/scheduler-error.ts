/** Misuse of a scheduler, and work that it could not finish before it was closed. */
import { MillraceError } from "../message/millrace-error.ts";

/** The codes of `SchedulerError`. */
export type SchedulerErrorCode =
  /** It was closed before the request was complete. */
  | "SCHEDULER_CLOSED"
  /** A run, a send or a commit had not ended after the grace period of the close. */
  | "SCHEDULER_GAVE_UP"
  /** A run or a handler awaits an event that comes only after its own end. */
  | "SCHEDULER_WAITS_FOR_ITSELF";

/** A scheduler is closed, or has given up. */
export class SchedulerError extends MillraceError<SchedulerErrorCode> {
  override readonly name = "SchedulerError";
}
