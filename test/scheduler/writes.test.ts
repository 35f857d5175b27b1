import { describe, expect, test } from "#test";
import { WRITE_ATTEMPTS_MAX } from "../../src/limits.ts";
import type { NodeSpec } from "../../src/scheduler/node.ts";
import { rejected } from "../../src/store/rejection.ts";
import { Gate } from "../store/faulty-store.ts";
import { Calls, setup } from "./scheduler-setup.ts";

describe("repeated plain writes within one task", () => {
  test("[I3] [R10] each flush reports the changes since the last one, and the last values are one commit", async () => {
    const { space, line, quiet } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<{ x: number }>("b")];
    const seen = new Calls();
    space.effect(() => seen.note([a.get(), b.get()?.x]));
    await quiet();
    const before = line.arrived.length;
    for (const [first, second] of [
      [1, 1],
      [1, 2],
      [3, 2],
      [3, 2],
      [4, 5],
    ] as const) {
      a.set(0);
      a.set(first);
      b.set({ x: second });
      b.key("x").set(second);
      space.flush();
    }
    expect(seen.seen.slice(1)).toEqual([
      [1, 1],
      [1, 2],
      [3, 2],
      [4, 5],
    ]);
    await quiet();
    expect(line.arrived.length).toBe(before + 1);
    expect([a.get(), b.get()]).toEqual([4, { x: 5 }]);
  });

  test("[I3] a node's write between two flushes does not count as a plain write", async () => {
    const { space, quiet } = await setup();
    const [a, trigger] = [space.cell<number>("a"), space.cell<number>("trigger")];
    const seen = new Calls();
    space.effect(() => seen.note(a.get()));
    space.effect(() => {
      if (trigger.get() === 1) a.set(5);
    });
    await quiet();
    trigger.set(1);
    a.set(1);
    space.flush();
    a.set(1);
    space.flush();
    expect(seen.seen).toEqual([undefined, 1, 5, 1]);
    await quiet();
    expect(a.get()).toBe(1);
  });
});

describe("side-writes of nodes", () => {
  test("[R11] the writes of a run are one commit that claims the run's reads", async () => {
    const { space, line, quiet } = await setup();
    const [a, b, c] = ["a", "b", "c"].map((id) => space.cell<number>(id));
    if (!a || !b || !c) throw new Error("no cells");
    a.set(1);
    await quiet();
    space.effect(() => {
      b.set((a.get() ?? 0) + 1);
      c.set((a.get() ?? 0) + 2);
    });
    await quiet();
    const commit = line.arrived.at(-1);
    expect(commit?.patches.map(({ id }) => id)).toEqual(["b", "c"]);
    expect(commit?.reads.map(({ id, depth }) => [id, depth])).toEqual([["a", "deep"]]);
  });

  test("[R11] a node with a stale commit runs again on the others' writes", async () => {
    const { space, open, line, quiet, scheduler } = await setup();
    const other = await open();
    const [a, b, trigger] = [space.cell<number>("a"), space.cell<number>("b"), space.cell<number>("trigger")];
    a.set(1);
    trigger.set(0);
    await quiet();
    await other.space.cell("a").pull();
    const runs = new Calls();
    space.effect(() => {
      runs.note([a.get(), trigger.get()]);
      b.set((a.get() ?? 0) * 10 + (trigger.get() ?? 0));
    });
    await quiet();
    const gate = new Gate();
    line.plan = ({ method }) => (method === "changesSince" ? { arrives: gate.opened } : {});
    other.space.cell<number>("a").set(2);
    await quiet();
    trigger.set(1);
    await quiet();
    // Computed from an `a` that is gone: taken back, and not to be seen by the other side.
    expect(b.get()).toBe(10);
    expect(await other.space.cell("b").pull()).toBe(10);
    gate.open();
    await quiet();
    expect(b.get()).toBe(21);
    expect(runs.take()).toEqual([
      [1, 0],
      [1, 1],
      [2, 1],
    ]);
    scheduler.checkInvariants();
  });

  test("[R11] a run claims its reads through computed values too: it runs again when a source has changed", async () => {
    const { space, host, open, line, quiet, scheduler } = await setup();
    const [a, x, m] = [space.cell<number>("a"), space.cell<number>("x"), space.cell<number>("m")];
    a.set(1);
    x.set(0);
    const twice = space.computed("twice", () => (a.get() ?? 0) * 2);
    const same = space.computed("same", () => twice.get());
    const runs = new Calls();
    space.effect(() => {
      runs.note([same.get(), x.get()]);
      m.set((same.get() ?? 0) * 10 + (x.get() ?? 0));
    });
    await host.run(() => space.settled());
    expect(line.arrived.at(-1)?.reads.map(({ id, depth }) => [id, depth])).toEqual([
      ["x", "deep"],
      ["a", "deep"],
    ]);
    const feed = new Gate();
    line.plan = ({ method }) => (method === "changesSince" ? { arrives: feed.opened } : {});
    const there = await open();
    there.space.cell<number>("a").set(2);
    await host.run(() => there.space.settled());
    x.set(5);
    await quiet();
    // Computed from an `a` that is gone: never to be seen by the other side.
    expect(await there.space.cell("m").pull()).toBe(20);
    feed.open();
    await quiet();
    expect(m.get()).toBe(45);
    expect(runs.take()).toEqual([
      [2, 0],
      [2, 5],
      [4, 5],
    ]);
    scheduler.checkInvariants();
  });

  test("[R11] a commit that is refused for good is reported, and the node rests until an input changes", async () => {
    const { space, line, quiet, scheduler } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    await quiet();
    const errors = new Calls();
    scheduler.onError((error, node) => errors.note([node?.id, (error as Error).message]));
    line.plan = ({ method }) => (method === "commit" ? { instead: rejected("refused", "too-large", "too large") } : {});
    const runs = new Calls();
    space.effect(
      () => {
        runs.note(a.get());
        b.set((a.get() ?? 0) * 10);
      },
      { id: "writer" },
    );
    await quiet();
    expect(errors.take()).toEqual([["writer", "the writes of node writer were rolled back: too large"]]);
    expect(runs.take()).toEqual([1]);
    expect(b.get()).toBeUndefined();
    line.plan = () => ({});
    a.set(2);
    await quiet();
    expect(b.get()).toBe(20);
    expect(scheduler.runDiagnosis()).toMatchObject({ contradiction: undefined, failed: [] });
  });

  test("[R11] a store that keeps failing is asked a bounded number of times, with growing pauses", async () => {
    const { space, line, host, quiet, scheduler } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    await quiet();
    const errors = new Calls();
    scheduler.onError(errors.note);
    line.plan = ({ method }) => (method === "commit" ? { instead: rejected("failed", "store-busy", "busy") } : {});
    const runs = new Calls();
    space.effect(() => {
      runs.note(host.monotonic());
      b.set(a.get() ?? 0);
    });
    await host.advance(60_000);
    expect(runs.count).toBe(WRITE_ATTEMPTS_MAX);
    expect(runs.seen).toEqual([0, 0, 0, 0, 250]);
    expect(errors.count).toBe(1);
  });

  test("[R11] plain writes of before a node's run are committed before the node's writes", async () => {
    const { space, line, quiet } = await setup();
    const doc = space.cell<{ x: number; y: number }>("doc");
    doc.set({ x: 0, y: 0 });
    await quiet();
    space.effect(() => doc.key("y").set(doc.key("x").get() ?? 0));
    space.flush();
    await quiet();
    const before = line.arrived.length;
    doc.key("x").set(1);
    space.flush();
    await quiet();
    const paths = line.arrived.slice(before).map(({ patches }) => patches[0]?.operations[0]?.path);
    expect(paths).toEqual([["x"], ["y"]]);
    doc.address.home.replica.checkInvariants();
  });

  test("[R12] a run that throws leaves none of its writes, throws its error to readers, and keeps its reads", async () => {
    const { space, scheduler, quiet } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    b.set(1);
    await quiet();
    const c = space.computed("c", () => {
      b.set(5);
      if ((a.get() ?? 0) < 2) throw new Error("too small");
      return a.get();
    });
    const seen = new Calls();
    c.sink(seen.note);
    const errors = new Calls();
    scheduler.onError((error) => errors.note((error as Error).message));
    space.flush();
    expect(() => c.get()).toThrow("too small");
    expect([b.get(), (c.error as Error).message]).toEqual([1, "too small"]);
    a.set(2);
    space.flush();
    expect([b.get(), c.get(), c.error]).toEqual([5, 2, undefined]);
    expect(errors.take()).toEqual(["too small"]);
    expect(seen.take()).toEqual([2]);
    scheduler.checkInvariants();
  });

  test("[R12] a run that fails before its first read is still subscribed to its earlier reads", async () => {
    const { space } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    let isBroken = false;
    const c = space.computed("c", () => {
      if (isBroken) throw new Error("broken");
      return [a.get(), b.get()];
    });
    c.sink(() => undefined);
    space.flush();
    isBroken = true;
    a.set(2);
    space.flush();
    expect(() => c.get()).toThrow("broken");
    isBroken = false;
    b.set(3);
    space.flush();
    expect(c.get()).toEqual([2, 3]);
  });

  test("[R12] failing again and again does not grow the reads", async () => {
    const { space, scheduler } = await setup();
    const cells = [0, 1, 2].map((i) => space.cell<number>(`c${i}`));
    const turn = space.cell<number>("turn");
    turn.set(0);
    const c = space.computed("c", () => {
      const value = turn.get() ?? 0;
      cells[value % 3]?.get();
      throw new Error("never");
    });
    c.sink(() => undefined);
    for (let i = 0; i < 30; i++) {
      turn.set(i);
      space.flush();
    }
    const snapshot = scheduler.getGraphSnapshot().find(({ id }) => id === "c");
    expect(snapshot?.reads.length).toBe(4);
    scheduler.checkInvariants();
  });

  test("[R13] a computation that writes where it has not declared to is counted, and its surface stays as it is", async () => {
    const { space, scheduler, quiet } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    const slot = space.cell<number>("slot", undefined, { scope: "user:ada" });
    await quiet();
    const c = space.computed("c", () => {
      b.set(a.get() ?? 0);
      slot.set(1);
      return 1;
    });
    c.sink(() => undefined);
    await quiet();
    expect(scheduler.getStats().outsideWrites).toBe(1);
    expect(scheduler.getGraphSnapshot().find(({ id }) => id === "c")?.writes).toEqual(["c"]);
  });

  test("[R13] a declared side-write is demanded and ordered like an output, and stays a durable document", async () => {
    const { space, scheduler, open, quiet } = await setup();
    const other = await open();
    other.space.cell("side").set({ theirs: 1 });
    await quiet();
    const [a, side] = [space.cell<number>("a"), space.cell<{ theirs: number; ours: number }>("side")];
    a.set(1);
    const output = space.cell("out");
    const spec: NodeSpec = {
      kind: "computation",
      id: "both",
      outputs: [output.address, side.address],
      run: () => {
        side.get();
        if (side.get() !== undefined) side.key("ours").set(a.get() ?? 0);
        return 1;
      },
    };
    const node = scheduler.register(spec);
    await quiet();
    expect(node.runs).toBe(0);
    const seen = new Calls();
    side.sink(seen.note);
    await quiet();
    expect(node.live).toBe(true);
    expect(seen.seen.at(-1)).toEqual({ theirs: 1, ours: 1 });
    expect(scheduler.getStats().outsideWrites).toBe(0);
    expect(other.space.cell("side").get()).toEqual({ theirs: 1, ours: 1 });
  });
});

describe("materializers", () => {
  async function materializing() {
    const parts = await setup();
    const { space, scheduler, quiet } = parts;
    const [input, index] = [space.cell<number>("input"), space.cell<{ in: number; far: number }>("index")];
    input.set(0);
    index.set({ in: -1, far: -1 });
    await quiet();
    const order = new Calls<string>();
    const node = scheduler.register({
      kind: "computation",
      id: "materializer",
      envelope: [index.key("in").address],
      run: () => {
        order.note("materializer");
        index.key("in").set(input.get() ?? 0);
      },
    });
    return { ...parts, input, index, order, node };
  }

  test("[R14] a materializer runs without a reader, when no other node is left, once for many changes", async () => {
    const { space, scheduler, input, order, node, quiet } = await materializing();
    input.sink(() => order.note("sink"));
    await quiet();
    order.take();
    input.set(1);
    input.set(2);
    await quiet();
    expect(order.take()).toEqual(["sink", "materializer"]);
    expect(node.live).toBe(true);
    expect(space.cell("index").get()).toEqual({ in: 2, far: -1 });
    expect(scheduler.getStats().outsideWrites).toBe(0);
    scheduler.checkInvariants();
  });

  test("[I9] [R14] a materializer runs before an effect that reads inside its envelope, and the effect runs once", async () => {
    const { input, index, order, scheduler, quiet, space } = await materializing();
    space.effect(() => {
      input.get();
      order.note(`reader ${index.key("in").get()}`);
    });
    await quiet();
    order.take();
    input.set(7);
    await quiet();
    expect(order.take()).toEqual(["materializer", "reader 7"]);
    scheduler.checkInvariants();
  });

  test("[I9] [R14] a materializer runs before a new effect that discovers the envelope by reading", async () => {
    const { input, index, order, space } = await materializing();
    space.flush();
    order.take();
    space.effect(() => order.note(`reader ${index.key("in").get()}`));
    input.set(3);
    space.flush();
    expect(order.take()).toEqual(["materializer", "reader 3"]);
  });

  test("[I9] [R14] a reader beside the envelope, or in the document of another scope, is not ordered after it", async () => {
    const { input, index, order, space, quiet } = await materializing();
    const elsewhere = space.cell<{ in: number }>("index", undefined, { scope: "user:ada" });
    space.effect(() => {
      input.get();
      order.note(`beside ${index.key("far").get()} ${elsewhere.key("in").get()}`);
    });
    await quiet();
    order.take();
    input.set(1);
    await quiet();
    expect(order.take()).toEqual(["beside -1 undefined", "materializer"]);
  });

  test("[R14] [R28] a transaction beside an asynchronous run waits for work that leads to its reads over an envelope", async () => {
    const { space, scheduler, host, open, quiet } = await setup();
    const [a, board] = [space.cell<number>("a"), space.cell<number>("board")];
    a.set(1);
    const shown = space.computed("shown", () => board.get());
    shown.sink(() => {});
    await quiet();
    // Registered later, it is higher than its reader.
    const source = space.computed("source", () => a.get());
    const run = () => board.set((source.get() ?? 0) * 10);
    scheduler.register({ kind: "computation", id: "painter", envelope: [board.address], run });
    await quiet();
    expect(shown.get()).toBe(10);
    const gate = new Gate();
    space.effect(() => gate.opened);
    await quiet();
    const there = await open();
    there.space.cell<number>("a").set(2);
    await quiet();
    const seen = space.transact(() => shown.get());
    await quiet();
    gate.open();
    expect(await host.run(() => seen)).toBe(20);
  });

  test("[R14] the envelope itself invalidates no node: only written places do", async () => {
    const { input, index, order, space, quiet } = await materializing();
    const seen = new Calls();
    index.key("in").sink(seen.note);
    await quiet();
    order.take();
    seen.take();
    await space.transact(() => {
      input.set(1);
      input.set(0);
    });
    await quiet();
    expect(seen.take()).toEqual([]);
  });

  test("[S57] a wide document that is replaced again and again has the last value, whatever was added and removed between", async () => {
    const { space, quiet } = await setup();
    const wide = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`k${i}`, i]));
    const cell = space.cell<Record<string, number>>("wide");
    // Not read in between: a value that a reader got is copied by the next write.
    const put = async (value: Record<string, number>) => {
      cell.set(value);
      await quiet();
    };
    for (const k3 of [-1, -2, -3]) await put({ ...wide, k3 });
    cell.key("fresh").set(1);
    await quiet();
    await put({ ...wide, k3: -4 });
    expect(cell.getRaw()).toEqual({ ...wide, k3: -4 });
    for (const k3 of [-1, -2, -3]) await put({ ...wide, k3 });
    cell.key("k5").delete();
    await quiet();
    const { k5: _, ...without } = wide;
    await put({ ...without, fresh: 2 });
    expect(cell.getRaw()).toEqual({ ...without, fresh: 2 });
  });
});
