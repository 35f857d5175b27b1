/**
 * An event as handlers see it (ADR 004 §3): frozen, with what they need and nothing of the journal's bookkeeping. SPEC: J48.
 *
 * A payload belongs to nobody but the bus: what a publisher gave is copied, so that neither he nor a handler can change
 * what another handler sees.
 */
import type { Message } from "../message/envelope.ts";
import type { Json } from "../message/json.ts";
import { handOut } from "../store/admit.ts";

export interface Event<Payload = Json> {
  /** The journal id: increasing, the order of events, and what a handler that is not transactional can deduplicate by. */
  readonly id: number;
  readonly topic: string;
  /** Who published it. */
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

/** What is known of an event before somebody looks at it. */
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
