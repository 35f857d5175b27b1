/**
 * An event as handlers see it (ADR 004 §3): frozen, without the bookkeeping of the journal. SPEC: J48.
 *
 * The bus copies the payload that a publisher gives, so that neither the publisher nor a handler can change it for
 * another handler.
 */
import type { Message } from "../message/envelope.ts";
import type { Json } from "../message/json.ts";
import { handOut } from "../store/admit.ts";

/** An event as a handler gets it. */
export interface Event<Payload = Json> {
  /** The journal id: increasing, in the order of events. A plain handler can deduplicate by it. */
  readonly id: number;
  readonly topic: string;
  /** Its publisher. */
  readonly source: string;
  readonly payload: Payload;
  /** When it was made, by its publisher's clock. */
  readonly createdAtMs: number;
  /** As its publisher set it; the bus never invents one. */
  readonly correlation: string | undefined;
  readonly status: "processing";
  /** The envelope that was journaled. */
  readonly message: Message<Payload>;
}

/** The parts from which an event is made at its first read. */
export interface EventFacts {
  readonly id: number;
  readonly topic: string;
  readonly source: string;
  readonly message: Message;
}

/** The message must be the bus's own: it is frozen here. */
export function makeEvent({ id, topic, source, message }: EventFacts): Event {
  handOut(message.data);
  Object.freeze(message.metadata);
  const { timestamp: createdAtMs, correlation } = message.metadata;
  return Object.freeze({
    id,
    topic,
    source,
    payload: message.data,
    createdAtMs,
    correlation,
    status: "processing",
    message: Object.freeze(message),
  });
}
