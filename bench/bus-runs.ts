/** Workloads of the bus: publishing, and publishing until the event is handled and done. */
import { EventBus, type Json, type Publication, type Store, systemHost } from "millrace/bus";
import { Space } from "millrace/signals";
import type { JournalEntry } from "millrace/store";
import type { Sample } from "./harness/benchmark.ts";
import { elapsedMs, percentile } from "./harness/timing.ts";
import { makeEntries, pieces, TOPIC } from "./store/events.ts";

/** Events of one call in bulk, and callers that publish side by side. */
export const BULK = 1_000;
/** Documents that transactional handlings write in turn. */
export const BOOKS = 100;
const SOURCE = "shop";

type Handling = "none" | "plain" | "transactional";

export interface Running {
  readonly bus: EventBus;
  readonly store: Store;
  /** Resolves when this many events have been handled since the start, and their settlements are durable. */
  handled(count: number): Promise<void>;
}

/** A started bus with handlers that only count. */
export async function running(store: Store, handling: Handling): Promise<Running> {
  const host = systemHost();
  const bus = new EventBus({ store, host });
  let handled = 0;
  let awaited: { count: number; resolve: () => void } | undefined;
  const count = () => {
    handled++;
    if (awaited && handled >= awaited.count) awaited.resolve();
  };
  if (handling === "plain") bus.subscribe(TOPIC, count, { subscriberId: "bench" });
  if (handling === "transactional") {
    const space = await Space.open({ store, host, name: "orders" });
    const books = Array.from({ length: BOOKS }, (_, n) => space.cell<{ last: number }>(`book-${n}`));
    bus.subscribe(
      TOPIC,
      (event, tx) => {
        tx.set(books[event.id % BOOKS]!, { last: event.id });
        count();
      },
      { subscriberId: "bench", space },
    );
  }
  if (handling !== "none") await bus.start();
  return {
    bus,
    store,
    handled: async (total) => {
      await new Promise<void>((resolve) => {
        awaited = { count: total, resolve };
        if (handled >= total) resolve();
      });
      await allSettled(store);
    },
  };
}

/** Writes are answered in order, so that one asked for now is answered after every settle that is on its way. */
async function allSettled(store: Store): Promise<void> {
  for (;;) {
    await systemHost().yield();
    await store.releaseRetries(0);
    const { pending, processing } = await store.count();
    if (pending + processing === 0) return;
  }
}

export function payloads(count: number): Json[] {
  return makeEntries(count).map((entry) => entry.message.data);
}

export async function publishByCallers(store: Store, count: number, callers: number): Promise<Sample> {
  const { bus } = await running(store, "none");
  const events = makeEntries(count);
  return rate(count, () => concurrently(callers, events, (event) => publish(bus, event)));
}

export async function publishInBulk(store: Store, count: number): Promise<Sample> {
  const { bus } = await running(store, "none");
  const waves = pieces(publications(count), BULK);
  return rate(count, async () => {
    for (const wave of waves) await bus.publishMany(wave);
  });
}

/** From the first publish until the last event is done. */
export async function publishToDone(store: Store, count: number, handling: Handling): Promise<Sample> {
  const { bus, handled } = await running(store, handling);
  const all = pieces(publications(count + WARM_UP), BULK);
  const waves = all.slice(WARM_UP / BULK);
  for (const wave of all.slice(0, WARM_UP / BULK)) await bus.publishMany(wave);
  await handled(WARM_UP);
  const before = store.stats();
  const sample = await rate(count, async () => {
    for (const wave of waves) await bus.publishMany(wave);
    await handled(count + WARM_UP);
  });
  const after = store.stats();
  await bus.stop();
  return { ...sample, "statements per event": (after.statements - before.statements) / count };
}

export async function publishToDoneByCallers(store: Store, count: number, callers: number): Promise<Sample> {
  const { bus, handled } = await running(store, "plain");
  const all = makeEntries(count + WARM_UP);
  await concurrently(callers, all.slice(0, WARM_UP), (event) => publish(bus, event));
  await handled(WARM_UP);
  const events = all.slice(WARM_UP);
  const sample = await rate(count, async () => {
    await concurrently(callers, events, (event) => publish(bus, event));
    await handled(count + WARM_UP);
  });
  await bus.stop();
  return sample;
}

/** Until code is compiled. */
const WARM_UP = 4 * BULK;

/** With a correlation, as the bare engine writes them: it has an index of its own. */
export function publications(count: number): Publication[] {
  return makeEntries(count).map(({ message: { data, metadata } }) => {
    return { topic: TOPIC, source: SOURCE, payload: data, correlation: metadata.correlation };
  });
}

export function publish(bus: EventBus, { message: { data, metadata } }: JournalEntry): Promise<number> {
  return bus.publish(TOPIC, SOURCE, data, { correlation: metadata.correlation });
}

export function latencies(tookMs: readonly number[]): Sample {
  return { "p50 ms": percentile(tookMs, 0.5), "p99 ms": percentile(tookMs, 0.99) };
}

export async function rate(count: number, work: () => Promise<void>): Promise<Sample> {
  return { "events/s": (count * 1_000) / (await elapsedMs(work)) };
}

/** Runs `work` over the items with so many in flight. */
export async function concurrently<Item>(
  callers: number,
  items: readonly Item[],
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < items.length) await work(items[next++]!);
  };
  await Promise.all(Array.from({ length: callers }, caller));
}
