/** Misuse of the bus, and events that could not be stored. The message names the remedy. */
import { MillraceError } from "../message/millrace-error.ts";
import { cursorOf, type JournalPosition } from "../store/journal-position.ts";
import type { Rejection } from "../store/rejection.ts";

/** The codes of `BusError`. */
export type BusErrorCode =
  /** The bus has been stopped, or is about to be. */
  | "BUS_STOPPED"
  /**
   * The handler was left behind, because it took too long or the bus has stopped; its later events are not published.
   */
  | "BUS_HANDLER_OVER"
  /** An argument is wrong; the call had no effect. */
  | "BUS_MISUSE"
  /** A payload, topic, source or correlation cannot be journaled; the event was not stored. */
  | "BUS_EVENT_INVALID"
  /** The store refused the event for its content; it would refuse it again. */
  | "BUS_REFUSED"
  /** The store could not write; the event was not stored. Publish it again later. */
  | "BUS_NOT_STORED"
  /** The store did not answer; the event may or may not be there. */
  | "BUS_UNKNOWN"
  /** Events after the place to go on from are not in the journal any more. */
  | "BUS_EVENTS_GONE";

/** Misuse of a bus, or a call after its end. */
export class BusError extends MillraceError<BusErrorCode> {
  override readonly name = "BusError";
}

/**
 * Events after a cursor are missing: retention has removed them, or the store was restored from a copy. `cursor` is the
 * place to go on from without them.
 */
export class EventsGone extends BusError {
  readonly cursor: string;

  constructor(after: JournalPosition, onFrom: JournalPosition) {
    const cursor = cursorOf(onFrom);
    super(
      "BUS_EVENTS_GONE",
      `events after ${cursorOf(after)} are not in the journal any more; go on from ${cursor}, without them`,
    );
    this.cursor = cursor;
  }
}

/** Errors for messages that the store may take later. A thrown value may be a hostile object: it is looked up. */
const passing = new WeakSet<object>();

export function isNotStored(error: object): boolean {
  return passing.has(error);
}

function notStored(code: "BUS_NOT_STORED" | "BUS_UNKNOWN", message: string): BusError {
  const error = new BusError(code, message);
  passing.add(error);
  return error;
}

/** The error of a publisher whose event the store did not take. */
export function notPublished(rejection: Rejection): BusError {
  switch (rejection.class) {
    case "permanent":
    case "refused":
      return new BusError("BUS_REFUSED", `the event was not published: ${rejection.message}`);
    case "unknown":
      return notStored("BUS_UNKNOWN", `it is not known whether the event was published: ${rejection.message}`);
    case "stale":
    case "failed":
      return notStored("BUS_NOT_STORED", `the event was not published: ${rejection.message}; publish it again`);
  }
}
