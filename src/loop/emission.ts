/**
 * Checks and copies an actor's emissions before they are routed, because the actor may change its object afterwards.
 * Accessors and proxies of users run here; if they throw, only this message is refused. SPEC: L11, L12.
 */
import { checkMessage, isId, type Message } from "../message/envelope.ts";
import { thrownText } from "../message/error-data.ts";
import type { JsonObject } from "../message/json.ts";
import { cloneData, copyFlat, copyJson } from "../message/json-copy.ts";
import { problemText, within } from "../message/problem.ts";
import type { InvalidMessage } from "./answers.ts";
import type { ActorEvent } from "./capability.ts";
import { MadeMessageEvent } from "./mailbox-actor.ts";

/** Why an emission is not routed, with as much of its envelope as can be read. */
export class BadEmission {
  readonly envelope: Partial<Message> | null;
  readonly reason: string;

  constructor(envelope: Partial<Message> | null, reason: string) {
    this.envelope = envelope;
    this.reason = reason;
  }
}

export function emittedBy(said: ActorEvent): Message | BadEmission {
  try {
    return said instanceof MadeMessageEvent ? copied(said.data as Message) : checked(said.data);
  } catch (error) {
    return new BadEmission(envelopeIn(said.data), thrownText(error));
  }
}

function checked(data: unknown): Message | BadEmission {
  const result = checkMessage(data);
  if (result.kind === "refused") return new BadEmission(data as Partial<Message> | null, result.message);
  const { kind, type, metadata } = result.message;
  const clone = cloneData(result.message.data);
  if (clone.kind === "impure") return new BadEmission(result.message, problemText(within("data", clone.problem)));
  return { kind, type, data: clone.value, metadata: copyFlat(metadata as JsonObject) as Message["metadata"] };
}

/** The envelope was made by this package, so only the data is checked. */
function copied(message: Message): Message | BadEmission {
  const { kind, type, metadata } = message;
  // A handler may have changed the message that it answers, whose ids and trace context are in the answer.
  if (!isOwnMetadata(metadata)) return checked(message);
  const clone = cloneData(message.data);
  if (clone.kind === "impure") return new BadEmission(message, problemText(within("data", clone.problem)));
  return { kind, type, data: clone.value, metadata };
}

/** A message from outside, checked and copied (§6.3). It may be any value; accessors of it may throw. */
export function receivedMessage(given: unknown): Message | InvalidMessage {
  try {
    const result = checkMessage(given);
    if (result.kind === "refused") return result;
    const { kind, type, metadata } = result.message;
    const clone = cloneData(result.message.data);
    if (clone.kind === "clone")
      return { kind, type, data: clone.value, metadata: copyFlat(metadata as JsonObject) as Message["metadata"] };
    return {
      code: clone.isTooLarge ? 413 : 422,
      message: problemText(within("data", clone.problem)),
      id: metadata.id,
      type,
    };
  } catch (thrown) {
    return { code: 422, message: thrownText(thrown) };
  }
}

/** Each receiver has its own copy, so that a change by one is invisible to the others (§6.3). */
export function copyMessage({ kind, type, data, metadata }: Message): Message {
  return { kind, type, data: copyJson(data), metadata: copyFlat(metadata as JsonObject) as Message["metadata"] };
}

/** As much as can be read of a message whose data throws. */
function envelopeIn(data: unknown): Partial<Message> | null {
  try {
    const { kind, type, metadata } = data as Message;
    return { kind, type, metadata };
  } catch {
    return null;
  }
}

/** Whether the metadata has the form that this package gives it: ids and trace context as text. Labels need a check. */
function isOwnMetadata({ correlation, causation, traceparent, tracestate, label }: Message["metadata"]): boolean {
  return (
    label === undefined &&
    isId(causation) &&
    (correlation === undefined || isId(correlation)) &&
    (traceparent === undefined || typeof traceparent === "string") &&
    (tracestate === undefined || typeof tracestate === "string")
  );
}
