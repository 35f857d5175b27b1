import { describe, expect, test } from "#test";
import { Calls, setup } from "./scheduler-setup.ts";

describe("a run does not wake itself", () => {
  test("[I5] a node that reads and writes one cell runs once when the result is stable", async () => {
    const { space, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(3);
    await quiet();
    const runs = new Calls();
    space.effect(() => {
      runs.note(a.get());
      a.set(10);
    });
    await space.settled();
    await quiet();
    expect(runs.take()).toEqual([3]);
    expect(a.get()).toBe(10);
  });

  test("[I5] a node runs again after others write there, and only then", async () => {
    const { space, open, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    await quiet();
    const runs = new Calls();
    space.effect(() => {
      runs.note(a.get());
      a.set(Math.max(a.get() ?? 0, 5));
    });
    await quiet();
    a.set(2);
    await quiet();
    expect(runs.take()).toEqual([1, 2]);
    const other = await open();
    await other.space.cell("a").pull();
    other.space.cell<number>("a").set(7);
    await quiet();
    expect(runs.take()).toEqual([7]);
  });

  test("[I5] a run that writes an equal value causes no run", async () => {
    const { space, scheduler, line, quiet } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    b.set(5);
    await quiet();
    space.effect(() => {
      a.get();
      b.set(5);
    });
    b.sink(() => undefined);
    await quiet();
    const commits = line.arrived.length;
    const { runs } = scheduler.getStats();
    a.set(2);
    await quiet();
    expect(scheduler.getStats().runs - runs).toBe(1);
    expect(line.arrived.length - commits).toBe(1);
  });

  test("[I5] a sink with a change group is not called for transactions of that group", async () => {
    const { space, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(0);
    await quiet();
    const [mine, plain] = [new Calls(), new Calls()];
    a.sink(mine.note, { changeGroup: "editor" });
    a.sink(plain.note);
    await quiet();
    await space.transact(() => a.set(1), { changeGroup: "editor" });
    await quiet();
    expect(mine.take()).toEqual([0]);
    await space.transact(() => a.set(2), { changeGroup: "other" });
    a.set(3);
    await quiet();
    expect(mine.take()).toEqual([2, 3]);
    expect(plain.take()).toEqual([0, 1, 2, 3]);
  });
});
