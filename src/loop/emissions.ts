/**
 * What actors say, as it is looked at before it is routed: whether it is a message, and a copy of it, since an actor may do with its own what it
 * likes. Code of users runs here (accessors, schemas): whatever it throws ends what was said, and nothing else. SPEC: L11, L12.
 */
import { checkMessage, isId, type Message } from "../message/envelope.ts";
import { type Failure, thrownText } from "../message/error-data.ts";
import type { JsonObject } from "../message/json.ts";
import { cloneData, copyFlat, copyJson } from "../message/json-copy.ts";
import { problemText, within } from "../message/problem.ts";
import type { Sender } from "./inbound.ts";
import type { MadeMessageEvent } from "./mailbox-actor.ts";
import type { Router } from "./router.ts";
import type { SupervisedActor } from "./supervised-actor.ts";

export class Emissions {
  readonly #router: Router;

  constructor(router: Router) {
    this.#router = router;
  }

  /** Takes what may be anything; gives the reason where it goes nowhere. */
  take(actor: SupervisedActor, data: unknown, thrown?: unknown, sender?: Sender): Failure | undefined {
    try {
      const checked = checkMessage(data);
      if (checked.kind === "refused") return this.#router.badEmission(actor, data, checked.message);
      const { kind, type, metadata } = checked.message;
      const clone = cloneData(checked.message.data);
      if (clone.kind === "impure")
        return this.#router.badEmission(actor, checked.message, problemText(within("data", clone.problem)));
      const copy = { kind, type, data: clone.value, metadata: copyFlat(metadata as JsonObject) as Message["metadata"] };
      return this.#router.emission(actor, copy, { thrown, request: undefined, sender });
    } catch (error) {
      return this.#router.badEmission(actor, envelopeIn(data), thrownText(error));
    }
  }

  /** Takes a message whose envelope our own makers have made: only its data is a handler's. */
  takeMade(actor: SupervisedActor, said: MadeMessageEvent): Failure | undefined {
    try {
      return this.#copied(actor, said);
    } catch (error) {
      return this.#router.badEmission(actor, said.data, thrownText(error));
    }
  }

  #copied(actor: SupervisedActor, { data: made, thrown, request, sender }: MadeMessageEvent): Failure | undefined {
    const message = made as Message;
    const { kind, type, metadata } = message;
    // A handler may have tampered with the message it answers, whose ids and trace context are in the answer.
    if (!isOwnMetadata(metadata)) return this.take(actor, message, thrown, sender);
    const clone = cloneData(message.data);
    if (clone.kind === "impure")
      return this.#router.badEmission(actor, message, problemText(within("data", clone.problem)));
    return this.#router.emission(actor, { kind, type, data: clone.value, metadata }, { thrown, request, sender });
  }
}

export function copyMessage({ kind, type, data, metadata }: Message): Message {
  return { kind, type, data: copyJson(data), metadata: copyFlat(metadata as JsonObject) as Message["metadata"] };
}

/** What is read of a message whose data, or the check of it, throws; nothing where that throws too. */
function envelopeIn(data: unknown): Partial<Message> | null {
  try {
    const { kind, type, metadata } = data as Message;
    return { kind, type, metadata };
  } catch {
    return null;
  }
}

/** Whether metadata is what the makers make of valid messages: ids and trace context, all of it text. A label is looked at. */
function isOwnMetadata({ correlation, causation, traceparent, tracestate, label }: Message["metadata"]): boolean {
  return (
    label === undefined &&
    isId(causation) &&
    (correlation === undefined || isId(correlation)) &&
    (traceparent === undefined || typeof traceparent === "string") &&
    (tracestate === undefined || typeof tracestate === "string")
  );
}
