/**
 * Why a commit was rejected, and the one retry rule of each class.
 *
 * | class     | meaning                                     | rule                                                        |
 * |-----------|---------------------------------------------|-------------------------------------------------------------|
 * | stale     | a value that it read has changed            | catch up and run again, with jittered backoff, for a time   |
 * | permanent | a precondition failed for good              | never retried                                               |
 * | refused   | a rule refused the data                     | never retried; the data must change                         |
 * | failed    | the backend could not write (disk, queue)   | reported; the caller may send the same commit again         |
 * | unknown   | sent, but not answered                      | send it again: the replay check finds it by its identity    |
 */

/** The classes of rejections, which decide about a retry. */
export type RejectionClass = "stale" | "permanent" | "refused" | "failed" | "unknown";

/** The next step after a rejection. */
export type RetryRule = "run-again" | "never" | "send-again";

/** The next step after a rejection, by its class. */
export const RETRY_RULES: Readonly<Record<RejectionClass, RetryRule>> = {
  stale: "run-again",
  permanent: "never",
  refused: "never",
  failed: "send-again",
  unknown: "send-again",
};

/** Closed list of reasons, so that callers need not parse messages. */
export type RejectionReason =
  | "read-moved" // stale: another session wrote a value that this commit had read
  | "history-lost" // stale: the data have another history, since a restore or a failover; unknown: sent to the old one
  | "fell-with" // same class as the commit it was stacked on
  | "document-exists" // permanent: absent(document) did not hold; for a receipt: handled elsewhere
  | "too-old" // permanent: the message is older than the store's horizon, so it may have been handled already
  | "origin-not-committed" // permanent: originCommitted(commit) did not hold
  | "due-row-gone" // permanent: the due row was taken or cancelled by another commit
  | "due-row-there" // permanent: the due row was set by another commit
  | "message-exists" // permanent: a message of that id is in the journal with other content
  | "lease-lost" // permanent: a settled claim is no longer held
  | "consumers-moved" // stale: a consumer was declared or removed since the event's outcome was decided
  | "rows-moved" // stale: a statement on the user's tables changed another number of rows than it must
  | "sql-refused" // refused: the database refused a statement on the user's tables
  | "protocol" // refused: same identity, other payload
  | "too-large" // refused: over a limit
  | "store-full" // failed: no space on the device
  | "store-busy" // failed: the queue is full, or the lock was not free in time
  | "store-stopped" // failed: the store was closed or stopped after an I/O error
  | "io-error" // unknown if it struck the commit itself, failed before
  | "no-answer"; // unknown

/** A commit was not accepted, and why. */
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
