/** Calls under way when a bus is paused, stopped or started. */
import { describe, expect, test } from "#test";
import { EventBus } from "../../src/bus/event-bus.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { simulatedProcess } from "../../src/host/simulated-process.ts";
import { EVENT_DEATHS_MAX, EVENT_SUSPECT_DEATHS, LEASE_MS } from "../../src/limits.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { StoreError } from "../../src/store/store.ts";
import { deferred, recorder, setup, withFaults } from "./bus-setup.ts";

const hangs = () => new Promise<never>(() => {});

describe("a bus that stops", () => {
  test("[J73] [J88] leaves an event behind in good order, however often: that is no death", async () => {
    const { bus: publisher, act, host, row, another } = setup();
    const id = await act(() => publisher.publish("tick", "clock", 1));
    const deaths: number[] = [];
    for (let i = 0; i <= EVENT_DEATHS_MAX; i++) {
      const bus = another();
      const told = (_event: unknown, context: { deaths: number }) => {
        deaths.push(context.deaths);
        return hangs();
      };
      bus.subscribe("tick", told, { subscriberId: "s" });
      await act(() => bus.start());
      await act(() => bus.stop({ graceMs: 10 }));
      expect((await row(id)).status).toBe("processing");
      await host.advance(2 * LEASE_MS);
    }
    // Its next handler hears that another one may have begun.
    expect(deaths).toEqual([0, ...Array(EVENT_DEATHS_MAX).fill(1)]);
    const last = another();
    const { ids, handler } = recorder();
    last.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => last.start());
    expect(ids).toEqual([id]);
    expect((await row(id)).status).toBe("done");
  });

  test("[J73] waits without end with grace Infinity, and refuses an invalid grace before any change", async () => {
    const { bus, act, host, row } = setup();
    const gate = deferred();
    bus.subscribe("tick", () => gate.promise, { subscriberId: "s", timeoutMs: 1e12 });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    for (const graceMs of [-1, Number.NaN, 1e300]) {
      expect(await act(() => bus.stop({ graceMs }).catch(({ code }) => code))).toBe("BUS_MISUSE");
    }
    await act(() => bus.publish("tick", "clock", 2));
    let isOver = false;
    const stopping = bus.stop({ graceMs: Number.POSITIVE_INFINITY }).then(() => {
      isOver = true;
    });
    await host.advance(100 * LEASE_MS);
    expect(isOver).toBe(false);
    await act(async () => gate.resolve());
    await act(() => stopping);
    expect((await row(id)).status).toBe("done");
    expect(await bus.publish("tick", "clock", 3).catch(({ code }) => code)).toBe("BUS_STOPPED");
    expect(host.pendingTimers).toBe(0);
  });

  test("[J73] [J83] gives back published events that were on their way, and is idle then", async () => {
    const { act, host, another, store: inner } = setup();
    const gate = deferred();
    const store = withFaults(inner, {
      append: async (entries, leaveOut) => {
        const outcome = await inner.append(entries, leaveOut);
        await gate.promise;
        return outcome;
      },
    });
    const bus = another({ store });
    const { ids, handler } = recorder();
    bus.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => bus.start());
    const publishing = bus.publish("tick", "clock", 1);
    await host.advance(0);
    const stopping = bus.stop();
    await host.advance(10);
    await act(async () => gate.resolve());
    await act(() => Promise.all([stopping, publishing, bus.idle()]));
    expect(bus.busy).toBe(false);
    expect(ids).toEqual([]);
    expect(await inner.query({ limit: 9 })).toMatchObject([{ status: "pending", attempts: 0 }]);
  });

  test("[J73] receives no event after the grace", async () => {
    const { act, host, another, store: inner } = setup();
    const gate = deferred();
    const store = withFaults(inner, {
      append: async (entries, leaveOut) => {
        await gate.promise;
        return inner.append(entries, leaveOut);
      },
      claim: async (request) => {
        const claims = await inner.claim(request);
        if (claims.length > 0) await gate.promise;
        return claims;
      },
    });
    await host.run(() => another().publish("tick", "clock", 0));
    const bus = another({ store });
    const { ids, handler } = recorder();
    bus.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => bus.start());
    const publishing = bus.publish("tick", "clock", 1);
    await host.advance(0);
    await act(() => bus.stop({ graceMs: 10 }));
    await act(async () => gate.resolve());
    expect(await act(() => publishing)).toBe(2);
    await act(() => bus.idle());
    expect(bus.busy).toBe(false);
    expect(ids).toEqual([]);
    const other = another();
    other.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => other.start());
    await host.advance(2 * LEASE_MS);
    expect(ids).toEqual([1, 2]);
  });

  test("[J73] beside a start that fails has no work to end; the caller of the start gets the failure", async () => {
    const { act, another, store: inner } = setup();
    const openLease = async () => {
      throw new StoreError("STORE_FULL", "there is no space left");
    };
    const bus = another({ store: withFaults(inner, { openLease }) });
    const start = () => bus.start().then(String, ({ code }) => code);
    const stop = () => bus.stop().then(() => "stopped", String);
    expect(await act(() => Promise.all([start(), stop()]))).toEqual(["STORE_FULL", "stopped"]);
  });

  test("[J73] beside a start leaves no timer", async () => {
    const { bus, act, host } = setup({ retention: { maxSettled: 10 } });
    await act(() => Promise.all([bus.start(), bus.stop()]));
    expect(host.pendingTimers).toBe(0);
  });
});

describe("a bus that is paused", () => {
  test("[J69] before or while it starts begins paused", async () => {
    for (const when of ["before", "while"] as const) {
      const { bus, act } = setup();
      const { ids, handler } = recorder();
      bus.subscribe("tick", handler, { subscriberId: "s" });
      await act(() => bus.publish("tick", "clock", 1));
      if (when === "before") bus.pause();
      const starting = bus.start();
      if (when === "while") bus.pause();
      await act(() => starting);
      await act(() => bus.publish("tick", "clock", 2));
      expect(ids).toEqual([]);
      bus.resume();
      await act(() => bus.idle());
      expect(ids).toEqual([1, 2]);
    }
  });

  test("[J69] a bus that is paused and resumed before it starts runs", async () => {
    const { bus, act } = setup();
    const { ids, handler } = recorder();
    bus.subscribe("tick", handler, { subscriberId: "s" });
    bus.pause();
    bus.resume();
    await act(() => bus.start());
    await act(() => bus.publish("tick", "clock", 1));
    expect(ids).toEqual([1]);
  });

  for (const how of ["pause", "stop"] as const) {
    test(`[J69] [J73] [J88] a suspect whose beginning the journal is being told is given back by ${how}`, async () => {
      const { bus: publisher, act, host, disk, row, another, store: inner } = setup();
      const id = await act(() => publisher.publish("tick", "clock", 1));
      for (let i = 0; i < EVENT_SUSPECT_DEATHS; i++) {
        const process = simulatedProcess(host);
        const killed = another({ host: process, store: memoryStore({ host: process, disk }) });
        killed.subscribe("tick", hangs, { subscriberId: "s" });
        await act(() => killed.start());
        process.kill();
        await host.advance(2 * LEASE_MS);
        await act(() => inner.recover());
      }
      expect((await row(id)).deaths).toBe(EVENT_SUSPECT_DEATHS);
      const gate = deferred();
      const store = withFaults(inner, {
        settle: async (settlements, urgency) => {
          if (settlements.some(({ outcome }) => outcome.kind === "begun")) await gate.promise;
          return inner.settle(settlements, urgency);
        },
      });
      const bus = another({ store });
      const { ids, handler } = recorder();
      bus.subscribe("tick", handler, { subscriberId: "s" });
      await act(() => bus.start());
      const stopping = how === "stop" ? bus.stop() : bus.pause();
      await host.advance(10);
      await act(async () => gate.resolve());
      await act(async () => stopping);
      expect(ids).toEqual([]);
      expect(await row(id)).toMatchObject({ status: "pending", deaths: EVENT_SUSPECT_DEATHS });
      if (how === "stop") return;
      bus.resume();
      await act(() => bus.idle());
      expect(ids).toEqual([id]);
    });
  }
});

test("[J74] the interval of retention is at most the longest timer", () => {
  const host = simulatedHost(1);
  const make = (everyMs: number) => () =>
    new EventBus({ host, store: memoryStore({ host }), retention: { maxSettled: 1, everyMs } });
  expect(make(1e15)).toThrow("at most 100 years");
  expect(make(Number.POSITIVE_INFINITY)).toThrow("at most 100 years");
  expect(make(1e12)).not.toThrow();
});
