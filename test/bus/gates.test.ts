/**
 * The two gates before a handler, the slots of its subscription and the order of its key, and events that wait at them.
 */
import { describe, expect, test } from "#test";
import { EventRun } from "../../src/bus/event-run.ts";
import { HeldEvents } from "../../src/bus/held-events.ts";
import { SerialOrder } from "../../src/bus/serial-order.ts";
import { Slots } from "../../src/bus/slots.ts";
import { Subscription } from "../../src/bus/subscription.ts";
import { Subscriptions } from "../../src/bus/subscriptions.ts";
import { pause } from "../../src/host/pause.ts";
import { SUBSCRIPTION_LINE_MAX } from "../../src/limits.ts";
import type { Message } from "../../src/message/envelope.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { deferred, recorder, setup, withFaults } from "./bus-setup.ts";

/** How long the store below takes to settle. */
const SETTLE_MS = 10;

/**
 * Publishes events 1, 2 and 3 to a handler that takes one at a time; the first is inside until it is let out. Settles
 * take their time, so that the give-back is still on its way when there is a slot.
 */
async function oneInside() {
  const made = setup();
  const { host, disk, act, another } = made;
  const inner = memoryStore({ host, disk });
  const settle: typeof inner.settle = async (...settles) => {
    await pause(host, SETTLE_MS);
    return inner.settle(...settles);
  };
  const bus = another({ store: withFaults(inner, { settle }) });
  const settled = async () => {
    await host.advance(20 * SETTLE_MS);
    bus.checkInvariants();
  };
  const first = deferred();
  const { ids, handler } = recorder();
  const handle = (event: { id: number }) => {
    handler(event);
    return event.id === 1 ? first.promise : undefined;
  };
  bus.subscribe("tick", handle, { subscriberId: "s", concurrency: 1 });
  await act(() => bus.start());
  for (let n = 1; n <= 3; n++) await act(() => bus.publish("tick", "x", n));
  expect(ids).toEqual([1]);
  return { ...made, bus, ids, settled, letOut: () => act(async () => first.resolve()) };
}

describe("gates", () => {
  test("[J69] pause gives back the events in the line of a busy subscription, and starts none of them when there is a slot", async () => {
    const { bus, act, store, ids, letOut, settled } = await oneInside();
    bus.pause();
    await letOut();
    await settled();
    expect(ids).toEqual([1]);
    expect(await store.count()).toMatchObject({ pending: 2, processing: 0, done: 1 });
    await act(async () => bus.resume());
    await settled();
    expect(ids.toSorted()).toEqual([1, 2, 3]);
    expect(await store.count()).toMatchObject({ pending: 0, processing: 0, done: 3 });
  });

  test("[J69] pause gives back events that wait for a slot of the bus", async () => {
    const { bus, act, store } = setup({ concurrency: 1 });
    const inside = deferred();
    bus.subscribe("tick", () => inside.promise, { subscriberId: "s" });
    await act(() => bus.start());
    for (let n = 1; n <= 3; n++) await act(() => bus.publish("tick", "x", n));
    expect(await store.count()).toMatchObject({ pending: 0, processing: 3 });
    await act(async () => bus.pause());
    expect(await store.count()).toMatchObject({ pending: 2, processing: 1 });
  });

  test("[J73] stop gives back the events in the line of a busy subscription, and starts none of them when there is a slot", async () => {
    const { bus, host, store, ids, letOut } = await oneInside();
    const stopping = bus.stop();
    await host.advance(SETTLE_MS / 2);
    await letOut();
    await host.run(() => stopping);
    expect(ids).toEqual([1]);
    expect(await store.count()).toMatchObject({ pending: 2, processing: 0, done: 1 });
  });

  test("[J68] an event that waits for a slot is handled once, also if its order is checked meanwhile", async () => {
    const { bus, act } = setup();
    const first = deferred();
    const { ids, handler } = recorder();
    bus.subscribe(
      "tick",
      async (event) => {
        handler(event);
        if (event.id === 1) await first.promise;
      },
      { subscriberId: "s", concurrency: 1, serialBy: ({ payload }) => String(payload) },
    );
    await act(() => bus.start());
    await act(() => bus.publish("tick", "x", "a"));
    await act(() => bus.publish("tick", "x", "b"));
    // An id that is not held here: the journal has to be asked before later events.
    await act(() => bus.publish("unheard", "x", 0));
    await act(() => bus.publish("tick", "x", "c"));
    expect(ids).toEqual([1]);
    await act(async () => first.resolve());
    expect(ids).toEqual([1, 2, 4]);
  });

  test("[J68] an event that is handled at once admits the next in line", async () => {
    const { ids, store, letOut, settled } = await oneInside();
    await letOut();
    await settled();
    expect(ids).toEqual([1, 2, 3]);
    expect((await store.count()).done).toBe(3);
  });

  test("[J43] events in the line of a removed subscription skip it", async () => {
    const { bus, ids, store, letOut, settled } = await oneInside();
    bus.unsubscribe("tick", "s");
    await letOut();
    await settled();
    expect(ids).toEqual([1]);
    expect((await store.count()).done).toBe(3);
  });

  test("[J67] a line is as long as the number of its waiting events, also if they were given back and came again", async () => {
    const { host, store } = setup();
    const parts = { host, store, subscriptions: new Subscriptions(), observe: () => undefined };
    const held = new HeldEvents({ host, serial: new SerialOrder(parts), concurrency: 1 });
    const slots = new Slots({ host, held, concurrency: 1 });
    const defaults = { timeoutMs: 1_000, concurrency: 1, board: undefined };
    const plain = { kind: "plain", handler: () => undefined } as const;
    const subscription = new Subscription("tick", plain, { subscriberId: "s" }, defaults);
    const step = { subscription, subscriber: "s" };
    const message: Message = { kind: "event", type: "Topic.Tick", data: 1, metadata: { id: "m", timestamp: 0 } };
    subscription.running = 1;
    for (let round = 0; round * 10 <= SUBSCRIPTION_LINE_MAX; round++) {
      const runs = Array.from({ length: 10 }, (_, n) => {
        const facts = { id: n + 1, topic: "tick", source: "x", message };
        return new EventRun(
          facts,
          { lease: 1, attempt: 1, deliveries: [] },
          { steps: [step], missing: [], version: 0 },
        );
      });
      held.receive(runs);
      for (const run of runs) {
        expect(slots.admits(step, run)).toBe("line");
        held.park(run, "at-slot");
      }
      expect(slots.waitingAt(subscription)).toBe(runs.length);
      for (const run of held.takeBackAll()) held.over(run, "given-back");
    }
  });

  test("[J89] an event that was given back leaves its line", async () => {
    const { bus, act } = await oneInside();
    expect(bus.subscriptions()).toMatchObject([{ running: 1, waiting: 2 }]);
    await act(async () => bus.pause());
    expect(bus.subscriptions()).toMatchObject([{ running: 1, waiting: 0 }]);
  });
});
