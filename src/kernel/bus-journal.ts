/**
 * The bus as the loop's journal: events of actors and clients are appended before anybody gets them, and delivered by the bus.
 *
 * A delivery is done when its handler is, and failed when that threw. One that was handled when the process died, and not settled, is
 * handled again; handlers of events bear that. SPEC: K26.
 */
import { BusError } from "../bus/bus-error.ts";
import type { EventBus } from "../bus/event-bus.ts";
import type { EventJournal, JournaledEvent } from "../loop/event-journal.ts";
import type { Message } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import type { Store } from "../store/store.ts";

export interface JournalParts {
  readonly bus: EventBus;
  readonly store: Store;
  /** The topic under which events of a type are journaled. */
  topicOf(type: string): string;
}

export function journalOver({ bus, store, topicOf }: JournalParts): EventJournal {
  return {
    async publish(message: Message, source: string): Promise<void> {
      try {
        await bus.publishMessage(message, source, topicOf(message.type));
      } catch (error) {
        // It will not be taken later either, or is there already: whoever asks again must know.
        if (error instanceof BusError && error.code === "BUS_REFUSED") throw new Failure(422, error.message);
        throw error;
      }
    },
    subscribe(type, subscriber, deliver) {
      bus.subscribe(topicOf(type), ({ message }) => deliver(message), { subscriberId: subscriber });
    },
    follow: ({ after, signal }) => follow(bus, store, after, signal),
  };
}

async function* follow(
  bus: EventBus,
  store: Store,
  after: number | undefined,
  signal: AbortSignal,
): AsyncGenerator<JournaledEvent> {
  const from = after ?? (await store.query({ limit: 1, order: "descending" }))[0]?.id ?? 0;
  for await (const { id, topic, message } of bus.tail({ from, follow: true, signal })) {
    if (message?.kind === "event") yield { id, topic, message };
  }
}
