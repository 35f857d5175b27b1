import { describe, expect, test } from "#test";
import type { StandardSchema } from "../../src/cells/schema.ts";
import { Space } from "../../src/cells/space.ts";
import type { ComputedError } from "../../src/scheduler/computed-error.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { rejected } from "../../src/store/rejection.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";
import { Gate } from "../store/faulty-store.ts";

/** A schema that takes numbers from 0 on. */
const amount: StandardSchema<number> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) =>
      typeof value === "number" && value >= 0 ? { value } : { issues: [{ message: "must be 0 or more", path: ["x"] }] },
  },
};

describe("cells", () => {
  test("[R20] get, set, update, key and delete work on exactly their place", async () => {
    const { space } = await setup();
    const doc = space.cell<{ a: number; b: { c: number[] } }>("doc");
    expect(doc.get()).toBeUndefined();
    doc.set({ a: 1, b: { c: [1] } });
    doc.key("a").update((value) => (value ?? 0) + 1);
    doc.key("b").key("c").push(2, 3);
    doc.key("b").key("c").splice(0, 1);
    doc.key("b").key("c").key(0).set(9);
    expect(doc.get()).toEqual({ a: 2, b: { c: [9, 3] } });
    doc.key("a").delete();
    expect(doc.get()).toEqual({ b: { c: [9, 3] } });
    doc.delete();
    expect(doc.get()).toBeUndefined();
  });

  test("[R20] a value that a cell returns is frozen; a value given to a cell is copied", async () => {
    const { space } = await setup();
    const doc = space.cell<{ list: number[] }>("doc");
    const mine = { list: [1] };
    doc.set(mine);
    mine.list.push(2);
    const before = doc.get();
    doc.key("list").push(3);
    expect(before).toEqual({ list: [1] });
    expect(doc.get()).toEqual({ list: [1, 3] });
    expect(() => (before as { list: number[] }).list.push(4)).toThrow();
  });

  test("[R20] a cell without a value reads as its default", async () => {
    const { space } = await setup();
    const count = space.cell("count", 7);
    expect(count.get()).toBe(7);
    count.update((value) => (value ?? 0) + 1);
    expect(count.get()).toBe(8);
  });

  test("[R20] a write below a default stores the default first, unless another process has stored a value", async () => {
    const { host, space, open, quiet } = await setup();
    const other = await open();
    const initial = { list: [] as number[], byName: {} as Record<string, number> };
    const doc = space.cell("doc", initial);
    doc.key("byName").key("ada").set(1);
    doc.key("list").push(5);
    expect(doc.get()).toEqual({ list: [5], byName: { ada: 1 } });
    await quiet();
    // The other process has not loaded the document, so it cannot know whether it has a value.
    const added = other.space.transact(() => other.space.cell("doc", initial).key("byName").key("bob").set(2));
    await host.advance(1_000);
    await added;
    expect(doc.get()).toEqual({ list: [5], byName: { ada: 1, bob: 2 } });
  });

  test("[R20] after a delete, a write below a default stores the default again, in plain code and in handlers", async () => {
    const { host, space, quiet } = await setup();
    const doc = space.cell<{ a?: number; z?: number }>("doc", { z: 9 });
    const anew = (value: number) => {
      doc.delete();
      doc.key("a").set(value);
    };
    doc.set({ a: 0 });
    await quiet();
    const stream = space.stream<number>("stream");
    stream.handle(anew);
    const { outcome } = stream.send(1);
    expect(await host.run(() => outcome)).toMatchObject({ kind: "handled" });
    expect(doc.get()).toEqual({ z: 9, a: 1 });
    anew(2);
    expect(doc.get()).toEqual({ z: 9, a: 2 });
    await host.run(() => space.transact(() => anew(3)));
    expect(doc.get()).toEqual({ z: 9, a: 3 });
  });

  test("[R20] a write below a missing parent, or of a bad value, throws an error with the remedy", async () => {
    const { space } = await setup();
    const doc = space.cell<{ a: { b: number } }>("doc");
    expect(() => doc.key("a").key("b").set(1)).toThrow("write its parent first");
    expect(() => space.cell<number[]>("doc").splice(0, 1)).toThrow("there is no array");
    expect(() => space.cell("doc").set(Number.NaN)).toThrow("finite number");
  });

  test("[R20] [R86] a value that is not JSON is refused with its place; undefined removes the value", async () => {
    const { space } = await setup();
    const doc = space.cell<unknown>("doc");
    const place = space.cell<{ a: unknown }>("doc").key("a");
    doc.set({ a: 1 });
    using transaction = space.begin();
    place.set(undefined);
    expect(doc.get()).toEqual({});
    doc.set({ a: 1 });
    expect(() => doc.set({ a: [() => 1] })).toThrow("cannot write doc: the value at /a/0 must be a JSON value");
    expect(() => doc.set({ at: new Date(0) })).toThrow(
      'the value at /at must be a plain object, got an instance of "Date"; keep its toISOString()',
    );
    const circle: { around?: unknown } = {};
    circle.around = circle;
    expect(() => doc.set(circle)).toThrow(/at (\/around){12}\/… is nested deeper than 64, or contains itself$/);
    expect(doc.get()).toEqual({ a: 1 });
    transaction.set(doc, undefined);
    expect([transaction.get(doc), doc.get()]).toEqual([undefined, { a: 1 }]);
  });

  test("[R21] a schema checks values written to its cell; a refused write changes no state", async () => {
    const { space } = await setup();
    const price = space.cell("price", undefined, { schema: amount });
    price.set(3);
    expect(() => price.set(-1)).toThrow("price does not take this value: /x: must be 0 or more");
    expect(price.get()).toBe(3);
    const later: StandardSchema<number> = {
      "~standard": { version: 1, vendor: "test", validate: async () => ({ value: 1 }) },
    };
    expect(() => space.cell("later", undefined, { schema: later }).set(1)).toThrow("a write cannot wait");
  });

  test("[R22] the writes of plain code in one turn are one commit with the last values", async () => {
    const { space, line, quiet } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<{ x: number }>("b")];
    for (let i = 0; i < 100; i++) a.set(i);
    b.set({ x: 1 });
    b.key("x").set(2);
    await quiet();
    expect(line.arrived).toHaveLength(1);
    expect([a.get(), b.get()]).toEqual([99, { x: 2 }]);
  });

  test("[R22] [I3] a cell written twice in a turn notifies and commits only its last value, and refuses NaN", async () => {
    const { space, open, quiet } = await setup();
    const [a, b] = [space.cell<unknown>("a"), space.cell<number>("b")];
    const seen = new Calls();
    space.effect(() => seen.note(a.get()));
    a.set(1);
    a.set(2);
    space.flush();
    // Told of already, in a turn that goes on.
    b.set(1);
    a.set(3);
    a.set(4);
    space.flush();
    expect(seen.take()).toEqual([2, 4]);
    a.set(5);
    a.set(4);
    space.flush();
    a.set(0);
    a.set(-0);
    for (const wrong of [Number.NaN, "\ud800", 1n]) expect(() => a.set(wrong)).toThrow("cannot write a");
    space.flush();
    for (const value of [{ x: 1 }, 6, { x: 2 }, "text", 7]) a.set(value);
    a.delete();
    a.set(8);
    space.flush();
    expect(seen.take()).toEqual([0, 8]);
    await quiet();
    expect(await (await open()).space.cell("a").pull()).toBe(8);
    a.address.home.replica.checkInvariants();
  });

  test("[S43] [I3] a computation that gives -0 has given 0; one that gives no number has failed", async () => {
    const { space } = await setup();
    const x = space.cell<number>("x");
    x.set(0);
    const negative = space.computed("negative", () => -(x.get() ?? 0));
    const inside = space.computed("inside", () => ({ list: [negative.get(), -(x.get() ?? 0)] }));
    const none = space.computed("none", () => (x.get() ?? 0) / 0);
    const seen = new Calls();
    space.effect(() => seen.note([negative.get(), inside.get()]));
    space.flush();
    expect(seen.take()).toEqual([[0, { list: [0, 0] }]]);
    expect(() => none.get()).toThrow("must be a finite number, got NaN");
    x.set(-0);
    space.flush();
    expect(seen.take()).toEqual([]);
  });

  test("[R22] writes in one turn that undo or extend each other reach other processes as the final values", async () => {
    const { space, open, quiet } = await setup();
    const doc = space.cell<Record<string, unknown>>("doc");
    const nested = space.cell<{ list: number[]; o: Record<string, number> }>("nested");
    doc.set({ a: 1, b: 2 });
    doc.key("a").delete();
    nested.set({ list: [1], o: { p: 1, q: 2 } });
    nested.key("list").push(2);
    nested.key("o").key("p").delete();
    nested.key("list").push(3);
    nested.key("list").key(0).set(7);
    const expected = [doc.get(), nested.get()];
    expect(expected).toEqual([{ b: 2 }, { list: [7, 2, 3], o: { q: 2 } }]);
    await quiet();
    const other = await open();
    expect([await other.space.cell("doc").pull(), await other.space.cell("nested").pull()]).toEqual(expected);
    doc.address.home.replica.checkInvariants();
  });

  test("[R22] [S73] a push reaches the store with the value pushed, even if later writes here are rolled back", async () => {
    const { space, line, open, quiet } = await setup();
    const list = space.cell<readonly { n: number }[]>("list", []);
    list.push({ n: 0 });
    await quiet();
    const slow = new Gate();
    line.plan = ({ method, request }) => {
      if (method !== "commit") return {};
      const isSecond = request?.patches.some(({ operations }) => operations.some(({ op }) => op === "set"));
      return isSecond ? { instead: rejected("permanent", "document-exists", "planted") } : { arrives: slow.opened };
    };
    list.push({ n: 1 });
    await quiet();
    list.key(1).key("n").set(2);
    await quiet();
    expect(list.get()).toEqual([{ n: 0 }, { n: 2 }]);
    slow.open();
    await quiet();
    expect(list.get()).toEqual([{ n: 0 }, { n: 1 }]);
    const there = (await open()).space.cell("list").pull();
    await quiet();
    expect(await there).toEqual([{ n: 0 }, { n: 1 }]);
  });

  test("[R22] a write that is taken back is reported", async () => {
    const { space, open, quiet, scheduler } = await setup();
    const other = await open();
    const list = space.cell<number[]>("list");
    list.set([1]);
    await quiet();
    await other.space.cell("list").pull();
    const errors = new Calls();
    scheduler.onError((error) => errors.note((error as Error).message));
    other.scheduler.onError((error) => errors.note((error as Error).message));
    list.push(2);
    other.space.cell<number[]>("list").push(3);
    await quiet();
    expect(errors.take()).toEqual([expect.stringMatching(/^a write to space "s" was rolled back/)]);
  });

  test("[R23] pull loads documents link by link, computes, and releases them", async () => {
    const { space, open, quiet } = await setup();
    const target = space.cell("target");
    target.set({ x: 20 });
    space.cell("middle").set(target.asLink());
    space.cell("start").set(space.cell("middle").asLink());
    await quiet();
    const other = await open();
    const x = other.space.cell<{ x: number }>("start").key("x");
    const double = other.space.computed("double", () => (x.get() ?? 0) * 2);
    expect(await double.pull()).toBe(40);
    expect(double.node.live).toBe(false);
    other.scheduler.checkInvariants();
  });

  test("[R91] a splice is cut to the array, in plain code, transactions and handlers", async () => {
    const { space, host, quiet } = await setup();
    const list = space.cell<number[]>("list", []);
    const splices: [number, number, number[]][] = [
      ...([
        [1, 9, [5]],
        [9, 9, [6]],
        [-1, 1, [7]],
        [-9, 1, []],
        [0, -3, [8]],
        [2, 0, []],
      ] as [number, number, number[]][]),
    ];
    const stream = space.stream<[number, number, number[]]>("splices");
    stream.handle(([index, remove, items]) => list.splice(index, remove, ...items));
    const ways = [
      (...[index, remove, items]: [number, number, number[]]) => list.splice(index, remove, ...items),
      (...[index, remove, items]: [number, number, number[]]) =>
        host.run(() => space.transact(() => list.splice(index, remove, ...items))),
      (...one: [number, number, number[]]) => void stream.send(one),
    ];
    for (const way of ways) {
      const model = [1, 2];
      list.set([1, 2]);
      for (const [index, remove, items] of splices) {
        await way(index, remove, items);
        await quiet();
        model.splice(index, remove, ...items);
        expect(list.get()).toEqual(model);
      }
    }
    expect(() => list.splice(0.5, 0)).toThrow("cannot splice");
  });

  test("[R23] pull waits for gates of its dependencies, and not for stopped nodes or cycles", async () => {
    const { space, scheduler, host } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    for (const gate of ["debounceMs", "throttleMs"] as const) {
      const gated = space.computed(`gated ${gate}`, () => a.get(), { [gate]: 1000 });
      const above = space.computed(`above ${gate}`, () => gated.get());
      const observed = gate === "debounceMs" ? gated.sink(() => undefined) : () => undefined;
      await host.run(() => above.pull());
      a.update((value = 0) => value + 1);
      await host.advance(1);
      // The error gives the remedy, and the remedy works.
      expect(() => space.begin().get(above)).toThrow("pull it first, and begin again");
      const from = host.monotonic();
      expect(await host.run(() => above.pull())).toBe(a.get());
      expect(host.monotonic() - from).toBe(999);
      scheduler.setBreakpoint(gated.node, true);
      a.update((value = 0) => value + 1);
      expect(await host.run(() => above.pull())).toBe((a.get() ?? 0) - 1);
      scheduler.setBreakpoint(gated.node, false);
      observed();
    }
    const one = space.computed<number>("one", () => (space.cell<number>("two").get() ?? 0) + 1);
    space.computed("two", () => (space.cell<number>("one").get() ?? 0) + 1);
    expect(await host.run(() => one.pull())).toBeGreaterThan(1);
  });

  test("[R23] [R48] a pull that waits for a gate ends with the space", async () => {
    const { space, host } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const gated = space.computed("gated", () => a.get(), { debounceMs: 60_000 });
    gated.sink(() => undefined);
    await host.advance(1);
    a.set(2);
    const pulled = gated.pull();
    await host.advance(1);
    await host.run(() => space.close());
    expect(await pulled).toBe(1);
  });

  test("[R23] [R19] an error of a pull that was not ready is not reported", async () => {
    const { space, host, disk } = await setup();
    space.cell("far").set({ x: 1 });
    await host.run(() => space.settled());
    const told = new Calls();
    const there = await Space.open({ store: memoryStore({ host, disk }), host, name: "s", onError: told.note });
    const far = there.cell<{ x: number }>("far");
    const x = () => (far.get() as { x: number }).x;
    expect(await host.run(() => there.scheduler.pullOnce(x))).toBe(1);
    const log = there.cell<number>("log");
    const failing = () => {
      log.set(x());
      throw new Error("never");
    };
    await expect(host.run(() => there.scheduler.pullOnce(failing))).rejects.toThrow("never");
    expect([told.take(), log.get()]).toEqual([[], undefined]);
  });

  test("[R23] pullOnce returns the result of its function, or throws its error", async () => {
    const { space, scheduler } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    expect(await scheduler.pullOnce(() => [a.get()])).toEqual([1]);
    expect(await scheduler.pullOnce(() => undefined)).toBeUndefined();
    await expect(
      scheduler.pullOnce(() => {
        throw new Error("no");
      }),
    ).rejects.toThrow("no");
    expect(scheduler.getStats().nodes).toBe(0);
  });

  test("[R24] a computation is refused the clock, chance, new ids, and being set", async () => {
    const { space, host } = await setup();
    const errors = new Calls();
    space.scheduler.onError((error) => errors.note(`${(error as ComputedError).code} ${(error as Error).message}`));
    space.computed("clock", () => space.now()).sink(() => undefined);
    space.computed("dice", () => space.random()).sink(() => undefined);
    space.computed("mint", () => space.newId()).sink(() => undefined);
    space.flush();
    expect(errors.take()).toEqual([
      expect.stringContaining("COMPUTED_IMPURE computation clock must not read the clock"),
      expect.stringContaining("COMPUTED_IMPURE computation dice must not draw a random number"),
      expect.stringContaining("COMPUTED_IMPURE computation mint must not mint an id"),
    ]);
    expect(space.now()).toBe(host.now());
    const times = new Calls();
    space.effect(() => times.note(space.now()));
    space.flush();
    expect(times.count).toBe(1);
    expect(() => space.computed("c", () => 1).set(2 as never)).toThrow("write to its inputs");
  });
});
