import { describe, expect, test } from "#test";
import { WaitingBound } from "../../src/bus/waiting-bound.ts";
import {
  DISPATCH_CONCURRENCY_MAX,
  EVENT_WAIT_MS_MAX,
  EVENTS_WAITING_MAX,
  POLL_INTERVAL_MS,
  SETTLE_PAUSE_MS,
  SUBSCRIPTION_LINE_MAX,
} from "../../src/limits.ts";
import { eventMessage } from "../../src/message/lineage.ts";
import type { Settlement } from "../../src/store/journal.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { deferred, recorder, setup, withFaults } from "./bus-setup.ts";

describe("dispatching", () => {
  test("[J49] a running bus delivers at once, without time passing", async () => {
    const { bus, act, host, row } = setup();
    const { ids, handler } = recorder();
    bus.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => bus.start());
    const startMs = host.monotonic();
    const id = await act(() => bus.publish("tick", "clock", 1));
    expect(ids).toEqual([id]);
    expect((await row(id)).status).toBe("done");
    expect(host.monotonic()).toBe(startMs);
  });

  test("[J49] an event of another process is delivered at the notice of the store, and by the poll without a notice", async () => {
    for (const wake of ["told", "lost"] as const) {
      const { host, disk, another, act } = setup();
      const mine = memoryStore({ host, disk });
      const store = wake === "told" ? mine : withFaults(mine, { watch: () => () => {} });
      const bus = another({ store });
      const { ids, handler } = recorder();
      bus.subscribe("tick", handler, { subscriberId: "s" });
      await act(() => bus.start());
      await act(() => another().publish("tick", "clock", 1));
      await host.advance(POLL_INTERVAL_MS - 1);
      expect(ids).toEqual(wake === "told" ? [1] : []);
      await host.advance(1);
      expect(ids).toEqual([1]);
    }
  });

  test("[J49] a backlog is drained without waiting, in order, with at most ten handlers at once", async () => {
    const { bus, act, host, store } = setup();
    for (let i = 0; i < 25; i++) await act(() => bus.publish("tick", "clock", i));
    const started: number[] = [];
    let running = 0;
    let most = 0;
    bus.subscribe(
      "tick",
      async (event) => {
        started.push(event.id);
        most = Math.max(most, ++running);
        await host.yield();
        running--;
      },
      { subscriberId: "s" },
    );
    await act(() => bus.start());
    expect(host.monotonic()).toBe(0);
    expect(started).toEqual(Array.from({ length: 25 }, (_, i) => i + 1));
    expect(most).toBe(10);
    await act(() => bus.idle());
    expect(host.monotonic()).toBe(0);
    expect((await store.count()).done).toBe(25);
  });

  test("[J50] handlers of one event run one after the other, and one that throws does not stop the next", async () => {
    const { bus, act, host, row } = setup();
    const calls: string[] = [];
    const step = (name: string, fails: boolean) => async () => {
      calls.push(`${name} begins`);
      await host.yield();
      calls.push(`${name} ends`);
      if (fails) throw new Error(`${name} is broken`, { cause: new Error("out of paper") });
    };
    bus.subscribe("tick", step("A", false), { subscriberId: "a" });
    bus.subscribe("tick", step("B", true), { subscriberId: "b" });
    bus.subscribe("*", step("C", false), { subscriberId: "c" });
    await act(() => bus.start());
    const [id, sibling] = await act(() =>
      bus.publishMany([
        { topic: "tick", source: "clock", payload: 1 },
        { topic: "tock", source: "clock", payload: 1 },
      ]),
    );
    const ofTick = calls.filter((call) => /^[AB]/.test(call));
    expect(ofTick).toEqual(["A begins", "A ends", "B begins", "B ends"]);
    expect(calls.filter((call) => call === "C ends")).toHaveLength(2);
    const failed = await row(id!);
    expect(failed.status).toBe("failed");
    expect(failed.error).toBe("b: B is broken, because: out of paper");
    expect(failed.deliveries.map(({ status }) => status)).toEqual(["done", "failed", "done"]);
    expect((await row(sibling!)).status).toBe("done");
  });

  test("[J51] events run side by side up to the bus's bound", async () => {
    const { bus, act } = setup({ concurrency: 3 });
    const gates = Array.from({ length: 5 }, () => deferred());
    const started: number[] = [];
    bus.subscribe(
      "tick",
      (event) => {
        started.push(event.id);
        return gates[event.id - 1]?.promise;
      },
      { subscriberId: "s" },
    );
    await act(() => bus.start());
    for (let i = 0; i < 5; i++) await act(() => bus.publish("tick", "clock", i));
    expect(started).toEqual([1, 2, 3]);
    await act(async () => gates[1]!.resolve());
    expect(started).toEqual([1, 2, 3, 4]);
  });

  test("[J52] a failed event names every handler that failed", async () => {
    const { bus, act, row, observed } = setup();
    for (const name of ["a", "b"]) {
      bus.subscribe("tick", () => Promise.reject(new Error(`${name} failed`)), { subscriberId: name });
    }
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    expect((await row(id)).error).toBe("a: a failed\nb: b failed");
    expect(observed.filter((one) => one.kind === "handler-failed")).toHaveLength(2);
  });

  test("[J53] an event without subscriber is done with a note, and only once the bus is started", async () => {
    const { bus, act, row, host } = setup();
    const id = await act(() => bus.publish("tick", "clock", 1));
    await host.advance(2 * POLL_INTERVAL_MS);
    expect((await row(id)).status).toBe("pending");
    await act(() => bus.start());
    expect(await row(id)).toMatchObject({ status: "done", attempts: 1, outcome: "unheard", reason: "no subscriber" });
    // It runs: an event without a subscriber is never claimed.
    const next = await act(() => bus.publish("tick", "clock", 2));
    expect(await row(next)).toMatchObject({ status: "done", attempts: 0, outcome: "unheard", reason: "no subscriber" });
  });

  test("[J54] a row that cannot be read is failed alone", async () => {
    const { disk, host, act, another } = setup();
    const inner = memoryStore({ host, disk });
    const store = withFaults(inner, {
      claim: async (request) => {
        const claims = await inner.claim(request);
        return claims.map((claim) =>
          claim.row.id === 2 ? { ...claim, row: { ...claim.row, message: undefined, unreadable: "bad JSON" } } : claim,
        );
      },
    });
    const bus = another({ store });
    const { ids, handler } = recorder();
    bus.subscribe("tick", handler, { subscriberId: "s" });
    for (let i = 0; i < 3; i++) await act(() => bus.publish("tick", "clock", i));
    await act(() => bus.start());
    expect(ids).toEqual([1, 3]);
    expect(await bus.query({ status: "failed", limit: 9 })).toMatchObject([{ id: 2, error: "bad JSON" }]);
  });

  test("[J55] settles of one turn go to the store together; an event that went well leaves no delivery rows", async () => {
    const { host, disk, act, another, row } = setup();
    const inner = memoryStore({ host, disk });
    const batches: (readonly Settlement[])[] = [];
    const store = withFaults(inner, {
      settle: (settlements) => {
        batches.push(settlements);
        return inner.settle(settlements);
      },
    });
    const bus = another({ store });
    bus.subscribe("tick", () => {}, { subscriberId: "s" });
    bus.subscribe("tick", () => {}, { subscriberId: "t" });
    await act(() => bus.start());
    const events = Array.from({ length: 100 }, (_, payload) => ({ topic: "tick", source: "clock", payload }));
    await act(() => bus.publishMany(events));
    expect(batches.map((batch) => batch.length)).toEqual([100]);
    expect((await row(50)).deliveries).toEqual([]);
  });

  test("[J55] a store that cannot settle now is asked again", async () => {
    const { host, disk, act, another, observed } = setup();
    const inner = memoryStore({ host, disk });
    let refusals = 2;
    const store = withFaults(inner, {
      settle: (settlements) => (refusals-- > 0 ? Promise.reject(new Error("busy")) : inner.settle(settlements)),
    });
    const bus = another({ store });
    const { ids, handler } = recorder();
    bus.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => bus.start());
    await act(() => bus.publish("tick", "clock", 1));
    await host.advance(1_000);
    expect((await inner.count()).done).toBe(1);
    expect(ids).toEqual([1]);
    expect(observed.filter((one) => one.kind === "store-trouble")).toHaveLength(2);
  });

  test("[J66] [J90] events that there is room for are never read back: no claim, an append each, and settles by the pause", async () => {
    const { host, disk, act, another } = setup();
    const inner = memoryStore({ host, disk });
    const asked: string[] = [];
    const store = new Proxy(inner, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key);
        if (typeof value !== "function") return value;
        return (...values: unknown[]) => {
          asked.push(String(key));
          return value.apply(target, values);
        };
      },
    });
    const bus = another({ store: withFaults(store, { watch: () => () => {} }) });
    bus.subscribe("tick", () => {}, { subscriberId: "s" });
    await act(() => bus.start());
    asked.length = 0;
    for (let i = 0; i < 10; i++) await act(() => bus.publish("tick", "clock", i));
    expect(asked).toEqual(["append", "settle", ...Array.from({ length: 9 }, () => "append")]);
    await host.advance(SETTLE_PAUSE_MS);
    expect(asked.slice(11)).toEqual(["settle"]);
    expect(await inner.count()).toMatchObject({ done: 10, processing: 0 });
  });

  test("[J67] the events that a process holds are bounded; others wait in the journal and are handled later", async () => {
    const { bus, act, store, host } = setup();
    const gate = deferred();
    let handled = 0;
    bus.subscribe(
      "tick",
      async () => {
        await gate.promise;
        handled++;
      },
      { subscriberId: "s" },
    );
    await act(() => bus.start());
    const events = Array.from({ length: 1_000 }, (_, payload) => ({ topic: "tick", source: "clock", payload }));
    for (let i = 0; i < 10; i++) await act(() => bus.publishMany(events));
    const counts = await store.count();
    expect(counts.processing).toBe(SUBSCRIPTION_LINE_MAX + DISPATCH_CONCURRENCY_MAX);
    expect(counts.pending > 0).toBe(true);
    await act(async () => gate.resolve());
    await host.advance(1_000);
    expect(handled).toBe(10_000);
    expect((await store.count()).done).toBe(10_000);
  });

  test("[J67] while handlers are slow, few events wait here, so that another process can have them", async () => {
    const { bus, act, another, host, store } = setup();
    bus.subscribe("tick", () => new Promise<void>((resolve) => host.timer(1_000, resolve)), { subscriberId: "s" });
    await act(() => bus.start());
    const events = Array.from({ length: 200 }, (_, payload) => ({ topic: "tick", source: "clock", payload }));
    await act(() => bus.publishMany(events));
    expect((await store.count()).processing).toBe(200);
    await host.advance(4_000);
    expect((await store.count()).processing < 50).toBe(true);
    const other = another();
    other.subscribe("tick", () => {}, { subscriberId: "s" });
    await act(() => other.start());
    await host.advance(2_000);
    expect((await store.count()).pending).toBe(0);
    await host.advance(2_000);
    expect((await store.count()).done).toBe(200);
  });

  test("[J68] a subscription's own bound holds up its events only", async () => {
    const { bus, act } = setup();
    const gates = new Map<number, () => void>();
    const slow: number[] = [];
    bus.subscribe(
      "slow",
      (event) => {
        slow.push(event.id);
        return new Promise<void>((resolve) => gates.set(event.id, resolve));
      },
      { subscriberId: "s", concurrency: 1 },
    );
    const { ids: quick, handler } = recorder();
    bus.subscribe("quick", handler, { subscriberId: "q" });
    await act(() => bus.start());
    for (let i = 0; i < 15; i++) await act(() => bus.publish("slow", "x", i));
    await act(() => bus.publish("quick", "x", 0));
    expect(slow).toEqual([1]);
    expect(quick).toEqual([16]);
    await act(async () => gates.get(1)?.());
    expect(slow).toEqual([1, 2]);
  });

  test("[J69] a paused bus starts no handler and keeps no event from other processes; resumed, it goes on", async () => {
    const { bus, act, another, store } = setup();
    const { ids, handler } = recorder();
    bus.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => bus.start());
    bus.pause();
    await act(() => bus.publish("tick", "clock", 1));
    expect(ids).toEqual([]);
    expect((await store.count()).pending).toBe(1);
    bus.resume();
    await act(async () => {});
    expect(ids).toEqual([1]);
    bus.pause();
    await act(() => bus.publish("tick", "clock", 2));
    const other = another();
    const others = recorder();
    other.subscribe("tick", others.handler, { subscriberId: "s" });
    await act(() => other.start());
    expect(others.ids).toEqual([2]);
  });

  test("[J69] events that a pause gave back are claimed again at once, also without a notice of the store", async () => {
    const { host, disk, act, another } = setup();
    const inner = memoryStore({ host, disk });
    const bus = another({ store: withFaults(inner, { watch: () => () => {} }), concurrency: 1 });
    bus.subscribe("tick", () => host.yield(), { subscriberId: "s" });
    await act(() => bus.start());
    const events = Array.from({ length: 50 }, (_, payload) => ({ topic: "tick", source: "x", payload }));
    const publishing = bus.publishMany(events);
    await host.step();
    bus.pause();
    bus.resume();
    await act(() => publishing);
    await host.advance(10);
    expect((await inner.count()).done).toBe(50);
  });

  test("[J67] the bound on waiting events shrinks while they wait long, and grows again when it is reached", () => {
    const bound = new WaitingBound(10);
    bound.waited(EVENT_WAIT_MS_MAX);
    expect(bound.limit).toBe(EVENTS_WAITING_MAX);
    for (let i = 0; i < 20; i++) bound.waited(EVENT_WAIT_MS_MAX + 1);
    expect(bound.limit).toBe(10);
    bound.ranDry();
    expect(bound.limit).toBe(10);
    bound.turnedAway();
    bound.ranDry();
    expect(bound.limit).toBe(20);
    for (let i = 0; i < 20; i++) {
      bound.turnedAway();
      bound.ranDry();
    }
    expect(bound.limit).toBe(EVENTS_WAITING_MAX);
  });

  test("[J51] commands in the journal are left to the loop", async () => {
    const { bus, act, host, store } = setup();
    const message = { ...eventMessage(host, "Memory.Set", {}), kind: "command" as const };
    await act(() => store.append([{ topic: "Memory.Set", source: "x", message, as: { status: "pending" } }]));
    await act(() => bus.start());
    expect((await store.count()).pending).toBe(1);
  });
});
