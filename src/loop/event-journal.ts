/**
 * The journal as the loop needs it: events are durable before they are delivered, and each subscriber has its own
 * delivery. The kernel puts the bus here.
 */
import type { Message } from "../message/envelope.ts";
import type { JournalPage, JournalPosition } from "../store/journal-position.ts";
import type { Attempt, WorkSpace } from "../work/attempt.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import type { Retry } from "../work/retry-policy.ts";

/** A journal for events, as the loop needs it. */
export interface EventJournal {
  /** Resolves when the event is durable; it is delivered after that, through `subscribe`. */
  publish(message: Message, source: string): Promise<void>;
  /**
   * `deliver` is called for every event of the type, and resolves when it has been handled; a thrown error fails that
   * delivery.
   */
  subscribe(
    type: string,
    subscriber: string,
    deliver: (message: Message) => Promise<void>,
    options?: DeliveryOptions,
  ): void;
  /**
   * The same for a handler whose work and delivery are one commit; `deliver` resolves with the result of the handler.
   * Without it, the handler commits its work before the delivery is settled.
   */
  subscribeWork?(work: SubscribedWork, deliver: (message: Message, attempt: Attempt) => Promise<unknown>): void;
  /** Reads the journal for clients that follow it. Without it, `Sys.Subscribe` answers 404. */
  readonly feed?: EventFeed;
}

/** How events are delivered to a subscriber. */
export interface DeliveryOptions {
  readonly retry?: Retry;
  /** Deliveries that are under way at once. */
  readonly concurrency?: number;
  /** Events with the same key are delivered one after the other, in the order of the journal. */
  readonly serialBy?: (message: Message) => string;
  /**
   * Called for a delivery that has failed for good. With `subscribeWork` it gets an attempt, whose commit carries the
   * failed status.
   */
  readonly onFailed?: (failure: HandlerFailure, attempt: Attempt | undefined, message: Message) => unknown;
}

export interface SubscribedWork extends DeliveryOptions {
  readonly type: string;
  readonly subscriber: string;
  readonly space: WorkSpace;
  readonly clearance: readonly string[] | undefined;
}

/** The journal by pages. It keeps no position: the reader does. */
export interface EventFeed {
  /** Grows with every change of the journal that this process knows of. */
  readonly mark: number;
  /** The position after all rows. */
  end(): Promise<JournalPosition>;
  /** At most `limit` rows after a position. */
  page(after: JournalPosition, limit: number): Promise<EventPage>;
  /** Resolves when the mark has moved, the poll interval is over, or the signal is aborted. */
  grown(mark: number, signal: AbortSignal): Promise<void>;
}

export interface EventPage extends Omit<JournalPage, "rows"> {
  readonly rows: readonly JournaledRow[];
}

export interface JournaledRow {
  readonly id: number;
  readonly lane?: number;
  readonly topic: string;
  /** Undefined where the row is not an event, or cannot be read. */
  readonly message: Message | undefined;
}
