/**
 * The journal as its users see it: queue and audit log at once. Rows are appended, claimed under a lease, settled per
 * subscriber, and kept until retention removes what is settled. States and columns: `docs/decisions/0002-the-store.md`.
 */
import type { Message } from "../message/envelope.ts";

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

/** What is appended. */
export interface JournalEntry {
  readonly message: Message;
  /** The literal topic; for a message that was not published under one, its type. */
  readonly topic: string;
  /** Who published it: an extension's or capability's id. */
  readonly source: string;
  /**
   * How the row starts: `pending` waits for a claim; `claimed` is already held by `lease` (the publisher's own dispatcher
   * has room); `done` and `failed` are outcomes recorded with the handling itself.
   */
  readonly as:
    | { readonly status: "pending" }
    | { readonly status: "claimed"; readonly lease: number }
    /** With `consumers`, the row is `pending` if the consumer table has another version. */
    | { readonly status: "done"; readonly ending?: Ending; readonly consumers?: number }
    | { readonly status: "failed"; readonly error: string };
}

export interface JournalRow {
  readonly id: number;
  readonly topic: string;
  readonly source: string;
  /** The envelope, rebuilt from its columns. Undefined when the row cannot be parsed; `unreadable` then says why. */
  readonly message: Message | undefined;
  readonly unreadable?: string;
  readonly status: JournalStatus;
  readonly createdAtMs: number;
  readonly processedAtMs?: number;
  /** Why it failed, or will be retried. */
  readonly error?: string;
  /** Of a done row: how it ended, if it was not simply handled, and why. */
  readonly outcome?: DoneOutcome;
  readonly reason?: string;
  /** How often it was claimed. */
  readonly attempts: number;
  /**
   * How often its holder's lease ended under it since it was last settled or requeued; absent for never. Of a suspect only those count under which
   * its handling had begun. Holders that left it in good order count for one in all, and only where nobody else does.
   */
  readonly deaths?: number;
  /** A pending row is not claimable before this time. Absent for a row that only waits for consumers. */
  readonly nextAttemptAtMs?: number;
  /** Who holds it while it is processing. */
  readonly lease?: number;
  /** Where subscribers differ; empty when the row's status says it all. */
  readonly deliveries: readonly Delivery[];
}

export interface Delivery {
  readonly subscriber: string;
  /**
   * `waiting`: its consumer runs in no process that has had the event. `removing`: the consumer was removed while the event waited for
   * it; once the event is settled the delivery is `removed`.
   */
  readonly status: "done" | "failed" | "retry" | "waiting" | "removing" | "removed";
  readonly attempts: number;
  readonly error?: string;
  /** Of a `retry`: not before this time. */
  readonly nextAttemptAtMs?: number;
  /** Of `waiting`: the key of the consumer. */
  readonly awaits?: string;
}

/** A row handed to a dispatcher. Settling it names all three of id, lease and attempt. */
export interface Claim {
  readonly row: JournalRow;
  readonly lease: number;
  readonly attempt: number;
}

export interface ClaimRequest {
  readonly lease: number;
  readonly limit: number;
  /** Which kinds of message to hand out; the bus takes events, the loop commands. */
  readonly kinds: readonly ("event" | "command")[];
  /** Keys of consumers that run here: rows that wait for them are handed out too. */
  readonly consumers?: readonly string[];
  /** Rows of these topics are not handed out. */
  readonly exceptTopics?: readonly string[];
  /** Of the rows with `deaths` of at least `from`, hand out no more than `limit`: one of them may bring its holder down. */
  readonly suspects?: { readonly from: number; readonly limit: number };
}

export interface Settlement {
  readonly id: number;
  readonly lease: number;
  readonly attempt: number;
  readonly outcome: /** Only these subscribers' shares are settled; the row stays with its claimant. */
    | { readonly kind: "partial" }
    /** The handling of a suspect begins; the row stays with its claimant. */
    | { readonly kind: "begun" }
    /** Its claimant stops in good order and leaves a handler behind; the row stays his until his lease has ended, and he has not died of it. */
    | { readonly kind: "left" }
    | { readonly kind: "done"; readonly ending?: Ending }
    | { readonly kind: "failed"; readonly error: string }
    /** Back to pending, not before `atMs`. */
    | { readonly kind: "retry"; readonly atMs: number; readonly error: string }
    /** Back to pending, for consumers that its deliveries name; for every claimant from `atMs` on, if that is given. */
    | { readonly kind: "waits"; readonly atMs?: number; readonly error: string }
    /** Back to pending at once, as if it had not been claimed (graceful stop). */
    | { readonly kind: "release" };
  /** The version of the consumer table by which it was decided. The store refuses it if the table has another. */
  readonly consumers?: number | undefined;
  /** Upserted by subscriber. */
  readonly deliveries?: readonly Delivery[];
}

export interface JournalQuery {
  readonly id?: number;
  readonly messageId?: string;
  readonly status?: JournalStatus;
  readonly topic?: string;
  /** Rows of this topic, or of this message type: people know an event by either. */
  readonly named?: string;
  readonly kind?: Message["kind"];
  readonly correlation?: string;
  readonly causation?: string;
  readonly createdFromMs?: number;
  readonly createdBeforeMs?: number;
  /** Rows after this id (ascending) or before it (descending). */
  readonly cursor?: number;
  readonly order?: "ascending" | "descending";
  readonly limit: number;
}

/** Unsettled rows that are closed without being handled: dead letters that an operator gives up, or messages that are taken back. */
export interface Conclusion {
  /** Rows in another state are left as they are. */
  readonly from: "failed" | "pending";
  readonly ending: Ending;
}

/** Which done rows may go. A row goes when it is over either bound. Dead letters (`failed`) and unsettled rows never go. */
export interface Retention {
  /** Rows processed before this time. */
  readonly settledBeforeMs?: number;
  /** Keep at most this many done rows, the newest. */
  readonly keepSettled?: number;
  /** At most this many rows in one step. */
  readonly limit: number;
}

/** Ids of journal rows that are missing. */
export interface RemovedRange {
  readonly first: number;
  readonly last: number;
}

export interface VerifyReport {
  readonly ok: boolean;
  readonly rows: number;
  /** Rows that were inserted by hand and carry no hash. */
  readonly unsigned: number;
  readonly documents: number;
  /** The file is as it was written, and its last commits may be missing. */
  readonly isIncomplete?: true;
  /** What is wrong, one sentence each; at most a hundred. */
  readonly problems: readonly string[];
}
