/**
 * A message that is to be sent later (RFC 0032 §12.3.1): the parts of a template, and the message it becomes. Its data
 * is opaque; id, timestamp and causation of the template are overwritten, and its label is added to that of its sender.
 * SPEC: T4, F11.
 */
import { isId, isMessageType, type Message } from "../message/envelope.ts";
import { isJsonObject, type Json, type JsonObject } from "../message/json.ts";
import { copyJson } from "../message/json-copy.ts";
import { kernelEventProblem } from "../message/kernel-event.ts";
import { join, labelOfMessage } from "../store/label.ts";

export interface Template {
  readonly kind: "command" | "query" | "event";
  readonly type: string;
  readonly data: Json;
  readonly metadata?: JsonObject;
}

export const TEMPLATE_JSON_SCHEMA: JsonObject = {
  type: "object",
  properties: {
    kind: { enum: ["command", "query", "event"] },
    type: { type: "string" },
    data: {},
    metadata: { type: "object" },
  },
  required: ["kind", "type", "data"],
};

/** The mistake in a template. It is reported when the template is given: no caller waits when it is sent. */
export function templateProblem(message: unknown): string | undefined {
  if (!isJsonObject(message as Json)) return "message: must be an object with kind, type and data";
  const { kind, type, data, metadata } = message as Partial<Template>;
  if (kind !== "command" && kind !== "query" && kind !== "event")
    return "message.kind: must be command, query or event";
  if (typeof type !== "string" || !isMessageType(type)) return "message.type: must be like Memory.Get";
  const problem = kind === "event" ? kernelEventProblem(type) : undefined;
  if (problem !== undefined) return `message.type: ${problem}`;
  if (data === undefined) return "message.data: is required; use null for none";
  if (metadata !== undefined && !isJsonObject(metadata)) return "message.metadata: must be an object";
  if (metadata?.["correlation"] !== undefined && !isId(metadata["correlation"]))
    return "message.metadata.correlation: must be a string of 1 to 255 characters";
  return undefined;
}

/** The message; `given` replaces metadata of the template. */
export function messageFrom(template: Template, given: JsonObject & { id: string; timestamp: number }): Message {
  const { kind, type, data, metadata = {} } = template;
  const { id: _id, timestamp: _timestamp, causation: _causation, ...kept } = metadata;
  const { id, timestamp, ...lineage } = given;
  // A template cannot remove the label of its sender.
  const label = join(labelOfMessage({ metadata: given }), labelOfMessage({ metadata: { ...kept, id, timestamp } }));
  const labelled = label.length === 0 ? {} : { label: [...label] };
  // A copy: the template may be sent again, and a receiver may change the message.
  return { kind, type, data, metadata: { ...lineage, ...copyJson(kept), ...labelled, id, timestamp } };
}
