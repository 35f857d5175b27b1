/** Transactions that read another space, and values that nodes write besides computed values. */
import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { rejected } from "../../src/store/rejection.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";
import { FaultyLine, Gate } from "../store/faulty-store.ts";

/** Another space of the same scheduler, with 5 in its store. */
async function elsewhere() {
  const site = await setup();
  const { host, scheduler } = site;
  const disk = new MemoryDisk();
  const writer = await Space.open({ store: memoryStore({ host, disk }), host, name: "t" });
  writer.cell<number>("far").set(5);
  await host.run(() => writer.close());
  const line = new FaultyLine(memoryStore({ host, disk }));
  const other = await Space.open({ store: line.store, host, name: "t", scheduler, onError: () => undefined });
  const [far, out] = [other.cell<number>("far"), site.space.cell<number>("out")];
  return { ...site, other, otherLine: line, far, out };
}

describe("a transaction that reads in another space", () => {
  test("[R28] [R46] transact waits for unloaded documents of another space, whether it writes, throws or only reads", async () => {
    for (const how of ["reads", "writes", "throws"] as const) {
      const { space, host, scheduler, far, out } = await elsewhere();
      const seen = new Calls();
      out.sink(seen.note);
      const done = space.transact(() => {
        const value = far.get();
        if (how === "throws" && value === undefined) throw new Error("there is none");
        if (how === "writes") out.set(value ?? -1);
        return value;
      });
      expect([how, await host.run(() => done)]).toEqual([how, 5]);
      await host.advance(10);
      const after = how === "writes" ? 5 : undefined;
      expect([how, out.get(), seen.take()]).toEqual([how, after, after === undefined ? [after] : [undefined, after]]);
      scheduler.checkInvariants();
    }
  });

  test("[R28] transact fails after its time window if another space does not load", async () => {
    const { space, host, otherLine, far, out } = await elsewhere();
    otherLine.plan = ({ method }) => (method === "load" ? { instead: new Error("no line") } : {});
    const failed = space.transact(() => out.set(far.get() ?? -1), { windowMs: 100 });
    await expect(host.run(() => failed)).rejects.toThrow("no line");
    expect(out.get()).toBeUndefined();
  });

  test("[R28] finds computed values there up to date, observed or not", async () => {
    const { space, host, other, far, out } = await elsewhere();
    const double = other.computed("double", () => (far.get() ?? 0) * 2);
    const copied = () => host.run(() => space.transact(() => out.set(double.get() ?? -1)));
    await copied();
    expect(out.get()).toBe(10);
    far.set(6);
    await copied();
    expect(out.get()).toBe(12);
    double.sink(() => undefined);
    far.set(7);
    await copied();
    expect(out.get()).toBe(14);
  });

  test("[R28] a transaction that wrote no value, or threw, runs again if a read in another space is rolled back", async () => {
    const { space, host, other, otherLine, far } = await elsewhere();
    await host.run(() => far.pull());
    const gate = new Gate();
    otherLine.plan = ({ method }) =>
      method === "commit" ? { answered: gate.opened, instead: rejected("refused", "too-large", "no") } : {};
    const fallen = other.transact(() => far.set(0)).catch(() => "fell");
    const told = new Calls();
    const look = () => {
      if (far.get() === 0) throw new Error("sold out");
      return far.get();
    };
    void space.transact(look).then(told.note, told.note);
    void space.transact(() => far.get()).then(told.note, told.note);
    await host.advance(100);
    expect(told.take()).toEqual([]);
    gate.open();
    expect(await host.run(() => fallen)).toBe("fell");
    await host.advance(1000);
    expect(told.take()).toEqual([5, 5]);
  });
});

describe("a transaction from begin that reads in another space", () => {
  test("[R29] [R46] is stale if it read a document there before that was loaded", async () => {
    const { space, host, far, out } = await elsewhere();
    const early = space.begin();
    early.set(out, early.get(far) ?? -1);
    expect(await host.run(() => early.commit())).toMatchObject({ kind: "rejected", class: "stale" });
    await host.run(() => far.pull());
    const tx = space.begin();
    tx.set(out, tx.get(far) ?? -1);
    expect(await host.run(() => tx.commit())).toMatchObject({ kind: "committed" });
    expect(out.get()).toBe(5);
  });
});

describe("a transaction that reads side-writes of nodes", () => {
  test("[R28] [R13] finds a declared side-write up to date, and rests on it", async () => {
    const { space, host, line, quiet, scheduler, open } = await setup();
    const [a, side, out] = [space.cell<number>("a"), space.cell<number>("side"), space.cell<number>("out")];
    a.set(1);
    scheduler.register({
      kind: "computation",
      id: "writer",
      outputs: [space.cell("output").address, side.address],
      run: () => side.set((a.get() ?? 0) * 10),
    });
    expect(await host.run(() => side.pull())).toBe(10);
    a.set(2);
    expect(await host.run(() => space.transact(() => side.get()))).toBe(20);
    // It is an ordinary document: a write by another process is noticed.
    await host.run(() => space.settled());
    const there = (await open()).space;
    await host.run(() => there.cell("side").pull());
    const found = new Calls();
    const gate = new Gate();
    line.plan = ({ method }) => (method === "changesSince" ? { arrives: gate.opened } : {});
    there.cell<number>("side").set(7);
    await quiet();
    const done = space.transact(() => {
      found.note(side.get());
      out.set(side.get() ?? -1);
    });
    await quiet();
    gate.open();
    await host.run(() => done);
    expect([[...new Set(found.take())], out.get()]).toEqual([[20, 7], 7]);
  });

  test("[R28] [R14] transact finds the writes of a materializer up to date", async () => {
    const { space, host, scheduler } = await setup();
    const [a, view] = [space.cell<number>("a"), space.cell<number>("view")];
    a.set(1);
    scheduler.register({
      kind: "computation",
      id: "materializer",
      envelope: [view.address],
      run: () => view.set((a.get() ?? 0) * 10),
    });
    await host.run(() => space.settled());
    a.set(2);
    expect(await host.run(() => space.transact(() => view.get()))).toBe(20);
  });
});
