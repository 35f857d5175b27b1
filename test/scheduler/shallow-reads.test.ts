/** Shallow reads without an immediate notice: by dormant nodes, and of others' changes below unindexed places. */
import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import { Calls, setup } from "./scheduler-setup.ts";

async function sleeper(before: object) {
  const { space, scheduler, quiet } = await setup();
  const doc = space.cell<Record<string, unknown>>("doc");
  doc.set({ a: before });
  const a = doc.address.at(["a"]);
  const runs = new Calls();
  const keys = space.computed("keys", () => {
    runs.note(1);
    return Object.keys((scheduler.parts.runner.read(a, true) ?? {}) as object).toSorted();
  });
  const look = async () => {
    const seen = new Calls<unknown>();
    const stop = keys.sink(seen.note);
    await quiet();
    stop();
    scheduler.checkInvariants();
    return [runs.take().length, seen.seen.at(-1)];
  };
  expect(await look()).toEqual([1, Object.keys(before)]);
  const below = doc.key("a") as Cell<Record<string, unknown>>;
  return { cell: (key: string) => below.key(key), look, quiet };
}

describe("a shallow read", () => {
  test("[I2] [I3] a shallow read of a dormant node ignores a deeper change when demand returns", async () => {
    const { cell, look, quiet } = await sleeper({ b: { c: 1 } });
    cell("b").set({ c: 2 });
    await quiet();
    expect(await look()).toEqual([0, ["b"]]);
  });

  test("[I1] [I2] a shallow read of a dormant node finds an added or removed key when demand returns", async () => {
    const { cell, look, quiet } = await sleeper({ b: 1 });
    cell("d").set(1);
    await quiet();
    expect(await look()).toEqual([1, ["b", "d"]]);
    cell("b").delete();
    await quiet();
    expect(await look()).toEqual([1, ["d"]]);
  });

  test("[I3] a shallow read is not woken by a key that another process adds further down, and is by one right below it", async () => {
    const { space, scheduler, quiet, open } = await setup();
    const doc = space.cell<unknown>("doc");
    doc.set({ a: { b: { c: {} } } });
    await quiet();
    const other = await open();
    const theirs = other.space.cell<{ a: { b: Record<string, unknown>; e?: number } }>("doc");
    await theirs.pull();
    const runs = new Calls();
    const a = doc.address.at(["a"]);
    space.effect(() => runs.note(Object.keys(scheduler.parts.runner.read(a, true) as object)));
    await quiet();
    expect(runs.take()).toEqual([["b"]]);
    theirs.key("a").key("b").key("d").set(1);
    await quiet();
    expect(runs.take()).toEqual([]);
    theirs.key("a").key("e").set(1);
    await quiet();
    expect(runs.take()).toEqual([["b", "e"]]);
  });
});
