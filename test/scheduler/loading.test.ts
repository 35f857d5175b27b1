/** Observers and documents that are not loaded: callbacks wait until all their inputs are known. */
import { describe, expect, test } from "#test";
import { Gate } from "../store/faulty-store.ts";
import { Calls, openSite, setup } from "./scheduler-setup.ts";

/** A second process without loaded documents, with loads that the test can delay. */
async function secondProcess(stored: Record<string, unknown>) {
  const { host, disk, space: first } = await setup();
  for (const [id, value] of Object.entries(stored)) first.cell<unknown>(id).set(value);
  await host.advance(0);
  const { space, scheduler, line } = await openSite(host, disk);
  const gate = new Gate();
  line.plan = ({ method }) => (method === "load" ? { answered: gate.opened } : {});
  return { host, space, scheduler, line, gate, quiet: () => host.advance(0) };
}

describe("observers of documents that are not loaded", () => {
  test("[R55] a sink of a cell with a default is first called with the stored value", async () => {
    const { space, gate, quiet, scheduler } = await secondProcess({ stock: 42 });
    const seen = new Calls();
    space.cell<number>("stock", 10).sink(seen.note);
    await quiet();
    expect(seen.seen).toEqual([]);
    expect(scheduler.whyNot("sink of stock")).toMatchObject({ kind: "loading" });
    scheduler.checkInvariants();
    gate.open();
    await quiet();
    expect(seen.seen).toEqual([42]);
  });

  test("[R55] a document that does not exist calls the sink once that is known", async () => {
    const { space, gate, quiet } = await secondProcess({});
    const seen = new Calls();
    space.cell<number>("stock", 10).sink(seen.note);
    space.cell<number>("other").sink(seen.note);
    await quiet();
    expect(seen.seen).toEqual([]);
    gate.open();
    await quiet();
    expect(seen.seen).toEqual([10, undefined]);
  });

  test("[R55] computed values over computed values wait, and none shows a value of absent inputs", async () => {
    const { space, gate, quiet, scheduler } = await secondProcess({ a: 1, b: 2 });
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b"), space.cell<number>("none")];
    const sum = space.computed("sum", () => (a.get() ?? 0) + (b.get() ?? 0));
    const isNone = space.computed("isNone", () => space.cell("none").get() === undefined);
    const text = space.computed("text", () => `${sum.get()} ${isNone.get()}`);
    const seen = new Calls();
    text.sink(seen.note);
    await quiet();
    expect([seen.seen, text.isLoaded]).toEqual([[], false]);
    scheduler.checkInvariants();
    gate.open();
    await quiet();
    expect([seen.seen, text.isLoaded]).toEqual([["3 true"], true]);
    scheduler.checkInvariants();
  });

  test("[R55] an effect that reads before it acts does not act before the document is loaded", async () => {
    const { space, gate, quiet } = await secondProcess({ a: 1 });
    const [a, out] = [space.cell<number>("a", 7), new Calls()];
    space.effect(() => {
      const value = a.get();
      out.note(value);
    });
    await quiet();
    expect(out.count).toBe(0);
    gate.open();
    await quiet();
    expect(out.seen).toEqual([1]);
  });

  test("[R55] a computed value that turns to an unloaded document keeps its value until that is loaded", async () => {
    const { space, gate, quiet, scheduler } = await secondProcess({ far: 5 });
    const isFar = space.cell<boolean>("isFar");
    isFar.set(false);
    const chosen = space.computed("chosen", () => (isFar.get() ? space.cell<number>("far").get() : 1));
    const seen = new Calls();
    chosen.sink(seen.note);
    await quiet();
    isFar.set(true);
    await quiet();
    expect([seen.seen, chosen.get()]).toEqual([[1], 1]);
    scheduler.checkInvariants();
    gate.open();
    await quiet();
    expect(seen.seen).toEqual([1, 5]);
  });

  test("[R55] a transaction that reads a computed value over unloaded documents waits for them", async () => {
    const { host, space, gate, quiet } = await secondProcess({ a: 4 });
    const a = space.cell<number>("a");
    const double = space.computed("double", () => (a.get() ?? 0) * 2);
    const out = space.cell<number>("out");
    const done = space.transact(() => out.set(double.get() ?? -1));
    await quiet();
    expect(out.get()).toBe(undefined);
    gate.open();
    await host.run(() => done);
    expect(out.get()).toBe(8);
  });

  test("[R56] a sink with `whileLoading` is called with the default, and again when the document is known", async () => {
    const { space, gate, quiet } = await secondProcess({ a: 1 });
    const seen = new Calls<unknown>();
    for (const id of ["a", "none"]) {
      const cell = space.cell<number>(id, 7);
      cell.sink((value, { loaded }) => seen.note([id, value, loaded]), { whileLoading: true });
    }
    await quiet();
    expect(seen.take()).toEqual([
      ["a", 7, false],
      ["none", 7, false],
    ]);
    gate.open();
    await quiet();
    expect(seen.take()).toEqual([
      ["a", 1, true],
      ["none", 7, true],
    ]);
  });

  test("[R57] a pull rejects with the reason why a document cannot be loaded", async () => {
    const { host, space, line } = await secondProcess({ a: 1 });
    const broken = new Error("damaged");
    line.plan = ({ method }) => (method === "load" ? { instead: broken } : {});
    const double = space.computed("double", () => (space.cell<number>("a").get() ?? 0) * 2);
    await expect(host.run(() => double.pull())).rejects.toThrow("damaged");
  });
});
