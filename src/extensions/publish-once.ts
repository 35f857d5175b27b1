/**
 * Publishes an event under an id of the publisher, once: if the journal has it already, also with another time, it is
 * not appended and the id of the first is given. Another payload under the id is refused. For as long as the journal
 * keeps the event. SPEC: X22, X46.
 */
import { BusError } from "../bus/bus-error.ts";
import type { EventBus } from "../bus/event-bus.ts";
import type { Message } from "../message/envelope.ts";
import { equal } from "../message/equality.ts";
import { ExtensionError } from "./extension-error.ts";

export interface ChosenEvent {
  readonly message: Message;
  readonly topic: string;
  readonly source: string;
}

export async function publishOnce(bus: EventBus, { message, topic, source }: ChosenEvent): Promise<number> {
  try {
    return await bus.publishMessage(message, source, topic);
  } catch (thrown) {
    if (!(thrown instanceof BusError) || thrown.code !== "BUS_REFUSED") throw thrown;
    const [first] = await bus.query({ messageId: message.metadata.id, limit: 1 });
    if (first === undefined) throw thrown;
    if (first.message === undefined || equal(first.message.data, message.data)) return first.id;
    throw new ExtensionError(
      "EXTENSION_KEY_USED",
      `${topic} was emitted under this key with other data (event ${first.id}); emit other data under another key`,
    );
  }
}
