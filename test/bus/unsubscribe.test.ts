/** Subscribers that leave, and return, while events are held or wait for their next attempt. */
import { describe, expect, test } from "#test";
import type { EventBus } from "../../src/bus/event-bus.ts";
import { SETTLE_PAUSE_MS } from "../../src/limits.ts";
import { deferred, recorder, setup } from "./bus-setup.ts";

const RETRY = { attempts: 3, backoff: { startMs: 1_000 } };
const publications = (count: number) => Array.from({ length: count }, (_, n) => ({ ...TICK, payload: n }));
const TICK = { topic: "tick", source: "clock" };

function fails(): never {
  throw new Error("boom");
}

/** Event 1 has failed at `s`, which is gone when its next try is due. */
async function goneWithARetryDue(others: (bus: EventBus) => void) {
  const made = setup();
  const { bus, act, host, row } = made;
  bus.subscribe("tick", fails, { subscriberId: "s", retry: RETRY });
  others(bus);
  await act(() => bus.start());
  const id = await act(() => bus.publish("tick", "clock", 1));
  expect((await row(id)).status).toBe("pending");
  bus.unsubscribe("tick", "s");
  return { ...made, id, later: () => host.advance(60_000) };
}

describe("unsubscribing", () => {
  test("[J97] an event whose subscriber has failed and is gone has failed with its error, and can be requeued", async () => {
    const { bus, act, row, observed, id, later } = await goneWithARetryDue(() => {});
    await later();
    expect(await row(id)).toMatchObject({ status: "failed", error: "s: boom" });
    expect((await row(id)).deliveries).toMatchObject([{ subscriber: "s", status: "failed", attempts: 1 }]);
    expect(observed.map(({ kind }) => kind)).not.toContain("no-subscriber");
    const { ids, handler } = recorder();
    bus.subscribe("tick", handler, { subscriberId: "s" });
    expect(await act(() => bus.requeue(id))).toEqual([id]);
    expect([ids, (await row(id)).status]).toEqual([[id], "done"]);
  });

  test("[J97] an event whose subscriber has failed and is gone has failed, also if others succeeded or fail", async () => {
    for (const [other, error] of [
      [() => undefined, "s: boom"],
      [fails, "other: boom\ns: boom"],
    ] as const) {
      const { row, id, later } = await goneWithARetryDue((bus) =>
        bus.subscribe("tick", other, { subscriberId: "other" }),
      );
      await later();
      expect(await row(id)).toMatchObject({ status: "failed", error });
    }
  });

  test("[J97] a final failure is not forgotten if its subscriber is gone when the others are through", async () => {
    const { bus, act, host, row } = setup();
    bus.subscribe("tick", fails, { subscriberId: "s" });
    const second = (_event: unknown, { attempt }: { attempt: number }) => void (attempt === 1 && fails());
    bus.subscribe("tick", second, { subscriberId: "other", retry: RETRY });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    bus.unsubscribe("tick", "s");
    await host.advance(60_000);
    expect(await row(id)).toMatchObject({ status: "failed", error: "s: boom" });
  });

  test("[J97] a subscriber that left before its call has not failed", async () => {
    const { bus, act, row } = setup();
    const inside = deferred();
    bus.subscribe("tick", fails, { subscriberId: "s" });
    bus.subscribe("tick", () => inside.promise, { subscriberId: "busy", concurrency: 1 });
    await act(() => bus.start());
    await act(() => bus.publishMany(publications(2)));
    bus.unsubscribe("tick", "busy");
    await act(async () => inside.resolve());
    expect(await row(2)).toMatchObject({ status: "failed", error: "s: boom" });
  });

  test("[J97] a subscriber that returns under the same name gets the due attempt", async () => {
    const { bus, row, id, later } = await goneWithARetryDue(() => {});
    const attempts: number[] = [];
    bus.subscribe("tick", (_event, { attempt }) => void attempts.push(attempt), { subscriberId: "s", retry: RETRY });
    await later();
    expect([attempts, (await row(id)).status]).toEqual([[2], "done"]);
  });

  for (const waiting of ["for a slot of the bus", "in line", "for its serial key"]) {
    test(`[J43] an event that waits ${waiting} goes to the subscription that has taken the place of its own`, async () => {
      const { bus, act, host, row } = setup(waiting === "for a slot of the bus" ? { concurrency: 1 } : {});
      const options = {
        subscriberId: "s",
        ...(waiting === "in line" ? { concurrency: 1 } : {}),
        ...(waiting === "for its serial key" ? { serialBy: () => "k" } : {}),
      };
      const first = deferred();
      const seen: string[] = [];
      const handler = (name: string) => async (event: { id: number }) => {
        seen.push(`${name}${event.id}`);
        if (event.id === 1) await first.promise;
      };
      bus.subscribe("tick", handler("old"), options);
      await act(() => bus.start());
      await act(() => bus.publishMany(publications(3)));
      bus.unsubscribe("tick", "s");
      bus.subscribe("tick", handler("new"), options);
      await act(async () => first.resolve());
      await host.advance(100);
      expect(seen).toEqual(["old1", "new2", "new3"]);
      for (const id of [1, 2, 3]) expect((await row(id)).status).toBe("done");
    });
  }

  test("[J43] an event that other subscribers hold meanwhile reaches a late one too, and none of them gets it twice", async () => {
    const { bus, act, row, openSpace } = setup();
    const first = deferred();
    const seen: string[] = [];
    const note = (name: string) => (event: { id: number }) => void seen.push(`${name}${event.id}`);
    bus.subscribe("tick", fails, { subscriberId: "failing" });
    bus.subscribe("tick", (event) => first.promise.then(() => note("slow")(event)), { subscriberId: "slow" });
    const space = await openSpace();
    bus.subscribe("tick", (event, tx) => tx.set(space.cell("written"), event.id), { subscriberId: "books", space });
    bus.subscribe("tick", note("old"), { subscriberId: "s" });
    await act(() => bus.start());
    await act(() => bus.publish("tick", "clock", 1));
    bus.unsubscribe("tick", "s");
    bus.subscribe("tick", note("new"), { subscriberId: "s" });
    await act(async () => first.resolve());
    await act(() => bus.idle());
    expect(seen).toEqual(["slow1", "new1"]);
    const { status, error, deliveries } = await row(1);
    expect([status, error]).toEqual(["failed", "failing: boom"]);
    expect(deliveries.map((one) => [one.subscriber, one.status, one.attempts]).toSorted()).toEqual([
      ["books", "done", 1],
      ["failing", "failed", 1],
      ["s", "done", 1],
      ["slow", "done", 1],
    ]);
  });

  test("[J53] a held event without subscribers is done with the note, and observed", async () => {
    const { bus, act, row, observed } = setup({ concurrency: 1 });
    const first = deferred();
    bus.subscribe("tick", () => first.promise, { subscriberId: "s" });
    await act(() => bus.start());
    await act(() => bus.publishMany(publications(2)));
    bus.unsubscribe("tick", "s");
    await act(async () => first.resolve());
    await act(() => bus.idle());
    expect(await row(1)).toMatchObject({ status: "done" });
    expect((await row(1)).error).toBeUndefined();
    expect(await row(2)).toMatchObject({ status: "done", outcome: "unheard", reason: "no subscriber" });
    expect(observed).toEqual([{ kind: "no-subscriber", event: 2, topic: "tick" }]);
  });

  test("[J53] an event that was handled before its subscriber left is done, without an observation", async () => {
    const { bus, act, row, observed } = setup();
    const last = deferred();
    bus.subscribe("tick", () => last.promise, { subscriberId: "a" });
    bus.subscribe("tick", () => {}, { subscriberId: "b" });
    await act(() => bus.start());
    const id = await act(() => bus.publish("tick", "clock", 1));
    bus.unsubscribe("tick", "a");
    bus.unsubscribe("tick", "b");
    await act(async () => last.resolve());
    await act(() => bus.idle());
    expect((await row(id)).status).toBe("done");
    expect([(await row(id)).error, observed]).toEqual([undefined, []]);
  });

  test("[J83] idle waits for events that have gone back to the journal because their subscriber is gone", async () => {
    const { bus, act, host, store } = setup({ concurrency: 1 });
    const first = deferred();
    bus.subscribe("tick", () => first.promise, { subscriberId: "s" });
    await act(() => bus.start());
    await act(() => bus.publishMany(publications(3)));
    bus.unsubscribe("tick", "s");
    first.resolve();
    await host.run(() => bus.idle());
    expect(await store.count()).toMatchObject({ pending: 0, processing: 0, done: 3 });
  });

  test("[J65] a subscriber that left delays no other, at its key or in its line", async () => {
    for (const options of [{ serialBy: () => "k" }, { concurrency: 1 }]) {
      const { bus, act, host, row } = setup();
      const { ids, handler } = recorder();
      bus.subscribe("tick", () => new Promise(() => {}), { subscriberId: "s", ...options });
      bus.subscribe("tick", handler, { subscriberId: "other" });
      await act(() => bus.start());
      for (let n = 0; n < 2; n++) await act(() => bus.publish("tick", "clock", n));
      await act(async () => bus.unsubscribe("tick", "s"));
      expect(ids).toEqual([2]);
      await host.advance(SETTLE_PAUSE_MS);
      expect((await row(2)).status).toBe("done");
    }
  });
});
