/**
 * A transactional handler that is run again begins like any other: within the bounds, and only while this process holds
 * the event.
 */
import { describe, expect, test } from "#test";
import type { Event } from "../../src/bus/event.ts";
import { Space } from "../../src/cells/space.ts";
import { LEASE_MS, WORK_WINDOW_MS } from "../../src/limits.ts";
import { SHARED_SCOPE } from "../../src/store/document.ts";
import type { Tx } from "../../src/work/tx.ts";
import { deferred, recorder, setup, withFaults } from "./bus-setup.ts";

const document = (id: string) => ({ scope: SHARED_SCOPE, id });

/** A space that has not loaded `a`, `b` and `c`, with loads that wait for a gate. */
async function unloaded(options: Parameters<typeof setup>[0] = {}) {
  const all = setup(options);
  const { host, store: inner } = all;
  const writer = await all.replica();
  for (const id of ["a", "b", "c"]) {
    const transaction = writer.transaction();
    transaction.write(document(id), [], 1);
    await host.run(() => transaction.commit().outcome);
  }
  const gate = deferred();
  const store = withFaults(inner, {
    load: async (space, refs) => {
      if (refs.some(({ id }) => id.length === 1)) await gate.promise;
      return inner.load(space, refs);
    },
  });
  const space = await host.run(() => Space.open({ store, host, name: "home" }));
  const read = (tx: Tx, id: string) => void tx.get(space.cell(id));
  return { ...all, space, read, load: () => all.act(async () => gate.resolve()) };
}

describe("transactional handlers that are run again", () => {
  for (const bound of ["bus", "subscription"] as const) {
    test(`[J51] [J68] [J58] keep to the bound of the ${bound}`, async () => {
      const { bus, act, host, store, space, read, load } = await unloaded(bound === "bus" ? { concurrency: 1 } : {});
      let [now, most] = [0, 0];
      bus.subscribe(
        "tick",
        async ({ payload }, tx) => {
          most = Math.max(most, ++now);
          read(tx, String(payload));
          await new Promise<void>((resolve) => host.timer(100, resolve));
          now--;
        },
        { subscriberId: "s", space, ...(bound === "bus" ? {} : { concurrency: 1 }) },
      );
      await act(() => bus.start());
      const publications = ["a", "b", "c"].map((payload) => ({ topic: "tick", source: "clock", payload }));
      await act(() => bus.publishMany(publications));
      await host.advance(1_000);
      await load();
      await host.advance(1_000);
      expect((await store.count()).done).toBe(3);
      expect(most).toBe(1);
    });
  }

  test("[J58] do not have the time counted that they wait for a slot", async () => {
    const { bus, act, host, row, space, read, load } = await unloaded({ concurrency: 1 });
    let runs = 0;
    bus.subscribe("tick", (_event, tx) => read(tx, runs++ === 0 ? "a" : "b"), {
      subscriberId: "s",
      space,
    });
    bus.subscribe("slow", () => new Promise<void>((resolve) => host.timer(2 * WORK_WINDOW_MS, resolve)), {
      subscriberId: "s",
    });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    await act(() => bus.publish("slow", "clock", 1));
    await load();
    await host.advance(3 * WORK_WINDOW_MS);
    expect(runs).toBe(3);
    expect((await row(id)).status).toBe("done");
  });

  test("[J73] are not once the bus has stopped without them", async () => {
    const { bus, act, host, row, space, read, load } = await unloaded();
    const calls: string[] = [];
    const reads = (_event: unknown, tx: Tx) => {
      calls.push("called");
      read(tx, "a");
    };
    bus.subscribe("tick", reads, { subscriberId: "s", space });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    await act(() => bus.stop({ graceMs: 1_000 }));
    calls.push("stopped");
    await load();
    await host.advance(1_000);
    expect(calls).toEqual(["called", "stopped"]);
    expect((await row(id)).status).toBe("processing");
  });

  test("[J73] are while it waits for them, and settled", async () => {
    const { bus, act, row, space, read, load } = await unloaded();
    bus.subscribe("tick", (_event, tx) => read(tx, "a"), { subscriberId: "s", space });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    const stopping = bus.stop();
    await load();
    await act(() => stopping);
    expect((await row(id)).status).toBe("done");
  });

  test("[J71] are not when another process has taken the event over", async () => {
    const { bus, act, host, row, store, another, space, read, load } = await unloaded();
    let calls = 0;
    const { ids, handler } = recorder();
    const reads = (_event: unknown, tx: Tx) => {
      calls++;
      read(tx, "a");
    };
    bus.subscribe("tick", reads, { subscriberId: "s", space });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    // As the other does when this process was away for too long.
    await act(async () => store.closeLease((await row(id)).lease!));
    const other = another();
    other.subscribe("tick", handler, { subscriberId: "s" });
    await act(() => other.start());
    await host.advance(LEASE_MS);
    expect([calls, ids]).toEqual([1, [id]]);
    await load();
    await host.advance(1_000);
    expect([calls, ids]).toEqual([1, [id]]);
  });

  test("[J64] let an earlier event of their key go first that was requeued meanwhile", async () => {
    const { bus, act, host, store, space, read, load } = await unloaded();
    const order: unknown[] = [];
    let fails = true;
    const reads = ({ id, payload }: Event, tx: Tx) => {
      if (payload === "first" && fails) throw new Error("not yet");
      read(tx, payload === "first" ? "b" : "a");
      order.push(id);
    };
    bus.subscribe("tick", reads, { subscriberId: "s", space, serialBy: () => "k" });
    await act(() => bus.start());
    const first = await act(() => bus.publish("tick", "clock", "first"));
    const second = await act(() => bus.publish("tick", "clock", "second"));
    fails = false;
    await act(() => bus.requeue(first));
    await load();
    await host.advance(1_000);
    expect(await store.count()).toMatchObject({ done: 2, failed: 0 });
    expect(order.at(-1)).toBe(second);
    expect(order).toContain(first);
  });
});
