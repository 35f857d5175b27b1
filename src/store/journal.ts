/**
 * Types of the journal: queue and audit log in one. Rows are appended, claimed under a lease, settled per subscriber,
 * and stay until retention removes settled ones. States and columns: `docs/decisions/0002-the-store.md`.
 */
import type { Message } from "../message/envelope.ts";

/** The status of a row of the journal. */
export type JournalStatus = "pending" | "processing" | "done" | "failed";

/**
 * How a done row ended, if it was not simply handled.
 *
 * | outcome     | meaning                                                                        |
 * | ----------- | ------------------------------------------------------------------------------ |
 * | `refused`   | the handler refused a command, and the waiting requester got the 4xx            |
 * | `unheard`   | an event without a subscriber                                                  |
 * | `cancelled` | taken back before its handler began                                            |
 * | `discarded` | a dead letter that an operator has given up; `error` still says why it failed   |
 */
export type DoneOutcome = "refused" | "unheard" | "cancelled" | "discarded";

export interface Ending {
  readonly outcome: DoneOutcome;
  readonly reason: string;
}

/** A message to append. */
export interface JournalEntry {
  readonly message: Message;
  /** The literal topic; the type if the message was not published under a topic. */
  readonly topic: string;
  /** The publisher: id of an extension or capability. */
  readonly source: string;
  /**
   * Initial state. `pending` waits for a claim. `claimed` is held by `lease`, because the publisher's own dispatcher
   * has room. `done` and `failed` are outcomes that are recorded in the same commit as the handling.
   */
  readonly as:
    | { readonly status: "pending" }
    | { readonly status: "claimed"; readonly lease: number }
    /** With `consumers`, the row is `pending` if the consumer table has another version. */
    | { readonly status: "done"; readonly ending?: Ending; readonly consumers?: number }
    | { readonly status: "failed"; readonly error: string };
}

/** A row of the journal: a message, its status and its deliveries. */
export interface JournalRow {
  readonly id: number;
  /** The lane of the journal that it was appended to. Absent for lane 0, and in a journal with one lane. */
  readonly lane?: number;
  readonly topic: string;
  readonly source: string;
  /**
   * The envelope, rebuilt from its columns. Undefined if the row cannot be parsed; `unreadable` then has the reason.
   */
  readonly message: Message | undefined;
  readonly unreadable?: string;
  readonly status: JournalStatus;
  readonly createdAtMs: number;
  readonly processedAtMs?: number;
  /** The error of a failure or of a pending retry. */
  readonly error?: string;
  /** Of a done row that was not simply handled: its outcome and the reason. */
  readonly outcome?: DoneOutcome;
  readonly reason?: string;
  /** How often it was claimed. */
  readonly attempts: number;
  /**
   * How often a lease ended while it held the row, since the row was last settled or requeued; absent for 0. For a
   * suspect, only leases count under which handling had begun. Graceful shutdowns count once in total, and only if no
   * crash counts.
   */
  readonly deaths?: number;
  /** A pending row is not claimable before this time. Absent for a row that only waits for consumers. */
  readonly nextAttemptAtMs?: number;
  /** The holder while the row is processing. */
  readonly lease?: number;
  /** Deliveries that differ from the row's status; often empty. */
  readonly deliveries: readonly Delivery[];
}

/** The state of one subscriber's share of an event. */
export interface Delivery {
  readonly subscriber: string;
  /**
   * `waiting`: no process that had the event runs the consumer. `removing`: the consumer was removed while the event
   * waited for it; once the event is settled the delivery is `removed`.
   */
  readonly status: "done" | "failed" | "retry" | "waiting" | "removing" | "removed";
  readonly attempts: number;
  readonly error?: string;
  /** Earliest time of a `retry`. */
  readonly nextAttemptAtMs?: number;
  /** The key of the consumer, for `waiting`. */
  readonly awaits?: string;
}

/** A row handed to a dispatcher. A settlement names its id, lease and attempt (fencing). */
export interface Claim {
  readonly row: JournalRow;
  readonly lease: number;
  readonly attempt: number;
}

export interface ClaimRequest {
  readonly lease: number;
  readonly limit: number;
  /** Kinds of message to claim: the bus takes events, the loop commands. */
  readonly kinds: readonly ("event" | "command")[];
  /** Keys of consumers that run here: rows that wait for them are claimed too. */
  readonly consumers?: readonly string[];
  /** Rows of these topics are not claimed. */
  readonly exceptTopics?: readonly string[];
  /** Limits how many rows with at least `from` deaths are claimed: each may crash its holder (poison messages). */
  readonly suspects?: { readonly from: number; readonly limit: number };
}

/** The outcome of a claimed event, for the store. */
export interface Settlement {
  readonly id: number;
  readonly lease: number;
  readonly attempt: number;
  readonly outcome: /** Only these subscribers' shares are settled; the row stays with its claimant. */
    | { readonly kind: "partial" }
    /** Handling of a suspect begins; the row stays with its claimant. */
    | { readonly kind: "begun" }
    /**
     * Graceful shutdown while a handler still runs. The row stays with its claimant until the lease ends, and the end
     * of that lease does not count as a crash.
     */
    | { readonly kind: "left" }
    | { readonly kind: "done"; readonly ending?: Ending }
    | { readonly kind: "failed"; readonly error: string }
    /** Back to pending, not before `atMs`. */
    | { readonly kind: "retry"; readonly atMs: number; readonly error: string }
    /** Back to pending, for the consumers that its deliveries name; from `atMs` on for every claimant, if given. */
    | { readonly kind: "waits"; readonly atMs?: number; readonly error: string }
    /** Back to pending at once, as if it had not been claimed (graceful stop). */
    | { readonly kind: "release" };
  /**
   * The version of the consumer table that the decision used. The store refuses the settlement if the table has
   * another.
   */
  readonly consumers?: number | undefined;
  /** Inserted or updated by subscriber. */
  readonly deliveries?: readonly Delivery[];
}

/** Which rows of the journal are read. */
export interface JournalQuery {
  readonly id?: number;
  readonly messageId?: string;
  readonly status?: JournalStatus;
  readonly topic?: string;
  /** Rows of this topic or of this message type, because users know an event by either. */
  readonly named?: string;
  readonly kind?: Message["kind"];
  readonly correlation?: string;
  readonly causation?: string;
  readonly createdFromMs?: number;
  readonly createdBeforeMs?: number;
  /**
   * Rows after this id (ascending) or before it (descending), for lists in pages. A follower needs `Store.follow`,
   * because rows with smaller ids may appear later.
   */
  readonly cursor?: number;
  readonly order?: "ascending" | "descending";
  readonly limit: number;
}

/** Closes unsettled rows without handling: discarded dead letters, or cancelled messages. */
export interface Conclusion {
  /** Rows in another state are unchanged. */
  readonly from: "failed" | "pending";
  readonly ending: Ending;
}

/** Which done rows may be removed: those over either limit. Dead letters (`failed`) and unsettled rows always stay. */
export interface Retention {
  /** Rows processed before this time. */
  readonly settledBeforeMs?: number;
  /** Keeps at most this many done rows, the newest. */
  readonly keepSettled?: number;
  /** Limit of rows per step. */
  readonly limit: number;
}

/** Ids of missing journal rows of one lane. */
export interface RemovedRange {
  readonly first: number;
  readonly last: number;
}

/** The result of `store.verify()`. */
export interface VerifyReport {
  readonly ok: boolean;
  readonly rows: number;
  /** Rows without a hash, inserted by hand. */
  readonly unsigned: number;
  readonly documents: number;
  /** The file is intact, but its last commits may be missing. */
  readonly isIncomplete?: true;
  /** Problems found, one sentence each; at most a hundred. */
  readonly problems: readonly string[];
}
