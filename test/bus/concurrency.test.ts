/** Slots of each subscription: a slow one keeps its events in a bounded line, and delays no other topic. */
import { describe, expect, test } from "#test";
import { DISPATCH_CONCURRENCY_MAX, SUBSCRIPTION_LINE_MAX } from "../../src/limits.ts";
import { deferred, type Setup, setup } from "./bus-setup.ts";

const eventsOf = (topic: string, length: number) =>
  Array.from({ length }, (_, payload) => ({ topic, source: "test", payload }));

/** A subscription with handlers of 3 s each, and a quick one beside it. */
function slowAndQuick({ bus, host }: Setup) {
  const log: string[] = [];
  let running = 0;
  let most = 0;
  const slow = async () => {
    most = Math.max(most, ++running);
    await new Promise<void>((resolve) => void host.timer(3_000, resolve));
    running--;
  };
  bus.subscribe("slow", slow, { subscriberId: "slow" });
  bus.subscribe(
    "quick",
    async () => {
      await Promise.resolve();
      log.push(`quick at ${host.monotonic()}`);
    },
    { subscriberId: "quick" },
  );
  bus.subscribe("sync", () => void log.push(`sync at ${host.monotonic()}`), { subscriberId: "sync" });
  return { log, running: () => running, most: () => most };
}

describe("concurrency of a subscription", () => {
  test("[J130] ten slow handlers of one topic do not delay another topic", async () => {
    const made = setup();
    const { bus, act, host } = made;
    const { log, running } = slowAndQuick(made);
    await act(() => bus.start());
    await act(() => bus.publishMany(eventsOf("slow", 12)));
    expect(running()).toBe(DISPATCH_CONCURRENCY_MAX);
    const now = host.monotonic();
    await act(() => bus.publish("quick", "test", 1));
    await act(() => bus.publish("sync", "test", 1));
    expect(log).toEqual([`quick at ${now}`, `sync at ${now}`]);
  });

  test("[J51] [J130] a subscription runs as many handlers at once as it says, and ten unless it does", async () => {
    const { bus, act, host } = setup();
    const most = { two: 0, ten: 0 };
    const count = (name: keyof typeof most) => {
      let running = 0;
      return async () => {
        most[name] = Math.max(most[name], ++running);
        await new Promise<void>((resolve) => void host.timer(10, resolve));
        running--;
      };
    };
    bus.subscribe("tick", count("two"), { subscriberId: "two", concurrency: 2 });
    bus.subscribe("tock", count("ten"), { subscriberId: "ten" });
    await act(() => bus.start());
    await act(() => bus.publishMany([...eventsOf("tick", 30), ...eventsOf("tock", 30)]));
    await host.advance(1_000);
    expect(most).toEqual({ two: 2, ten: 10 });
  });

  test("[J131] a backlog of a slow topic is not claimed as a whole, and events behind it are handled at once", async () => {
    const made = setup();
    const { bus, act, host, store } = made;
    const { log } = slowAndQuick(made);
    // Before the start, so that all of it is claimed from the journal.
    await act(() => bus.publishMany(eventsOf("slow", 3 * SUBSCRIPTION_LINE_MAX)));
    await act(() => bus.publish("quick", "test", 1));
    await act(() => bus.start());
    await host.advance(100);
    const held = SUBSCRIPTION_LINE_MAX + DISPATCH_CONCURRENCY_MAX;
    expect(log.length).toBe(1);
    expect(await store.count()).toMatchObject({
      processing: held,
      pending: 3 * SUBSCRIPTION_LINE_MAX - DISPATCH_CONCURRENCY_MAX - SUBSCRIPTION_LINE_MAX,
    });
    // The line of a slow subscription becomes short, and other processes may have the rest.
    await host.advance(20_000);
    expect((await store.count()).processing <= 3 * DISPATCH_CONCURRENCY_MAX).toBe(true);
    bus.checkInvariants();
  });

  test("[J131] events that were left in the journal for a full line are handled when it is shorter", async () => {
    const { bus, act, host, store } = setup();
    const gate = deferred();
    let handled = 0;
    const handle = async () => {
      await gate.promise;
      handled++;
    };
    bus.subscribe("tick", handle, { subscriberId: "s", concurrency: 1 });
    await act(() => bus.start());
    for (let i = 0; i < 6; i++) await act(() => bus.publishMany(eventsOf("tick", 1_000)));
    expect((await store.count()).processing).toBe(SUBSCRIPTION_LINE_MAX + 1);
    await act(async () => gate.resolve());
    await host.advance(100);
    expect([handled, (await store.count()).done]).toEqual([6_000, 6_000]);
    bus.checkInvariants();
  });

  test("[J131] a pause with a full line leaves no topic unclaimed", async () => {
    const { bus, act, host, store } = setup();
    const gate = deferred();
    bus.subscribe("tick", () => gate.promise, { subscriberId: "s", concurrency: 1 });
    await act(() => bus.start());
    await act(() => bus.publishMany(eventsOf("tick", SUBSCRIPTION_LINE_MAX + 100)));
    await act(async () => bus.pause());
    expect(await store.count()).toMatchObject({ processing: 1 });
    await act(async () => gate.resolve());
    await act(async () => bus.resume());
    await host.advance(100);
    expect((await store.count()).done).toBe(SUBSCRIPTION_LINE_MAX + 100);
  });
});
