/**
 * Why a commit did not land, and what its author may do about it: one class, one rule, all of them here.
 *
 * | class     | meaning                                                  | rule |
 * |-----------|----------------------------------------------------------|------|
 * | stale     | something it read has moved                              | catch up, run again, within a time window with jittered backoff |
 * | permanent | a precondition failed; it can never hold again           | never retried |
 * | refused   | a rule refused the data                                  | never retried; the data has to change |
 * | failed    | the backend could not write (disk, transport)            | surfaced; the author may send the same commit again |
 * | unknown   | sent, and no answer                                      | ask again with the same identity: the replay check tells |
 */

export type RejectionClass = "stale" | "permanent" | "refused" | "failed" | "unknown";

/** What the author of a rejected commit does next. */
export type RetryRule = "run-again" | "never" | "send-again";

export const RETRY_RULES: Readonly<Record<RejectionClass, RetryRule>> = {
  stale: "run-again",
  permanent: "never",
  refused: "never",
  failed: "send-again",
  unknown: "send-again",
};

/** Closed list of reasons, so that callers can tell them apart without reading prose. */
export type RejectionReason =
  | "read-moved" // stale: another session wrote what this commit had read
  | "fell-with" // same class as the commit it was stacked on
  | "document-exists" // permanent: absent(document) did not hold; for a receipt: handled elsewhere
  | "too-old" // permanent: made before the store's horizon, and so perhaps handled already
  | "origin-not-committed" // permanent: originCommitted(commit) did not hold
  | "due-row-gone" // permanent: the due row was taken or cancelled by somebody else
  | "due-row-there" // permanent: the due row was set by somebody else
  | "message-exists" // permanent: a message of that id is in the journal with other content
  | "lease-lost" // permanent: a settled claim is no longer held
  | "consumers-moved" // stale: a consumer was declared or removed since the event's outcome was decided
  | "protocol" // refused: same identity, other payload
  | "too-large" // refused: over a limit
  | "store-full" // failed: no space on the device
  | "store-busy" // failed: too much queued, or the lock was not to be had in time
  | "store-stopped" // failed: the store was closed or stopped after an I/O error
  | "io-error" // unknown when it struck the commit itself, failed before
  | "no-answer"; // unknown

export interface Rejection {
  readonly kind: "rejected";
  readonly class: RejectionClass;
  readonly reason: RejectionReason;
  /** One sentence for a person. */
  readonly message: string;
}

export function rejected(rejectionClass: RejectionClass, reason: RejectionReason, message: string): Rejection {
  return { kind: "rejected", class: rejectionClass, reason, message };
}
