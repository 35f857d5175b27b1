/** Defaults: a cell without a value reads as its default, whole, in part and as a list; additions begin with it. */
import { describe, expect, test } from "#test";
import { testSpace } from "../../src/cells/test-space.ts";

interface Settings {
  readonly name?: string;
  readonly size?: { readonly width: number };
  readonly tags?: readonly string[];
}

async function setup() {
  const kit = await testSpace();
  const { space } = kit;
  const given: Settings = { size: { width: 3 }, tags: ["a"] };
  return { kit, space, given, settings: space.cell<Settings>("settings", given) };
}

describe("defaults", () => {
  test("[R20] a place below a default reads as its part of the default, in transactions too", async () => {
    const { kit, space, settings } = await setup();
    const width = settings.key("size").key("width");
    const seen: unknown[] = [];
    width.sink((value) => void seen.push(value));
    await kit.settle();
    using tx = space.begin();
    expect([width.get(), tx.get(width), settings.key("name").get()]).toEqual([3, 3, undefined]);
    settings.set({ name: "n" });
    await kit.settle();
    using later = space.begin();
    expect([width.get(), later.get(width), settings.key("name").get(), seen]).toEqual([
      undefined,
      undefined,
      "n",
      [3, undefined],
    ]);
    settings.delete();
    await kit.settle();
    expect(seen).toEqual([3, undefined, 3]);
  });

  test("[R20] [I1] an observer of a part of a default is not called when an equal value is stored", async () => {
    const { kit, space, settings } = await setup();
    const seen: unknown[] = [];
    settings.key("tags").sink((value) => void seen.push(value));
    settings
      .key("size")
      .key("width")
      .sink((value) => void seen.push(value));
    settings.sink((value) => void seen.push(value));
    await kit.settle();
    expect(seen.splice(0)).toEqual([["a"], 3, { size: { width: 3 }, tags: ["a"] }]);
    settings.key("name").set("n");
    await kit.settle();
    expect(seen.splice(0)).toEqual([{ size: { width: 3 }, tags: ["a"], name: "n" }]);
    settings.key("tags").push("b");
    await kit.settle();
    expect(seen.splice(0)).toEqual([["a", "b"], { size: { width: 3 }, tags: ["a", "b"], name: "n" }]);
    const whole = space.cell<readonly number[]>("whole", [1]);
    whole.sink((value) => void seen.push(value));
    await kit.settle();
    whole.set([1]);
    await kit.settle();
    whole.delete();
    await kit.settle();
    expect(seen).toEqual([[1]]);
  });

  test("[R20] [I1] a sink that reads, writes, waits or throws is called for each change that it may have seen", async () => {
    const { kit, space, settings } = await setup();
    const calls: Record<string, number> = {};
    const count = (name: string) => {
      calls[name] = (calls[name] ?? 0) + 1;
    };
    const other = space.cell<number>("other");
    other.set(0);
    const tags = settings.key("tags");
    tags.sink(() => {
      count("reads");
      other.get();
    });
    tags.sink(() => {
      count("writes");
      space.cell("copy").set(calls);
    });
    tags.sink(async () => count("waits"));
    tags.sink(() => {
      count("fails");
      throw new Error("no");
    });
    await kit.settle();
    settings.key("name").set("n");
    await kit.settle();
    expect(calls).toEqual({ reads: 2, writes: 2, waits: 2, fails: 2 });
    other.set(1);
    await kit.settle();
    expect(calls).toEqual({ reads: 3, writes: 2, waits: 2, fails: 2 });
  });

  test("[R20] a transaction that read a part of a default is stale after a write there", async () => {
    const { kit, space, settings } = await setup();
    using tx = space.begin();
    tx.set(space.cell("copy"), tx.get(settings.key("tags")));
    settings.set({ name: "n" });
    await kit.settle();
    expect(await kit.host.run(() => tx.commit())).toMatchObject({ kind: "rejected" });
  });

  test("[R20] a default is given out as a frozen copy, and is pure JSON", async () => {
    const { space, given, settings } = await setup();
    expect([Object.isFrozen(settings.get()), Object.isFrozen(settings.get()?.size)]).toEqual([true, true]);
    expect([Object.isFrozen(given), Object.isFrozen(given.size)]).toEqual([false, false]);
    // @ts-expect-error a Date is not JSON
    expect(() => space.cell("dated", new Date(0))).toThrow(/the default of "dated"/);
  });

  test("[R20] push, splice and update on a default begin with the default", async () => {
    const { kit, space } = await setup();
    const pushed = space.cell<readonly number[]>("pushed", [1]);
    const spliced = space.cell<readonly number[]>("spliced", [1]);
    pushed.push(2);
    spliced.splice(0, 0, 0);
    await kit.settle();
    expect([pushed.get(), spliced.get()]).toEqual([
      [1, 2],
      [0, 1],
    ]);
  });

  test("[R20] push and update on a default keep a stored value that was not loaded", async () => {
    const { kit, space } = await setup();
    space.cell<readonly number[]>("list").set([7]);
    space.cell<number>("count").set(7);
    await kit.settle();
    await kit.restart();
    const list = kit.space.cell<readonly number[]>("list", [1]);
    await kit.host.run(() => kit.space.transact(() => list.push(8)));
    kit.space.cell<number>("count", 1).update((count) => (count ?? 0) + 1);
    await kit.settle();
    expect(await kit.host.run(() => list.pull())).toEqual([7, 8]);
    expect(await kit.host.run(() => kit.space.cell("count").pull())).toBe(8);
  });

  test("[R20] [R27] a list operation begins with the default of its list", async () => {
    const { kit, space } = await setup();
    const list = space.cell<readonly number[]>("list", [1, 2]);
    const doubled = space.map("doubled", list, (element) => (element.get() ?? 0) * 2);
    expect(await kit.host.run(() => doubled.pull())).toEqual([2, 4]);
    list.push(3);
    await kit.settle();
    expect(await kit.host.run(() => doubled.pull())).toEqual([2, 4, 6]);
  });
});
