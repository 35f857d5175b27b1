/**
 * What the loop needs of a journal: events are kept before they are delivered, and delivered to each subscriber by its own
 * account. The kernel puts the bus here.
 */
import type { Message } from "../message/envelope.ts";

export interface EventJournal {
  /** Resolves when the event is durable; it is delivered after that, through `subscribe`. */
  publish(message: Message, source: string): Promise<void>;
  /** `deliver` is called for every event of the type, and resolves when it has been handled; what it throws fails that delivery. */
  subscribe(type: string, subscriber: string, deliver: (message: Message) => Promise<void>): void;
  /** The events of the journal as it grows, for clients that want to follow it. Without it, nobody can. */
  follow?(options: FollowOptions): AsyncIterable<JournaledEvent>;
}

export interface FollowOptions {
  /** Events after this journal id; those that come from now on unless given. */
  readonly after: number | undefined;
  /** Ends it, without an error. */
  readonly signal: AbortSignal;
}

export interface JournaledEvent {
  readonly id: number;
  readonly topic: string;
  readonly message: Message;
}
