/**
 * Sends the message of a journal row again, as a new message with an own id. The row stays as it is. SPEC: W84.
 */
import type { EventBus } from "../bus/event-bus.ts";
import type { Host } from "../host/host.ts";
import type { CommandJournal } from "../loop/command-journal.ts";
import { contentId } from "../message/content-id.ts";
import type { Message } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { kernelEventProblem } from "../message/kernel-event.ts";
import type { Store } from "../store/store.ts";

export interface ReplayParts {
  readonly host: Host;
  readonly bus: EventBus;
  readonly store: Store;
  topicOf(type: string): string;
  commands(): CommandJournal;
  /** The capability that handles a command. */
  handlerOf(type: string): string | undefined;
}

export interface ReplayAsk {
  /** The row. */
  readonly id: number;
  readonly data?: Json;
  readonly type?: string;
}

export async function replay(parts: ReplayParts, asked: ReplayAsk, request: Message): Promise<{ messageId: string }> {
  const { host, bus, store, topicOf, commands, handlerOf } = parts;
  const [row] = await store.query({ id: asked.id, limit: 1 });
  if (row === undefined) throw new Failure(404, `the journal has no row ${asked.id}; retention may have removed it`);
  const { message } = row;
  if (message === undefined) throw new Failure(410, `row ${asked.id} cannot be read: ${row.unreadable ?? "erased"}`);
  const { type = message.type, data = message.data } = asked;
  const again = { ...message, type, data, metadata: metadataOf(host, message, request) };
  if (message.kind === "event") {
    const problem = kernelEventProblem(type);
    if (problem !== undefined) throw new Failure(422, `type: ${problem}`);
    await bus.publishMessage(again, row.source, type === message.type ? row.topic : topicOf(type));
  } else {
    const handler = handlerOf(type);
    if (handler === undefined) throw new Failure(404, `no capability handles command ${type}`);
    await commands().keep(again, handler);
  }
  return { messageId: again.metadata.id };
}

/** The conversation and the labels of the original; a repeated request gives the same id. */
function metadataOf(host: Host, original: Message, request: Message): Message["metadata"] {
  const { id: replayOf, correlation, label } = original.metadata;
  const { id, principal } = request.metadata;
  return {
    ...{ id: contentId(["replay", id]), timestamp: host.now(), causation: id, replayOf },
    correlation: correlation ?? replayOf,
    ...(label === undefined ? {} : { label }),
    ...(principal === undefined ? {} : { principal }),
  };
}
