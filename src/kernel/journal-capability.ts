/**
 * `Journal.Publish`: an acknowledged event. An event itself has no answer; this command answers with the event's
 * journal id once it is durable. The event's id is derived from the command's, so a repeated command publishes once.
 * `Journal.Send`: an acknowledged command. It answers with the command's id once the command is durable;
 * `Kernel.Request` has its answer later. Another message under a used id is refused (409). SPEC: K27, W20, W21.
 */
import type { EventBus } from "../bus/event-bus.ts";
import type { Capability } from "../loop/capability.ts";
import type { CommandJournal } from "../loop/command-journal.ts";
import { capability } from "../loop/define-capability.ts";
import { dataSchema } from "../loop/message-schema.ts";
import { idReused } from "../loop/transactional.ts";
import { contentId } from "../message/content-id.ts";
import { isMessageType, type Message } from "../message/envelope.ts";
import { Failure, isFailure } from "../message/error-data.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import { kernelEventProblem } from "../message/kernel-event.ts";
import { causedBy } from "../message/lineage.ts";
import { refusedAs422 } from "./bus-journal.ts";

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
  const messageId = message.metadata.id;
  try {
    const id = await refusedAs422(bus.publishMessage(message, "journal", topicOf(type)));
    return { id, messageId };
  } catch (error) {
    const [first] = isRefused(error) ? await bus.query({ messageId, limit: 1 }) : [];
    if (first === undefined) throw error;
    // The first event of the request, unless the id was taken for another type; an erased one has no type.
    const isSameType = first.message === undefined || first.message.type === type;
    throw idReused(request, isSameType ? { id: first.id, messageId } : undefined);
  }
}

async function send({ commands, handlerOf }: SendParts, { type, data }: Publication, request: Message): Promise<Json> {
  const handler = handlerOf(type);
  if (handler === undefined) throw new Failure(404, `no capability handles command ${type}`);
  const { principal, timestamp } = request.metadata;
  const id = contentId(["send", request.metadata.id]);
  const metadata = { ...causedBy(request), id, timestamp, ...(principal === undefined ? {} : { principal }) };
  try {
    await commands.keep({ kind: "command", type, data, metadata }, handler);
  } catch (error) {
    if (isRefused(error) && (await commands.find(id)) !== undefined) throw idReused(request);
    throw error;
  }
  return { id };
}

/** The journal has another message under the id, or does not take this one. */
function isRefused(error: unknown): boolean {
  return isFailure(error) && error.code === 422;
}
