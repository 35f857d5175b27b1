/**
 * Buses as the loop's journal. Events of actors and clients are appended before delivery by the bus. Kept commands
 * use their own bus, so that an event handler that waits for a command cannot block it.
 *
 * A delivery is done when its handler has finished, and failed if it threw. A delivery that was not settled before a
 * crash is handled again. SPEC: K26.
 */
import { BusError } from "../bus/bus-error.ts";
import type { Event } from "../bus/event.ts";
import { EventBus, type EventBusOptions } from "../bus/event-bus.ts";
import type { HandlerContext } from "../bus/handler.ts";
import type { JournalFeed } from "../bus/journal-feed.ts";
import type { BusObserver } from "../bus/observation.ts";
import type { FailedCall } from "../bus/subscription.ts";
import type { Host } from "../host/host.ts";
import { pause } from "../host/pause.ts";
import {
  EVENTS_HELD_MAX,
  JOURNAL_PAGE_ROWS,
  SETTLE_PAUSE_MS,
  SETTLED_LOOKS_MAX,
  TIMER_DELAY_MS_MAX,
} from "../limits.ts";
import type { SpawnContext } from "../loop/capability.ts";
import type { CommandJournal } from "../loop/command-journal.ts";
import type { DeliveryOptions, EventFeed, EventJournal } from "../loop/event-journal.ts";
import type { Message } from "../message/envelope.ts";
import { errorText, Failure } from "../message/error-data.ts";
import type { JournalEntry } from "../store/journal.ts";
import { journalLaneOf } from "../store/journal-position.ts";
import type { Store } from "../store/store.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import type { RetryPolicy } from "../work/retry-policy.ts";
import { omitUndefined } from "./omit-undefined.ts";

export interface JournalParts {
  readonly bus: EventBus;
  /** The topic under which events of a type are journaled. */
  topicOf(type: string): string;
}

/** Retries with growing delays while its actor is full. */
const WHEN_BUSY: RetryPolicy = {
  attempts: Number.MAX_SAFE_INTEGER,
  when: (thrown) => thrown instanceof Failure && thrown.code === 503,
};

/** A bus for the kept commands of a loop. They have no time limit, and actors limit how many run at once. */
export function commandBus(options: Omit<EventBusOptions, "kind">): EventBus {
  const unbounded = { concurrency: EVENTS_HELD_MAX, handlerTimeoutMs: TIMER_DELAY_MS_MAX };
  return new EventBus({ ...options, ...unbounded, kind: "command" });
}

/** `noteFailed` records a failed command that no capability has handled. */
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
    onForeignChange: (listener) => bus.onForeignChange(listener),
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
    subscribeWork({ type, subscriber: subscriberId, space, clearance, onFailed, ...options }, deliver) {
      const failed: FailedCall | undefined =
        onFailed && ((failure, { message }, attempt) => onFailed(failure, attempt, message));
      bus.relayWork(topicOf(type), ({ message }, attempt) => deliver(message, attempt), {
        ...{ subscriberId, space, clearance, failed },
        ...subscribeOptions(options),
      });
    },
    feed: feedOver(bus.feed),
  };
}

function subscribeOptions({ retry, concurrency, serialBy, onFailed }: DeliveryOptions) {
  return omitUndefined({
    ...{ retry, concurrency },
    serialBy: serialBy && (({ message }: Event) => serialBy(message)),
    onFailed:
      onFailed && ((failure: HandlerFailure, _: unknown, { message }: Event) => onFailed(failure, undefined, message)),
  });
}

/** A refusal is final, or the message is stored already: a repeating sender must learn that. */
export async function refusedAs422<T>(appended: Promise<T>): Promise<T> {
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
    end: () => feed.end(),
    async page(after, limit) {
      const page = await feed.page(after, limit);
      const rows = page.rows.map((row) => ({
        ...{ id: row.id, lane: journalLaneOf(row), topic: row.topic },
        message: row.message?.kind === "event" ? row.message : undefined,
      }));
      return { ...page, rows };
    },
    grown: (mark, signal) => feed.grown(mark, signal),
  };
}

interface NotingParts {
  readonly store: Store;
  /** The capability that handled it. */
  readonly source: string;
  readonly observe: BusObserver;
}

/**
 * Records in the journal that a command of a transactional handler failed or was refused, because no commit brings
 * its row. If the command is sent again and succeeds, its row becomes an ordinary done row. SPEC: L40, L51.
 */
export function failuresNoted({ store, source, observe }: NotingParts): NonNullable<SpawnContext["noteFailed"]> {
  return async (message: Message, error: unknown, kind = "failed") => {
    const as: JournalEntry["as"] =
      kind === "failed"
        ? { status: "failed", error: errorText(error) }
        : { status: "done", ending: { outcome: "refused", reason: errorText(error) } };
    const trouble = await store.append([{ message, topic: message.type, source, as }]).then(
      // Ignored: the message exists with other content or is too large for a row. The requester gets its answer
      // anyway.
      (outcome) => (outcome.kind === "rejected" && outcome.class !== "permanent" ? outcome.message : undefined),
      (thrown: unknown) => errorText(thrown),
    );
    if (trouble !== undefined)
      observe({ kind: "store-trouble", doing: "noting that a command failed", error: trouble });
  };
}
