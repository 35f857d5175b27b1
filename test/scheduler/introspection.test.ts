import { describe, expect, test } from "#test";
import type { SchedulerNode } from "../../src/scheduler/node.ts";
import { Gate } from "../store/faulty-store.ts";
import { Calls, setup } from "./scheduler-setup.ts";

describe("the idempotency check", () => {
  async function checked() {
    const parts = await setup();
    parts.scheduler.parts.introspection.checksIdempotency = true;
    const errors = new Calls();
    parts.scheduler.onError((error) => errors.note((error as Error).message));
    return { ...parts, errors };
  }

  test("[R16] a computation that counts, draws, appends or throws the second time is reported once; a pure one is not", async () => {
    const { space, scheduler, host, errors, quiet } = await checked();
    const [a, log] = [space.cell<number>("a"), space.cell<number[]>("log")];
    a.set(1);
    log.set([]);
    await quiet();
    let counted = 0;
    let isFirst = true;
    space.computed("counts", () => (a.get() ?? 0) + counted++).sink(() => undefined);
    space.computed("draws", () => [a.get(), host.random()]).sink(() => undefined);
    const appends = space.computed("appends", () => {
      log.push(a.get() ?? 0);
      return 1;
    });
    appends.sink(() => undefined);
    const throws = space.computed("throws", () => {
      const first = isFirst;
      isFirst = !isFirst;
      if (!first) throw new Error("again");
      return a.get();
    });
    throws.sink(() => undefined);
    space.computed("pure", () => ({ a: a.get() })).sink(() => undefined);
    await quiet();
    a.set(2);
    await quiet();
    expect([...scheduler.notIdempotent].sort()).toEqual(["appends", "counts", "draws", "throws"]);
    expect(errors.seen.filter((message) => String(message).startsWith("counts"))).toHaveLength(1);
    expect(log.get()).toEqual([1, 2]);
    expect(scheduler.runDiagnosis().notIdempotent).toHaveLength(4);
  });

  test("[R16] a write from outside between the runs, a stable side-write and an asynchronous computation are no offence", async () => {
    const { space, scheduler, quiet, errors } = await checked();
    const [a, side] = [space.cell<number>("a"), space.cell<number>("side")];
    a.set(1);
    await quiet();
    space.computed("reads", () => a.get()).sink(() => a.set(3));
    const writes = space.computed("writes", () => {
      side.set(a.get() ?? 0);
      return 1;
    });
    writes.sink(() => undefined);
    let counted = 0;
    space.computed("async", async () => [a.get(), counted++]).sink(() => undefined);
    const list = space.cell<number[]>("list");
    list.set([1, 2]);
    space.map("map", list, (n) => n.get()).sink(() => undefined);
    await quiet();
    list.push(3);
    await quiet();
    expect(scheduler.notIdempotent).toEqual([]);
    expect(errors.take()).toEqual([]);
    expect(scheduler.getGraphSnapshot().filter(({ id }) => id.startsWith("map/"))).toHaveLength(3);
    scheduler.checkInvariants();
  });
});

describe("what can be seen", () => {
  async function chain() {
    const parts = await setup();
    const { space } = parts;
    const a = space.cell<{ x: number }>("a");
    a.set({ x: 1 });
    const b = space.computed("b", () => a.key("x").get());
    const c = space.computed("c", () => b.get());
    return { ...parts, a, b, c };
  }

  test("[R17] why names the changes, their authors, and the changes from outside", async () => {
    const { space, scheduler, a, c } = await chain();
    c.sink(() => undefined);
    space.flush();
    expect(scheduler.why("c")).toEqual([{ kind: "first-run", node: "c" }]);
    a.key("x").set(2);
    space.flush();
    expect(scheduler.why("c")).toEqual([
      { kind: "ran", node: "c", because: ["b"] },
      { kind: "ran", node: "b", because: ["a /x"] },
      { kind: "written", address: "a /x" },
    ]);
    expect(scheduler.why("nobody")).toEqual([]);
  });

  test("[R17] why names the node that made the change, declared or not, and no other possible writer", async () => {
    const { space, scheduler, quiet, open } = await setup();
    const [a, target, list] = [space.cell<number>("a"), space.cell<number>("target"), space.cell<number[]>("list")];
    a.set(1);
    list.set([]);
    scheduler.register({
      kind: "computation",
      id: "declared",
      outputs: [space.cell("out").address, target.address],
      run: () => {
        target.set(a.get() ?? 0);
        return a.get() ?? 0;
      },
    });
    space.effect(() => list.set(Array(a.get() ?? 0).fill(0)), { id: "undeclared" });
    target.sink(() => {});
    list.sink(() => {});
    await quiet();
    a.set(2);
    await quiet();
    const because = (node: string, place: string) => ({ kind: "ran", node, because: [place] });
    expect(scheduler.why("sink of target")).toEqual([
      because("sink of target", "target"),
      because("declared", "a"),
      { kind: "written", address: "a" },
    ]);
    expect(scheduler.why("sink of list")).toEqual([
      because("sink of list", "list"),
      because("undeclared", "a"),
      { kind: "written", address: "a" },
    ]);
    // From outside: here, and by another process.
    target.set(9);
    const there = await open();
    await there.space.cell("list").pull();
    there.space.cell<number[]>("list").push(7);
    await quiet();
    expect(scheduler.why("sink of target").slice(1)).toEqual([{ kind: "written", address: "target" }]);
    expect(scheduler.why("sink of list").slice(1)).toEqual([{ kind: "written", address: "list" }]);
  });

  test("[R17] whyNot answers clean, dormant with the changes since, gated, about to run, or unknown", async () => {
    const { space, scheduler, a, b, c } = await chain();
    expect(scheduler.whyNot("c")).toMatchObject({
      kind: "dormant",
      message: "did not run: it is not observed. It never ran.",
    });
    const cancel = c.sink(() => undefined);
    space.flush();
    expect(scheduler.whyNot("c").kind).toBe("clean");
    cancel();
    a.key("x").set(2);
    space.flush();
    expect(scheduler.whyNot("b")).toMatchObject({ kind: "dormant", because: ["a /x"] });
    expect(scheduler.getGraphSnapshot().find(({ id }) => id === "b")?.status).toBe("invalid");
    c.sink(() => undefined);
    expect(scheduler.whyNot("sink of c")).toMatchObject({ kind: "about-to-run" });
    space.flush();
    scheduler.setDebounce(b.node, 100);
    a.key("x").set(3);
    space.flush();
    expect(scheduler.whyNot("b")).toMatchObject({ kind: "gated", forMs: 100, because: ["a /x"] });
    expect(scheduler.whyNot("nobody")).toEqual({ kind: "unknown" });
  });

  test("[R17] whyNot tells that a node is in the middle of a run, and whether it will run again", async () => {
    const { space, scheduler, open, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const gate = new Gate();
    space.effect(
      async () => {
        a.get();
        await gate.opened;
      },
      { id: "long" },
    );
    await quiet();
    expect(scheduler.whyNot("long")).toEqual({
      kind: "running",
      message: "runs now: its run has not ended.",
      because: [],
    });
    const there = await open();
    there.space.cell<number>("a").set(2);
    await quiet();
    expect(scheduler.whyNot("long")).toMatchObject({
      kind: "running",
      message: "runs now: its run has not ended. It runs again because of a.",
      because: ["a"],
    });
    gate.open();
    await quiet();
    expect(scheduler.whyNot("long").kind).toBe("clean");
  });

  test("[R17] a snapshot shows every node with its reads, writes, parent and error", async () => {
    const { space, scheduler, c } = await chain();
    c.sink(() => undefined);
    space.effect(
      () => {
        space.computed("child", () => {
          throw new Error("no");
        });
      },
      { id: "parent" },
    );
    space.flush();
    const snapshot = scheduler.getGraphSnapshot();
    expect(snapshot.find(({ id }) => id === "b")).toEqual({
      id: "b",
      kind: "computation",
      status: "clean",
      live: true,
      height: expect.any(Number),
      runs: 1,
      reads: ["a /x"],
      writes: ["b"],
    });
    expect(snapshot.find(({ id }) => id === "child")).toMatchObject({ parent: "parent", error: "Error: no" });
    expect(scheduler.runDiagnosis()).toMatchObject({
      contradiction: undefined,
      nonSettling: [],
      failed: [{ id: "child", error: "Error: no" }],
    });
  });

  test("[R17] a trace is kept while it is wanted, and tells runs and failures with their causes", async () => {
    const { space, scheduler, a, b } = await chain();
    b.sink(() => undefined);
    space.flush();
    expect(scheduler.getTrace()).toEqual([]);
    scheduler.setTraceEnabled("run", true);
    a.key("x").set(2);
    space.flush();
    scheduler.setTraceEnabled("run", false);
    a.key("x").set(3);
    space.flush();
    expect(scheduler.getTrace().map(({ node, kind, because }) => [node, kind, because])).toEqual([
      ["b", "ran", ["a /x"]],
      ["sink of b", "ran", ["b"]],
    ]);
  });

  test("[R17] counts are kept per scheduler and per node", async () => {
    const { space, scheduler, a, b } = await chain();
    b.sink(() => undefined, { throttleMs: 50 });
    space.flush();
    a.key("x").set(2);
    space.flush();
    expect(scheduler.getStats()).toMatchObject({
      nodes: 3,
      runs: 3,
      failures: 0,
      queued: 0,
      gated: 1,
      outsideWrites: 0,
    });
    expect(scheduler.getActionStats()).toEqual([
      { id: "b", kind: "computation", runs: 2, debounceMs: 0, throttleMs: 0, eligibleInMs: 0 },
      { id: "c", kind: "computation", runs: 0, debounceMs: 0, throttleMs: 0, eligibleInMs: 0 },
      { id: "sink of b", kind: "effect", runs: 1, debounceMs: 0, throttleMs: 50, eligibleInMs: 50 },
    ]);
  });

  test("[R18] checkInvariants finds violations", async () => {
    const { space, scheduler, b, c } = await chain();
    c.sink(() => undefined);
    space.flush();
    const tamper = (act: (node: SchedulerNode) => void, undo: (node: SchedulerNode) => void, expected: string) => {
      act(b.node);
      expect(() => scheduler.checkInvariants()).toThrow(expected);
      expect(scheduler.runDiagnosis().contradiction).toContain(expected);
      undo(b.node);
      scheduler.checkInvariants();
    };
    tamper(
      (node) => node.demand++,
      (node) => node.demand--,
      "node b counts 2 demands, there are 1",
    );
    tamper(
      (node) => {
        node.rooted = true;
      },
      (node) => {
        node.rooted = false;
      },
      "counts 1 demands, there are 2",
    );
    tamper(
      (node) => {
        node.status = "invalid";
      },
      (node) => {
        node.status = "clean";
      },
      "node b is invalid, not queued",
    );
    tamper(
      (node) => {
        node.height += 10;
      },
      (node) => {
        node.height -= 10;
      },
      "node c is not above b",
    );
    tamper(
      () => b.address.edges++,
      () => b.address.edges--,
      "b counts 2 reads, there are 1",
    );
  });

  test("[R19] errors and console lines reach each listener until it unsubscribes", async () => {
    const { space, scheduler } = await setup();
    const [errors, lines] = [new Calls(), new Calls()];
    const stop = scheduler.onError((error, node) => errors.note([(error as Error).message, node?.id]));
    scheduler.onConsole(lines.note);
    const a = space.cell<number>("a");
    a.set(0);
    space.effect(
      () => {
        a.get();
        throw new Error("broken");
      },
      { id: "e" },
    );
    space.flush();
    stop();
    a.set(1);
    space.flush();
    expect(errors.take()).toEqual([["broken", "e"]]);
    expect(lines.take()).toEqual(["e: broken", "e: broken"]);
  });
});
