/**
 * Buses as the loop's journal. Events of actors and clients are appended before anybody gets them, and delivered by the bus; commands that have
 * to be kept likewise, by a bus of their own: a handler of events that waits for such a command must not stand in its way.
 *
 * A delivery is done when its handler is, and failed when that threw. One that was handled when the process died, and not settled, is
 * handled again; handlers of events bear that. SPEC: K26.
 */
import { BusError } from "../bus/bus-error.ts";
import type { Event } from "../bus/event.ts";
import { EventBus, type EventBusOptions } from "../bus/event-bus.ts";
import type { HandlerContext } from "../bus/handler.ts";
import type { JournalFeed } from "../bus/journal-feed.ts";
import type { Host } from "../host/host.ts";
import { pause } from "../host/pause.ts";
import {
  EVENTS_HELD_MAX,
  JOURNAL_PAGE_ROWS,
  SETTLE_PAUSE_MS,
  SETTLED_LOOKS_MAX,
  TIMER_DELAY_MS_MAX,
} from "../limits.ts";
import type { CommandJournal } from "../loop/command-journal.ts";
import type { DeliveryOptions, EventFeed, EventJournal } from "../loop/event-journal.ts";
import type { Message } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import type { RetryPolicy } from "../work/retry-policy.ts";
import { Tx } from "../work/tx.ts";
import { given } from "./given.ts";

export interface JournalParts {
  readonly bus: EventBus;
  /** The topic under which events of a type are journaled. */
  topicOf(type: string): string;
}

/** Later and later, while its actor takes no more. */
const WHEN_BUSY: RetryPolicy = {
  attempts: Number.MAX_SAFE_INTEGER,
  when: (thrown) => thrown instanceof Failure && thrown.code === 503,
};

/** A bus for the commands that a loop keeps. They take as long as they take, and actors bound how many are handled at once. */
export function commandBus(options: Omit<EventBusOptions, "kind">): EventBus {
  const unbounded = { concurrency: EVENTS_HELD_MAX, handlerTimeoutMs: TIMER_DELAY_MS_MAX };
  return new EventBus({ ...options, ...unbounded, kind: "command" });
}

/** `noteFailed` notes that a command has failed which no capability has handled. */
export function commandsOver(
  host: Host,
  bus: EventBus,
  noteFailed: (message: Message, error: unknown) => Promise<void>,
): CommandJournal {
  return {
    refused: (message, reason) => void noteFailed(message, new Failure(404, reason)),
    keep: (message, capability) => refusedAs422(bus.keep(message, capability)),
    withdraw: (messageId) => bus.withdraw(messageId, CANCELLED),
    settled: async (messageId) => {
      for (let tries = 0; tries < SETTLED_LOOKS_MAX; tries++) {
        const [row] = await bus.query({ messageId, limit: 1 });
        if (row?.status !== "processing") return;
        await pause(host, SETTLE_PAUSE_MS);
      }
    },
    unsettledOf: async (causation, type) => {
      const unsettled = await Promise.all(
        (["pending", "processing"] as const).map((status) =>
          bus.query({ causation, named: type, status, limit: JOURNAL_PAGE_ROWS }),
        ),
      );
      return unsettled.flat().flatMap(({ message }) => (message?.type === type ? [message.metadata.id] : []));
    },
    find: async (messageId) => (await bus.query({ messageId, limit: 1 }))[0],
    take(type, capability, deliver, died) {
      // The actor itself handles its failures before it answers. Only the deaths of processes are known here alone.
      const onFailed = async (failure: HandlerFailure, context: HandlerContext, { message }: Event) => {
        if (failure.kind === "died") await died(message, failure, context);
      };
      const options = { subscriberId: capability, retry: WHEN_BUSY, onFailed };
      bus.subscribe(type, ({ message }, context) => deliver(message, context), options);
    },
  };
}

const CANCELLED = "its timer was cancelled";

export function journalOver({ bus, topicOf }: JournalParts): EventJournal {
  return {
    async publish(message: Message, source: string): Promise<void> {
      await refusedAs422(bus.publishMessage(message, source, topicOf(message.type)));
    },
    subscribe(type, subscriberId, deliver, options = {}) {
      const relayed = { subscriberId, ...subscribeOptions(options) };
      bus.relay(topicOf(type), ({ message }) => deliver(message), relayed);
    },
    subscribeWork({ type, subscriber, space, clearance, problemOf, ...options }, deliver) {
      const rules = { source: subscriber, topicOf, problemOf };
      bus.relayWork(topicOf(type), ({ message }, tx, attempt) => deliver(message, { tx, attempt }), {
        ...{ subscriberId: subscriber, space, clearance, rules },
        ...subscribeOptions(options),
      });
    },
    feed: feedOver(bus.feed),
  };
}

function subscribeOptions({ retry, concurrency, serialBy, onFailed }: DeliveryOptions) {
  return given({
    ...{ retry, concurrency },
    serialBy: serialBy && (({ message }: Event) => serialBy(message)),
    onFailed:
      onFailed &&
      ((failure: HandlerFailure, context: unknown, { message }: Event) =>
        onFailed(failure, context instanceof Tx ? context : undefined, message)),
  });
}

/** What is refused will not be taken later either, or is there already: whoever asks again must know. */
async function refusedAs422<T>(appended: Promise<T>): Promise<T> {
  try {
    return await appended;
  } catch (error) {
    if (error instanceof BusError && error.code === "BUS_REFUSED") throw new Failure(422, error.message);
    throw error;
  }
}

/** The journal by pages for event streams; rows that are not events are left empty. */
function feedOver(feed: JournalFeed): EventFeed {
  return {
    get mark() {
      return feed.mark;
    },
    lastId: () => feed.lastId(),
    async page(after, limit) {
      const { rows, lastId } = await feed.page(after, limit);
      const events = rows.map(({ id, topic, message }) => ({
        ...{ id, topic },
        message: message?.kind === "event" ? message : undefined,
      }));
      return { rows: events, lastId };
    },
    grown: (mark, signal) => feed.grown(mark, signal),
  };
}
