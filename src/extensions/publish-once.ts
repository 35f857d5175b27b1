/**
 * Publishes an event under an id that its publisher chose, once: where the journal has it already, also with another time or payload, nothing
 * happens and the id of the first is given. For as long as the journal keeps the event. SPEC: X22, X46.
 */
import { BusError } from "../bus/bus-error.ts";
import type { EventBus } from "../bus/event-bus.ts";
import type { Message } from "../message/envelope.ts";

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
    return first.id;
  }
}
