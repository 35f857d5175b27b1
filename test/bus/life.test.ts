import { describe, expect, test } from "#test";
import { LEASE_MS, WATCH_PAUSE_MS } from "../../src/limits.ts";
import { rejected } from "../../src/store/rejection.ts";
import { deferred, recorder, setup, withFaults } from "./bus-setup.ts";

describe("life of a bus", () => {
  test("[J73] stop waits for a running handler and settles its event", async () => {
    const { bus, act, host, row } = setup();
    bus.subscribe("tick", () => new Promise<void>((resolve) => host.timer(300, resolve)), { subscriberId: "s" });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    const startMs = host.monotonic();
    await act(() => bus.stop());
    expect(host.monotonic() - startMs).toBe(300);
    expect((await row(id)).status).toBe("done");
  });

  test("[J83] idle waits for held events and for those of others in the journal, not for retries", async () => {
    const { bus, act, host, store, another } = setup();
    const { ids, handler } = recorder();
    const slow = async (event: Parameters<typeof handler>[0]) => {
      await new Promise<void>((resolve) => host.timer(300, resolve));
      handler(event);
    };
    const never = () => Promise.reject(new Error("not today"));
    bus.subscribe("tick", slow, { subscriberId: "s" });
    bus.subscribe("tock", never, { subscriberId: "s", retry: { attempts: 2, backoff: { startMs: 3_600_000 } } });
    await act(() => bus.start());
    await act(() => bus.publish("tock", "clock", 1));
    const startMs = host.monotonic();
    await act(() => bus.idle());
    expect(host.monotonic() - startMs).toBe(0);
    expect(bus.busy).toBe(false);
    const own = await host.run(() => bus.publish("tick", "clock", 1));
    expect(bus.busy).toBe(true);
    const foreign = await host.run(() => another().publish("tick", "clock", 2));
    await act(() => bus.idle());
    expect(ids).toEqual([own, foreign]);
    expect((await store.query({ topic: "tick", limit: 9 })).map(({ status }) => status)).toEqual(["done", "done"]);
  });

  test("[J73] a handler over the grace period is left behind: its event stays processing and is delivered again", async () => {
    const { bus, act, host, row, another } = setup();
    let signal: AbortSignal | undefined;
    bus.subscribe(
      "tick",
      (_event, context) => {
        signal = context.signal;
        return new Promise(() => {});
      },
      { subscriberId: "s" },
    );
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    await act(() => bus.stop({ graceMs: 100 }));
    expect(signal?.aborted).toBe(true);
    expect((await row(id)).status).toBe("processing");
    const other = another();
    const { ids, handler } = recorder();
    other.subscribe("tick", handler, { subscriberId: "s" });
    await host.advance(LEASE_MS);
    expect(await act(() => other.recover())).toBe(1);
    await act(() => other.start());
    expect(ids).toEqual([id]);
  });

  test("[J73] stop under a lease in doubt keeps the event of a running handler from other processes", async () => {
    const { act, host, row, another, store: inner } = setup();
    let isAnswered = true;
    const store = withFaults(inner, {
      append: async (entries) => {
        const outcome = await inner.append(entries);
        return isAnswered ? outcome : rejected("unknown", "no-answer", "done, and not answered");
      },
    });
    const [bus, other] = [another({ store }), another()];
    bus.subscribe("tick", () => new Promise(() => {}), { subscriberId: "s" });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    // The rows of the same lease are not known: it is renewed until its handlers are over, and closed then.
    isAnswered = false;
    await act(() => bus.publish("tick", "clock", 2).catch(() => 0));
    await act(() => bus.stop({ graceMs: 100 }));
    expect((await row(id)).status).toBe("processing");
    const { ids, handler } = recorder();
    other.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => other.start());
    expect(ids).toEqual([]);
    await host.advance(2 * LEASE_MS);
    expect(ids[0]).toBe(id);
  });

  test("[J73] events that had not begun are given back at once, as if they had not been claimed", async () => {
    const { bus, act, host, another } = setup();
    const gate = deferred();
    bus.subscribe("tick", () => gate.promise, { subscriberId: "s" });
    await act(() => bus.start());
    for (let i = 0; i < 15; i++) await act(() => bus.publish("tick", "clock", i));
    const stopping = bus.stop();
    await host.advance(0);
    const other = another();
    const { ids, handler } = recorder();
    other.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => other.start());
    expect(ids).toEqual([11, 12, 13, 14, 15]);
    expect((await other.query({ id: 15, limit: 1 }))[0]?.attempts).toBe(1);
    await act(async () => gate.resolve());
    await act(() => stopping);
  });

  test("[J73] an event whose handlers were half through is finished before the bus stops, and its emits are taken", async () => {
    const { bus, act, row } = setup();
    const gate = deferred();
    bus.subscribe("tick", () => gate.promise, { subscriberId: "a" });
    bus.subscribe("tick", (_event, context) => context.emit("tock", 1), { subscriberId: "b" });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    const stopping = bus.stop();
    await act(async () => gate.resolve());
    await act(() => stopping);
    expect((await row(id)).status).toBe("done");
    expect(await row(id + 1)).toMatchObject({ topic: "tock", status: "pending" });
  });

  test("[J73] starting twice is one loop; stopping twice is one stop; a new bus on the same store works", async () => {
    const { bus, act, another } = setup();
    const { ids, handler } = recorder();
    bus.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => Promise.all([bus.start(), bus.start()]));
    await act(() => bus.publish("tick", "clock", 1));
    expect(ids).toEqual([1]);
    await act(() => Promise.all([bus.stop(), bus.stop()]));
    const next = another();
    next.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => next.start());
    await act(() => next.publish("tick", "clock", 2));
    expect(ids).toEqual([1, 2]);
  });

  test("[J73] a bus that was stopped before it was started can be started", async () => {
    const { bus, act } = setup();
    const { ids, handler } = recorder();
    await act(() => bus.stop());
    bus.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => bus.publish("tick", "clock", 1));
    await act(() => bus.start());
    expect(ids).toEqual([1]);
    await act(() => bus.stop());
    expect(await bus.publish("tick", "clock", 2).catch((error) => error.code)).toBe("BUS_STOPPED");
  });

  test("[J73] a stopped bus leaves no timer and an idle one keeps no process alive", async () => {
    const { bus, act, host } = setup({ retention: { maxSettled: 10 } });
    bus.subscribe("tick", () => host.yield(), { subscriberId: "s" });
    await act(() => bus.start());
    await act(() => bus.publish("tick", "clock", 1));
    // The check of the last writes is put off while the bus is busy, and is work.
    await host.advance(WATCH_PAUSE_MS);
    expect(host.idle).toBe(true);
    await act(() => bus.stop());
    expect(host.pendingTimers).toBe(0);
  });

  test("[J53] an event recovered before the wiring is complete is not swallowed", async () => {
    const { bus, act } = setup();
    await act(() => bus.publish("tick", "clock", 1));
    expect(await act(() => bus.recover())).toBe(0);
    const { ids, handler } = recorder();
    bus.subscribe("tick", handler, { subscriberId: "late" });
    await act(() => bus.start());
    expect(ids).toEqual([1]);
  });
});
