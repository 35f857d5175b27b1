/** Handlers that were left behind, and publishers that gave up, publish no event. */
import { describe, expect, test } from "#test";
import { deferred, recorder, setup } from "./bus-setup.ts";

/** A handler that emits when it is released, and the outcome. */
async function emitsLate(timeoutMs: number) {
  const made = setup();
  const { bus, act } = made;
  const gate = deferred();
  const { ids, handler } = recorder();
  const came: unknown[] = [];
  const late = async (_event: unknown, context: { emit(topic: string, payload: unknown): Promise<number> }) => {
    await gate.promise;
    // No code waits for this one.
    void context.emit("late", 1);
    await context.emit("late", 2).then(
      (id) => came.push(id),
      (error: unknown) => came.push((error as { code?: unknown }).code),
    );
  };
  bus.subscribe("tick", late, { subscriberId: "s", timeoutMs });
  bus.subscribe("late", handler, { subscriberId: "l" });
  await act(() => bus.start());
  await act(() => bus.publish("tick", "clock", 1));
  return { ...made, came, ids, goOn: () => act(async () => gate.resolve()) };
}

describe("handlers that were left behind", () => {
  test("[J63] a plain handler that has timed out emits no event any more, and gets an error", async () => {
    const { host, store, came, ids, goOn } = await emitsLate(50);
    await host.advance(50);
    await goOn();
    await host.advance(1_000);
    expect(came).toEqual(["BUS_HANDLER_OVER"]);
    expect(ids).toEqual([]);
    expect(await store.count()).toMatchObject({ pending: 0, done: 0, failed: 1 });
  });

  test("[J63] a handler that the bus left behind when it stopped emits no event", async () => {
    const { bus, host, store, came, goOn } = await emitsLate(60_000);
    await host.run(() => bus.stop({ graceMs: 10 }));
    await goOn();
    expect(came).toEqual(["BUS_HANDLER_OVER"]);
    expect(await store.count()).toMatchObject({ pending: 0, processing: 1, done: 0 });
  });

  test("[J63] a handler that the bus waits for emits its events", async () => {
    const { host, came, ids, goOn } = await emitsLate(60_000);
    await goOn();
    await host.advance(1_000);
    expect([came, ids]).toEqual([[3], [2, 3]]);
  });

  test("[J47] a signal that is aborted in the turn of the publish keeps its event from being sent, and no other", async () => {
    const { bus, act, store } = setup();
    const changed = new AbortController();
    const { signal } = new AbortController();
    const publishing = act(() =>
      Promise.allSettled([
        bus.publish("tick", "clock", 1, { signal }),
        bus.publish("tick", "clock", 2, { signal: changed.signal }),
        bus.publish("tick", "clock", 3),
      ]),
    );
    changed.abort(new Error("never mind"));
    expect(await publishing).toEqual([
      { status: "fulfilled", value: 1 },
      { status: "rejected", reason: new Error("never mind") },
      { status: "fulfilled", value: 2 },
    ]);
    expect((await store.query({ limit: 9 })).map(({ message }) => message?.data)).toEqual([1, 3]);
  });

  test("[J47] a publish that is aborted alone in its turn sends no call to the store", async () => {
    const { bus, act, store } = setup();
    const changed = new AbortController();
    const publishing = act(() => Promise.allSettled([bus.publish("tick", "clock", 1, { signal: changed.signal })]));
    changed.abort("never mind");
    expect(await publishing).toEqual([{ status: "rejected", reason: "never mind" }]);
    expect((await store.count()).pending).toBe(0);
  });
});
