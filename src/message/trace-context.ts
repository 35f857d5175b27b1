/**
 * W3C trace context. Handling a message is a span whose id is derived from the message id, so each consequence is a
 * child of its cause without a table of spans. SPEC: M38.
 */
import { contentId } from "./content-id.ts";

/** `version-traceId-parentId-flags`, with further fields in later versions. */
const TRACEPARENT = /^([0-9a-f]{2}-[0-9a-f]{32})-[0-9a-f]{16}(-.*)$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-([0-9a-f]{4})-([0-9a-f]{12})$/;

/**
 * The trace context of a consequence of a message with this id and context; an invalid context is returned unchanged.
 */
export function childOf(traceparent: string, messageId: string): string {
  const fields = TRACEPARENT.exec(traceparent);
  return fields ? `${fields[1]}-${spanIdOf(messageId)}${fields[2]}` : traceparent;
}

/** The id of the span in which a message is handled: 16 hexadecimal digits, not all zero. */
export function spanIdOf(messageId: string): string {
  const uuid = UUID.exec(messageId);
  // The last two groups of a UUID hold 62 random bits.
  const digits = uuid ? `${uuid[1]}${uuid[2]}` : contentId(["span", messageId]).slice(0, 16);
  return digits === NO_SPAN ? "0000000000000001" : digits;
}

const NO_SPAN = "0".repeat(16);
