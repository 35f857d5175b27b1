/** Plain reads of values that are not loaded, in a space that refuses them and in one that does not. */
import { describe, expect, test } from "#test";
import type { SpaceOptions } from "../../src/cells/base-space.ts";
import { index } from "../../src/cells/collection.ts";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";

const NOT_READY = expect.objectContaining({ name: "NotReady", code: "NOT_READY" });

interface Task {
  readonly title: string;
  readonly done: boolean;
}

function tasksOf(space: Space) {
  return space.collection<Task, "by_done">("tasks", {
    indexes: [index("by_done", (task) => [task.done], { totals: 1 })],
  });
}

/** A second space over a store in which the first has written. */
async function second(options: Partial<SpaceOptions>) {
  const host = simulatedHost(1);
  const store = memoryStore({ host });
  const first = await Space.open({ store, host, name: "s" });
  first.cell("count", 0).set(42);
  first.cell<number[]>("list", []).set([1, 2]);
  tasksOf(first).set("a", { title: "one", done: false });
  await host.run(() => first.settled());
  const space = await Space.open({ store, host, name: "s", ...options });
  return { host, first, space, settle: () => host.run(() => space.settled()) };
}

describe("a plain read of a value that is not loaded", () => {
  test("[R102] throws NotReady with the remedy in a space that refuses it, and starts the load", async () => {
    const { space, settle } = await second({ unloaded: "refused" });
    const count = space.cell("count", 0);
    expect(() => count.get()).toThrow("count is not here yet: await cell.pull(), or read it in a query");
    expect(() => count.get()).toThrow(NOT_READY);
    await settle();
    expect(count.get()).toBe(42);
  });

  test("[R102] covers parts, keys, lengths and elements of collections", async () => {
    const { space } = await second({ unloaded: "refused" });
    const list = space.cell<number[]>("list", []);
    const tasks = tasksOf(space);
    for (const read of [
      () => list.length,
      () => list.keys(),
      () => list.getRaw(),
      () => list.key(0).get(),
      () => tasks.at("a").get(),
      () => tasks.get("a"),
      () => tasks.has("a"),
      () => tasks.ids(),
      () => tasks.page({ index: "by_done" }),
      () => tasks.count(),
    ])
      expect(read).toThrow(NOT_READY);
  });

  test("[R102] gives the default for a document that is known not to exist", async () => {
    const { host, space } = await second({ unloaded: "refused" });
    const other = space.cell("other", 7);
    expect(await host.run(() => other.pull())).toBe(7);
    expect(other.get()).toBe(7);
    expect(await host.run(() => tasksOf(space).pull((tasks) => tasks.has("b")))).toBe(false);
  });

  test("[R102] a plain read throws NotReady for a computed value with an input that is not loaded", async () => {
    const { space, settle } = await second({ unloaded: "refused" });
    const count = space.cell("count", 0);
    const double = space.computed("double", () => count.get() * 2);
    expect(() => double.get()).toThrow(NOT_READY);
    await settle();
    expect(double.get()).toBe(84);
  });

  test("[R102] a plain read throws NotReady during the first run of an asynchronous computed value", async () => {
    const { host, space } = await second({ unloaded: "refused" });
    const slow = space.computed("slow", async () => "here");
    expect(() => slow.get()).toThrow(NOT_READY);
    expect(await host.run(() => slow.pull())).toBe("here");
  });

  test("[R103] peek gives the default, and pull waits for the value", async () => {
    const { host, space } = await second({ unloaded: "refused" });
    const count = space.cell("count", 0);
    expect([count.peek(), count.isLoaded]).toEqual([0, false]);
    expect(await host.run(() => count.pull())).toBe(42);
    expect([count.peek(), count.isLoaded]).toEqual([42, true]);
  });

  test("[R103] computed values, effects and transactions read the stored value and never see NotReady", async () => {
    const { host, space, settle } = await second({ unloaded: "refused" });
    const count = space.cell("count", 0);
    const seen: number[] = [];
    space.effect(() => void seen.push(count.get()));
    await host.run(() => space.transact((tx) => tx.set(count, count.get() + 1)));
    space.cell<number[]>("list", []).push(3);
    await settle();
    expect(seen.at(-1)).toBe(43);
    expect(seen).not.toContain(0);
    expect(await host.run(() => space.cell<number[]>("list").pull())).toEqual([1, 2, 3]);
  });

  test("[R104] gives the default in a bare space, where isLoaded tells; a page of a collection throws NotReady", async () => {
    const { space } = await second({});
    const count = space.cell("count", 0);
    expect([count.get(), count.isLoaded]).toEqual([0, false]);
    expect(() => tasksOf(space).page()).toThrow(NOT_READY);
  });
});

describe("cell.subscribe", () => {
  test("[R105] calls back with the value and its changes until it is cancelled", async () => {
    const { space, settle } = await second({});
    const count = space.cell("count", 0);
    const seen: number[] = [];
    const stop = count.subscribe((value) => seen.push(value));
    await settle();
    count.set(43);
    await settle();
    stop();
    count.set(44);
    await settle();
    expect(seen).toEqual([42, 43]);
  });

  test("[R105] tells only confirmed values in a space that observes confirmed state", async () => {
    const { host, space, settle } = await second({ observe: "confirmed" });
    const count = space.cell("count", 0);
    await host.run(() => count.pull());
    const seen: number[] = [];
    count.subscribe((value) => seen.push(value));
    await settle();
    count.set(43);
    space.scheduler.flush();
    expect(seen).toEqual([42]);
    await settle();
    expect(seen).toEqual([42, 43]);
  });
});
