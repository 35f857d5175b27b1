/** Parts that a user opens without naming a host. */
import { describe, expect, test } from "#test";
import { EventBus } from "../../src/bus/event-bus.ts";
import { Space } from "../../src/cells/space.ts";
import { Scheduler } from "../../src/scheduler/scheduler.ts";
import { SHARED_SCOPE } from "../../src/store/document.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { Replica } from "../../src/store/replica.ts";

describe("without a host", () => {
  test("[H21] stores, spaces and schedulers use the process's time and randomness by default", async () => {
    await using store = memoryStore();
    await using space = await Space.open({ store, name: "shop" });
    using scheduler = new Scheduler();
    await using beside = await Space.open({ store, name: "beside", scheduler });
    const price = space.cell<number>("price");
    const twice = space.computed("twice", () => 2 * (price.get() ?? 0));
    await space.transact(() => price.set(4));
    expect(await twice.pull()).toBe(8);
    expect(space.newId()).not.toBe(beside.newId());
    await using replica = await Replica.open({ store, space: "shop" });
    const ref = { scope: SHARED_SCOPE, id: "price" };
    await replica.load([ref]);
    expect(replica.peek(ref)).toBe(4);
  });

  test("[H21] a bus uses the process's time and randomness by default", async () => {
    await using store = memoryStore({});
    await using bus = new EventBus({ store });
    const { promise: heard, resolve: hear } = Promise.withResolvers<unknown>();
    bus.subscribe("order.placed", ({ payload }) => hear(payload), { subscriberId: "till" });
    await bus.start();
    await bus.publish("order.placed", "shop", { price: 4 });
    expect(await heard).toEqual({ price: 4 });
  });
});
