/**
 * What the loop needs of a journal: events are kept before they are delivered, and delivered to each subscriber by its own
 * account. The kernel puts the bus here.
 */
import type { Message } from "../message/envelope.ts";

export interface EventJournal {
  /** Resolves when the event is durable; it is delivered after that, through `subscribe`. */
  publish(message: Message, source: string): Promise<void>;
  /** `deliver` is called for every event of the type; what it throws fails that delivery. */
  subscribe(type: string, subscriber: string, deliver: (message: Message) => void | Promise<void>): void;
}
