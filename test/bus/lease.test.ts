import { describe, expect, test } from "#test";
import { simulatedProcess } from "../../src/host/simulated-process.ts";
import { EVENT_DEATHS_MAX, LEASE_MS } from "../../src/limits.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { JournalEntry } from "../../src/store/journal.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { StoreError } from "../../src/store/store.ts";
import { deferred, recorder, type Setup, setup, withFaults } from "./bus-setup.ts";

function entryOf(topic: string, n: number): JournalEntry {
  const message: Message = {
    kind: "event",
    type: "Test.Event",
    data: n,
    metadata: { id: `${topic}-${n}`, timestamp: 0 },
  };
  return { topic, source: "test", message, as: { status: "pending" } };
}

/** A bus in a process of its own, which can be killed and paused. */
function processBus({ host, disk, another }: Setup) {
  const process = simulatedProcess(host);
  const store = memoryStore({ host: process, disk });
  return { process, store, bus: another({ host: process, store }) };
}

describe("leases", () => {
  test("[J70] a handler may take many leases' time: the lease is renewed while it runs", async () => {
    const { bus, act, host, another, row } = setup();
    const gate = deferred();
    bus.subscribe("tick", () => gate.promise, { subscriberId: "s", timeoutMs: 100 * LEASE_MS });
    const other = another();
    const { ids, handler } = recorder();
    other.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => bus.start());
    await act(() => other.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    await host.advance(10 * LEASE_MS);
    expect(await act(() => other.recover())).toBe(0);
    await act(async () => gate.resolve());
    expect((await row(id)).status).toBe("done");
    expect(ids).toEqual([]);
  });

  test("[J93] a store that takes no lease is asked again from time to time, and events are handled when it does", async () => {
    const { store: inner, act, host, another } = setup();
    let isFull = false;
    let asked = 0;
    const full = async () => {
      asked++;
      // As long as a real one would take at least, so that one that is asked all the time is not asked for ever.
      await host.yield();
      throw new StoreError("STORE_FULL", "there is no space left");
    };
    const store = withFaults(inner, {
      claim: (request) => (isFull ? full() : inner.claim(request)),
      renewLease: (lease, durationMs) => (isFull ? full() : inner.renewLease(lease, durationMs)),
      openLease: (durationMs, about) => (isFull ? full() : inner.openLease(durationMs, about)),
    });
    const bus = another({ store });
    const { ids, handler } = recorder();
    bus.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => bus.start());
    isFull = true;
    await act(() => inner.append([entryOf("tick", 1)]));
    await host.advance(LEASE_MS);
    const perSecond = asked / (LEASE_MS / 1_000);
    expect(perSecond).toBeGreaterThan(0);
    expect(perSecond).toBeLessThan(20);
    isFull = false;
    await host.advance(LEASE_MS);
    expect(ids).toHaveLength(1);
  });

  test("[J93] a lease that was lost, or could not be renewed once, is asked for again soon", async () => {
    for (const trouble of ["lost, and none opened", "not renewed"] as const) {
      const { store: inner, act, host, another } = setup();
      let isFaulty = false;
      let asked = 0;
      const leaseMs = 20 * LEASE_MS;
      const fault = (): never => {
        isFaulty = false;
        throw new StoreError("STORE_FULL", "there is no space left");
      };
      const store = withFaults(inner, {
        renewLease: async (lease, durationMs) => {
          asked++;
          if (isFaulty && trouble === "lost, and none opened") return false;
          return isFaulty ? fault() : inner.renewLease(lease, durationMs);
        },
        openLease: async (durationMs, about) => {
          asked++;
          return isFaulty ? fault() : inner.openLease(durationMs, about);
        },
      });
      const bus = another({ store, leaseMs });
      const { ids, handler } = recorder();
      bus.subscribe("tick", handler, { subscriberId: "s" });
      await act(() => bus.start());
      isFaulty = true;
      asked = 0;
      await host.advance(leaseMs / 3 + 1_000);
      expect(isFaulty).toBe(false);
      expect(asked).toBeGreaterThan(1);
      expect(asked).toBeLessThan(5);
      await act(() => bus.publish("tick", "clock", 1));
      expect(ids).toEqual([1]);
    }
  });

  test("[J72] the events of a killed process are taken over within two leases, and handled once more", async () => {
    const all = setup();
    const { bus, act, host } = all;
    const killed = processBus(all);
    const first = recorder();
    killed.bus.subscribe(
      "tick",
      (event) => {
        first.handler(event);
        return new Promise(() => {});
      },
      { subscriberId: "s" },
    );
    await act(() => killed.bus.start());
    const second = recorder();
    bus.subscribe("tick", second.handler, { subscriberId: "s" });
    await act(() => bus.start());
    await act(() => killed.bus.publish("tick", "clock", 1));
    killed.process.kill();
    await host.advance(LEASE_MS / 2);
    expect([first.ids, second.ids]).toEqual([[1], []]);
    await host.advance(1.5 * LEASE_MS);
    expect(second.ids).toEqual([1]);
  });

  test("[J88] an event that kills its process every time is failed after five deaths; those in hand with it are done", async () => {
    const all = setup();
    const { act, host, store, row } = all;
    const ids = await act(async () => {
      const outcome = await store.append(Array.from({ length: 12 }, (_, n) => entryOf(n === 5 ? "poison" : "tick", n)));
      return outcome.kind === "appended" ? outcome.ids : [];
    });
    const poisonId = ids[5]!;
    const tries: number[] = [];
    for (let round = 0; (await row(poisonId)).status !== "failed"; round++) {
      if (round > 10) throw new Error("the poison is handled again and again");
      const { process, bus } = processBus(all);
      const slow = { subscriberId: "slow", timeoutMs: LEASE_MS };
      bus.subscribe("tick", () => new Promise((resolve) => process.timer(10, () => resolve(undefined))), slow);
      bus.subscribe("poison", ({ id }) => tries.push(id) && process.kill(), { subscriberId: "deadly" });
      await act(() => bus.start());
      await host.advance(3 * LEASE_MS);
      process.kill();
    }
    expect(tries).toEqual(Array.from({ length: EVENT_DEATHS_MAX }, () => poisonId));
    expect((await row(poisonId)).error).toBe("its process died 5 times while handling it");
    const others = await Promise.all(ids.filter((id) => id !== poisonId).map((id) => row(id)));
    expect(others.map(({ status }) => status)).toEqual(others.map(() => "done"));
  });

  test("[J72] recover counts the events that it puts back, and takes none from a living process", async () => {
    const all = setup();
    const { act, host, another } = all;
    const killed = processBus(all);
    const living = processBus(all);
    for (const { bus } of [killed, living]) {
      bus.subscribe("tick", () => new Promise(() => {}), { subscriberId: "s" });
      await act(() => bus.start());
      await act(() => bus.publish("tick", "clock", 1));
    }
    killed.process.kill();
    // The living one would recover by itself: paused, it cannot, and its lease is still good.
    await host.advance(LEASE_MS - 1);
    living.process.pause();
    await host.advance(2);
    expect(await act(() => another().recover())).toBe(1);
    living.process.resume();
  });

  test("[J71] a process that was away for longer than its lease does not change later results of others", async () => {
    const all = setup();
    const { bus, act, host, row, observed } = all;
    const zombie = processBus(all);
    const gate = deferred();
    zombie.bus.subscribe("tick", () => gate.promise.then(() => Promise.reject(new Error("too late"))), {
      subscriberId: "s",
    });
    await act(() => zombie.bus.start());
    bus.subscribe("tick", () => {}, { subscriberId: "s" });
    await act(() => bus.start());
    const id = await act(() => zombie.bus.publish("tick", "clock", 1));
    zombie.process.pause();
    await host.advance(3 * LEASE_MS);
    expect((await row(id)).status).toBe("done");
    zombie.process.resume();
    await act(async () => gate.resolve());
    await host.advance(1_000);
    expect((await row(id)).status).toBe("done");
    expect(observed.some((one) => one.kind === "lease-lost" || one.kind === "claim-lost")).toBe(true);
    // It has a new lease and works on.
    bus.pause();
    const next = await act(() => zombie.bus.publish("tick", "clock", 2));
    expect((await row(next)).status).toBe("failed");
  });

  test("[J71] a process that was away with a full queue starts none of its events before their owner is known", async () => {
    const all = setup();
    const { bus, act, host, store } = all;
    const zombie = processBus(all);
    const gate = deferred();
    const first = recorder();
    zombie.bus.subscribe(
      "tick",
      (event) => {
        first.handler(event);
        return gate.promise;
      },
      { subscriberId: "s" },
    );
    await act(() => zombie.bus.start());
    for (let i = 0; i < 30; i++) await act(() => zombie.bus.publish("tick", "clock", i));
    expect(first.ids).toHaveLength(10);
    const second = recorder();
    bus.subscribe("tick", second.handler, { subscriberId: "s" });
    await act(() => bus.start());
    zombie.process.pause();
    await host.advance(3 * LEASE_MS);
    expect(second.ids).toHaveLength(30);
    zombie.process.resume();
    await act(async () => gate.resolve());
    await host.advance(1_000);
    expect(first.ids).toHaveLength(10);
    expect((await store.count()).done).toBe(30);
    zombie.bus.checkInvariants();
  });

  test("[J71] a lease that expired unnoticed is current again, and its holder settles its events", async () => {
    const all = setup();
    const { act, host, row } = all;
    const sleeper = processBus(all);
    const gate = deferred();
    sleeper.bus.subscribe("tick", () => gate.promise, { subscriberId: "s" });
    await act(() => sleeper.bus.start());
    const id = await act(() => sleeper.bus.publish("tick", "clock", 1));
    sleeper.process.pause();
    await host.advance(3 * LEASE_MS);
    sleeper.process.resume();
    await act(async () => gate.resolve());
    await host.advance(1_000);
    expect((await row(id)).status).toBe("done");
  });

  test("[J71] events that waited through an unnoticed absence are handled when the lease is known to be current", async () => {
    const all = setup();
    const { act, host, store } = all;
    const sleeper = processBus(all);
    const gate = deferred();
    sleeper.bus.subscribe("tick", () => gate.promise, { subscriberId: "s" });
    await act(() => sleeper.bus.start());
    for (let i = 0; i < 30; i++) await act(() => sleeper.bus.publish("tick", "clock", i));
    sleeper.process.pause();
    await host.advance(3 * LEASE_MS);
    sleeper.process.resume();
    await act(async () => gate.resolve());
    await host.advance(100);
    expect((await store.count()).done).toBe(30);
  });
});
