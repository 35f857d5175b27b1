/** The bus as the loop's journal: events of actors and clients are appended before anybody gets them, and delivered by the bus. */
import type { EventBus } from "../bus/event-bus.ts";
import type { EventJournal } from "../loop/event-journal.ts";
import type { Message } from "../message/envelope.ts";
import type { Store } from "../store/store.ts";

export function journalOver(bus: EventBus, store: Store): EventJournal {
  return {
    async publish(message: Message, source: string): Promise<void> {
      const outcome = await store.append([{ message, topic: message.type, source, as: { status: "pending" } }]);
      if (outcome.kind === "rejected") throw new Error(outcome.message);
    },
    subscribe(type, subscriber, deliver) {
      bus.subscribe(type, (event) => deliver(event.message), { subscriberId: subscriber });
    },
  };
}
