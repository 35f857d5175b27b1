import { describe, expect, test } from "#test";
import type { Json } from "../../src/message/json.ts";
import { causesIn } from "../../src/scheduler/causes.ts";
import type { NodeAddress } from "../../src/scheduler/node.ts";
import { Calls, setup } from "./scheduler-setup.ts";

/** A node that reads exactly these places, and how often it ran after its first run. */
async function reader(before: Json | undefined, reads: readonly { path: string[]; shallow?: boolean }[]) {
  const { space, scheduler, quiet } = await setup();
  const doc = space.cell<unknown>("doc");
  if (before !== undefined) doc.set(before);
  await quiet();
  const places = reads.map(({ path, shallow = false }) => ({ address: doc.address.at(path) as NodeAddress, shallow }));
  const node = scheduler.register({
    kind: "effect",
    id: "reader",
    run: (run) => {
      for (const { address, shallow } of places) run.read(address, shallow);
    },
  });
  space.flush();
  const runsAfter = (write: () => void) => {
    const runs = node.runs;
    write();
    space.flush();
    scheduler.checkInvariants();
    return node.runs - runs;
  };
  return { space, scheduler, doc, node, runsAfter };
}

describe("only a changed value makes a node run again", () => {
  test("[I3] a computation with an unchanged result wakes no reader", async () => {
    const { space } = await setup();
    const input = space.cell<number>("in");
    input.set(10);
    const runs = new Calls();
    const tens = space.computed("tens", () => {
      runs.note(1);
      return Math.floor((input.get() ?? 0) / 10);
    });
    const seen = new Calls();
    tens.sink(seen.note);
    await space.idle();
    for (const value of [11, 12, 13]) {
      input.set(value);
      await space.idle();
    }
    expect(runs.count).toBe(4);
    expect(seen.take()).toEqual([1]);
  });

  test("[I3] a gated writer upstream that is invalid leaves a clean effect clean", async () => {
    const { space, scheduler, host } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const c = space.computed("c", () => a.get(), { debounceMs: 100 });
    const seen = new Calls();
    c.sink(seen.note);
    await space.idle();
    a.set(2);
    await space.idle();
    expect(c.node.status).toBe("invalid");
    expect(seen.take()).toEqual([1]);
    scheduler.checkInvariants();
    await host.advance(100);
    expect(seen.take()).toEqual([2]);
  });

  test("[I3] a deep read sees a change below; a shallow one only keys that come and go", async () => {
    const deep = await reader({ a: { b: { c: 1 } } }, [{ path: ["a"] }]);
    expect(deep.runsAfter(() => deep.doc.set({ a: { b: { c: 2 } } }))).toBe(1);
    const shallow = await reader({ a: { b: { c: 1 } } }, [{ path: ["a"], shallow: true }]);
    expect(shallow.runsAfter(() => shallow.doc.set({ a: { b: { c: 2 } } }))).toBe(0);
    expect(shallow.runsAfter(() => shallow.doc.set({ a: { b: { c: 2 }, n: 1 } }))).toBe(1);
    expect(shallow.runsAfter(() => shallow.doc.set({ a: { n: 1 } }))).toBe(1);
    expect(shallow.runsAfter(() => shallow.doc.set({ a: [1] }))).toBe(1);
    expect(shallow.runsAfter(() => shallow.doc.set({ a: 5 }))).toBe(1);
    expect(shallow.runsAfter(() => shallow.doc.set({ a: 6 }))).toBe(1);
    expect(shallow.runsAfter(() => shallow.doc.set({ a: 6 }))).toBe(0);
  });

  test("[I3] shallow readers of a key written in place are told only of keys that come and go", async () => {
    const { runsAfter, space, doc } = await reader({ a: { b: 1 } }, [{ path: ["a"], shallow: true }]);
    const a = space.cell<{ a: { b: number; n: number } }>("doc").key("a");
    expect(runsAfter(() => a.key("b").set(2))).toBe(0);
    expect(runsAfter(() => a.key("n").set(2))).toBe(1);
    expect(runsAfter(() => a.key("n").delete())).toBe(1);
    expect(runsAfter(() => doc.delete())).toBe(1);
  });

  test("[I3] null, undefined, kinds and orders are told apart", async () => {
    const { runsAfter, doc } = await reader({}, [{ path: ["a"] }]);
    const steps: Json[] = [{ a: null }, { a: 1 }, { a: {} }, { a: [] }, { a: [1, 2] }, { a: [2, 1] }, {}];
    for (const step of steps) expect(runsAfter(() => doc.set(step))).toBe(1);
  });

  test("[I3] a sibling's key does not affect the reader of another", async () => {
    const { runsAfter, space } = await reader({ a: 1 }, [{ path: ["a"] }]);
    expect(runsAfter(() => space.cell<{ b: number }>("doc").key("b").set(1))).toBe(0);
    expect(runsAfter(() => space.cell("doc").set({ a: 1, b: 2, c: 3 }))).toBe(0);
    expect(runsAfter(() => space.cell("doc").set({ a: 2 }))).toBe(1);
  });

  test("[I3] a push does not affect the reader of the first element, and does affect that of the list", async () => {
    const first = await reader([1], [{ path: ["0"] }]);
    expect(first.runsAfter(() => first.space.cell<number[]>("doc").push(2))).toBe(0);
    const whole = await reader([1], [{ path: [] }]);
    expect(whole.runsAfter(() => whole.space.cell<number[]>("doc").push(2))).toBe(1);
    const length = await reader([1], [{ path: [], shallow: true }]);
    expect(length.runsAfter(() => length.space.cell<number[]>("doc").push(2))).toBe(1);
    const beyond = await reader([1], [{ path: ["1"] }]);
    expect(beyond.runsAfter(() => beyond.space.cell<number[]>("doc").push(2))).toBe(1);
  });

  test("[I3] two changes in one commit are one run with two causes", async () => {
    const { runsAfter, space, node } = await reader({ a: 1, b: 1 }, [{ path: ["a"] }, { path: ["b"] }]);
    const cell = space.cell<{ a: number; b: number }>("doc");
    const write = () => {
      cell.key("a").set(2);
      cell.key("b").set(2);
    };
    expect(runsAfter(write)).toBe(1);
    expect(causesIn(node.lastReason).map(String)).toEqual(["doc /a", "doc /b"]);
  });

  test("[I3] a value that is changed and changed back before readers are told is no change", async () => {
    const { runsAfter, space, doc } = await reader({ a: 1, list: [1, 2] }, [{ path: [] }]);
    const cell = space.cell<{ a: number; list: number[] }>("doc");
    const there = () => {
      cell.key("a").set(2);
      cell.key("a").set(1);
    };
    expect(runsAfter(there)).toBe(0);
    const list = cell.key("list");
    const back = () => {
      list.push(3);
      list.splice(2, 1);
    };
    expect(runsAfter(back)).toBe(0);
    const whole = () => {
      doc.set({ a: 9 });
      doc.set({ a: 1, list: [1, 2] });
    };
    expect(runsAfter(whole)).toBe(0);
  });

  test("[I3] keys that only look alike are told apart", async () => {
    const { runsAfter, space, doc } = await reader({ "a/b": 1, a: { b: 1 }, "~0": 1 }, [{ path: ["a/b"] }]);
    expect(runsAfter(() => space.cell<{ a: { b: number } }>("doc").key("a").key("b").set(2))).toBe(0);
    expect(runsAfter(() => doc.set({ "a/b": 2, a: { b: 2 }, "~0": 1 }))).toBe(1);
  });
});
