/**
 * Observations of the bus, for monitoring. An observer has no effect on delivery: if it throws, it is not called again
 * for that observation, and the bus goes on.
 */

/** A fact that a bus reports to `observe`: failed handlers, lost claims, trouble of the store. */
export type BusObservation =
  /** A handler threw, rejected or timed out; `outcome` tells how its delivery continues. */
  | {
      readonly kind: "handler-failed";
      readonly event: number;
      readonly topic: string;
      readonly subscriber: string;
      readonly error: string;
      /** The value that a plain handler threw. */
      readonly thrown?: unknown;
      readonly outcome: "failed" | "retry";
    }
  /** No subscription takes the topic; the event is done, with a note. */
  | { readonly kind: "no-subscriber"; readonly event: number; readonly topic: string }
  /** A row could not be read as a message and was failed alone. */
  | { readonly kind: "unreadable"; readonly event: number; readonly error: string }
  /** Its process died under it so often that it was failed without being handled again. */
  | { readonly kind: "gave-up"; readonly event: number; readonly error: string }
  /** A settlement came too late: another process holds the event now, or has handled it. */
  | { readonly kind: "claim-lost"; readonly event: number }
  /** The process's lease ended without its doing; a new one is opened. */
  | { readonly kind: "lease-lost"; readonly lease: number }
  /** The store could not write or read now; the bus tries again. */
  | { readonly kind: "store-trouble"; readonly doing: string; readonly error: string };

/** Gets the observations of a bus. */
export type BusObserver = (observation: BusObservation) => void;
