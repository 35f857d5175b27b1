/**
 * `Journal.Publish`: an acknowledged event. An event itself has no answer; this command answers with the event's
 * journal id once it is durable. The event's id is derived from the command's, so a repeated command publishes once.
 * `Journal.Send`: an acknowledged command. It answers with the command's id once the command is durable;
 * `Kernel.Request` has its answer later. SPEC: K27, W20.
 */
import type { EventBus } from "../bus/event-bus.ts";
import type { Capability } from "../loop/capability.ts";
import type { CommandJournal } from "../loop/command-journal.ts";
import { capability } from "../loop/define-capability.ts";
import { dataSchema } from "../loop/message-schema.ts";
import { contentId } from "../message/content-id.ts";
import { isMessageType, type Message } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import { kernelEventProblem } from "../message/kernel-event.ts";
import { causedBy } from "../message/lineage.ts";

interface Publication {
  readonly type: string;
  readonly data: Json;
}

const publication = dataSchema<Publication>(
  (data) => {
    if (!isJsonObject(data as Json)) return "must be an object with type and data";
    const { type, data: inner } = data as Partial<Publication>;
    if (typeof type !== "string" || !isMessageType(type)) return "type: must be like Email.Received";
    const problem = kernelEventProblem(type);
    if (problem !== undefined) return `type: ${problem}`;
    return inner === undefined ? "data: is required; use null for none" : undefined;
  },
  { type: "object", properties: { type: { type: "string" }, data: {} }, required: ["type", "data"] },
);

const sending = dataSchema<Publication>(
  (data) => {
    const { type, data: inner } = (data ?? {}) as Partial<Publication>;
    if (typeof type !== "string" || !isMessageType(type)) return "type: must be like Shop.Order";
    return inner === undefined ? "data: is required; use null for none" : undefined;
  },
  { type: "object", properties: { type: { type: "string" }, data: {} }, required: ["type", "data"] },
);

export interface SendParts {
  readonly commands: CommandJournal;
  /** The capability that handles a command. */
  handlerOf(type: string): string | undefined;
}

export interface JournalCapabilityParts extends SendParts {
  readonly bus: EventBus;
  topicOf(type: string): string;
}

export function journalCapability(parts: () => JournalCapabilityParts): Capability {
  return capability({
    description: "publishes events and sends commands, and answers once they are durable",
    idempotent: true,
    // The row is durable before the answer.
    durable: "unawaited",
    commands: {
      "Journal.Publish": {
        input: publication,
        handle: (data: Publication, _context, request) => publish(parts(), data, request),
      },
      "Journal.Send": {
        description: "sends a command, and answers with its id once it is durable",
        input: sending,
        handle: (data: Publication, _context, request) => send(parts(), data, request),
      },
    },
  });
}

async function publish(
  { bus, topicOf }: JournalCapabilityParts,
  { type, data }: Publication,
  request: Message,
): Promise<Json> {
  const message: Message = {
    kind: "event",
    type,
    data,
    metadata: {
      ...causedBy(request),
      id: contentId(["publish", request.metadata.id]),
      timestamp: request.metadata.timestamp,
    },
  };
  const id = await bus.publishMessage(message, "journal", topicOf(type));
  return { id, messageId: message.metadata.id };
}

async function send({ commands, handlerOf }: SendParts, { type, data }: Publication, request: Message): Promise<Json> {
  const handler = handlerOf(type);
  if (handler === undefined) throw new Failure(404, `no capability handles command ${type}`);
  const { principal, timestamp } = request.metadata;
  const id = contentId(["send", request.metadata.id]);
  const metadata = { ...causedBy(request), id, timestamp, ...(principal === undefined ? {} : { principal }) };
  await commands.keep({ kind: "command", type, data, metadata }, handler);
  return { id };
}
