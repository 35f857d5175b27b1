import { describe, expect, test } from "#test";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";

describe("the shape of a cell's value", () => {
  test("[R63] keys and length run a reader only when a key or an element comes or goes", async () => {
    const { space, quiet } = await setup();
    const users = space.cell<Record<string, number>>("users");
    const list = space.cell<number[]>("list");
    users.set({ ada: 1 });
    list.set([1, 2]);
    const seen = new Calls<unknown>();
    space.effect(() => seen.note(users.keys()));
    space.effect(() => seen.note(list.length));
    await quiet();
    expect(seen.take()).toEqual([["ada"], 2]);
    users.key("ada").set(2);
    list.key(0).set(9);
    await quiet();
    expect(seen.take()).toEqual([]);
    users.key("bob").set(1);
    list.push(3);
    await quiet();
    expect(seen.take()).toEqual([["ada", "bob"], 3]);
  });

  test("[R63] keys and length follow links, and a default stands in", async () => {
    const { space, quiet } = await setup();
    const list = space.cell<number[]>("list");
    list.set([1, 2, 3]);
    space.cell<unknown>("link").set(list.asLink());
    const settings = space.cell<{ a: number }>("settings", { a: 1 });
    await quiet();
    expect(space.cell<number[]>("link").length).toBe(3);
    expect([settings.keys(), settings.length, list.keys()]).toEqual([["a"], 0, []]);
  });
});
