import { describe, expect, test } from "#test";
import { causesIn, causesOf } from "../../src/scheduler/causes.ts";
import { Calls, setup } from "./scheduler-setup.ts";

describe("nodes that are not observed do not run", () => {
  test("[I2] a computation without readers does not run when its source changes", async () => {
    const { space } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const runs = new Calls();
    const c = space.computed("c", () => {
      runs.note(1);
      return a.get();
    });
    a.set(2);
    await space.idle();
    expect(runs.count).toBe(0);
    expect(c.get()).toBe(2);
    expect(runs.count).toBe(1);
  });

  test("[I2] registering 10,000 dormant nodes runs no node, loads no document, and leaves the scheduler idle", async () => {
    const { space, scheduler, line, host, open, quiet } = await setup();
    const other = await open();
    for (let i = 0; i < 10; i++) other.space.cell(`source ${i}`).set(i);
    await quiet();
    let loads = 0;
    line.plan = ({ method }) => {
      if (method === "load") loads++;
      return {};
    };
    for (let i = 0; i < 10_000; i++) {
      const source = space.cell<never>(`source ${i % 10}`);
      space.computed(`c ${i}`, () => source.get(), { reads: [source] });
    }
    let isIdle = false;
    space.idle().then(() => {
      isIdle = true;
    });
    await Promise.resolve();
    expect(isIdle).toBe(true);
    await host.advance(1_000);
    expect(loads).toBe(0);
    expect(scheduler.getStats()).toMatchObject({ runs: 0, queued: 0, gated: 0 });
    scheduler.checkInvariants();
  });

  test("[I2] a computation that was never accessed consists of its record: it has no document yet", async () => {
    const { space, scheduler } = await setup();
    const replica = space.replica("s");
    const before = replica.residentDocuments;
    const computeds = Array.from({ length: 100 }, (_, i) => space.computed(`c ${i}`, () => i));
    expect(replica.residentDocuments).toBe(before);
    expect(scheduler.getGraphSnapshot()[7]).toMatchObject({ id: "c 7", writes: ["c 7"], live: false });
    expect(await computeds[7]?.pull()).toBe(7);
    expect(replica.residentDocuments).toBe(before + 1);
    scheduler.checkInvariants();
  });

  test("[I2] an access to the document by any way is an access to the computation", async () => {
    const { space, scheduler } = await setup();
    const early = space.cell<number>("c");
    const seen = new Calls<number | undefined>();
    early.sink(seen.note);
    await space.idle();
    space.computed("c", () => 1);
    space.computed("d", () => 2);
    space.computed("e", () => 3);
    space.cell<number>("d").sink(seen.note);
    space.cell<unknown>("link").set({ $link: { scope: "space", id: "e", path: [] } });
    space.cell<number>("link").sink(seen.note);
    await space.idle();
    expect(seen.take()).toEqual([undefined, 1, 2, 3]);
    scheduler.checkInvariants();
  });

  test("[I2] a computation that is removed before its first access frees its name", async () => {
    const { space, scheduler } = await setup();
    space.computed("c", () => 1).dispose();
    const again = space.computed("c", () => 2);
    expect(await space.cell<number>("c").pull()).toBe(2);
    expect(await again.pull()).toBe(2);
    scheduler.checkInvariants();
  });

  test("[I2] two nodes of one name write one document, the later one last", async () => {
    const { space, scheduler } = await setup();
    const outputIn = space.replica("s");
    for (const value of [1, 2]) scheduler.register({ kind: "computation", id: "c", run: () => value, outputIn });
    expect(await space.cell("c").pull()).toBe(2);
    expect(scheduler.getGraphSnapshot().map(({ writes }) => writes)).toEqual([["c"], ["c"]]);
    scheduler.checkInvariants();
  });

  test("[I2] changes during dormancy make a computation run once when demand returns", async () => {
    const { space } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const runs = new Calls();
    const c = space.computed("c", () => {
      runs.note(a.get());
      return a.get();
    });
    const cancel = c.sink(() => undefined);
    await space.idle();
    cancel();
    a.set(2);
    a.set(3);
    await space.idle();
    expect(runs.take()).toEqual([1]);
    c.sink(() => undefined);
    await space.idle();
    expect(runs.take()).toEqual([3]);
  });

  test("[I2] without changes during dormancy a computation does not run again", async () => {
    const { space } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    const runs = new Calls();
    const c = space.computed("c", () => {
      runs.note(1);
      return a.get();
    });
    c.sink(() => undefined);
    space.flush();
    const seen = new Calls();
    const cancel = c.sink(seen.note);
    space.flush();
    cancel();
    b.set(7);
    c.sink(seen.note);
    space.flush();
    expect(runs.count).toBe(1);
    expect(seen.take()).toEqual([1, 1]);
  });

  test("[I2] a dormant chain is verified from its sources: only the outdated nodes run", async () => {
    const { space } = await setup();
    const a = space.cell<number>("a");
    a.set(11);
    const runs = new Calls();
    const tens = space.computed("tens", () => {
      runs.note("tens");
      return Math.floor((a.get() ?? 0) / 10);
    });
    const shown = space.computed("shown", () => {
      runs.note("shown");
      return `${tens.get()}`;
    });
    shown.sink(() => undefined)();
    const cancel = shown.sink(() => undefined);
    space.flush();
    cancel();
    runs.take();
    a.set(12);
    shown.sink(() => undefined);
    space.flush();
    expect(runs.take()).toEqual(["tens"]);
  });

  test("[I2] a declared read does not count as read: the node has never run, and has no causes", async () => {
    const { space, scheduler } = await setup();
    const a = space.cell<never>("a");
    const c = space.computed("c", () => a.get(), { reads: [a] });
    space.cell<number>("a").set(1);
    await space.idle();
    expect(c.node.status).toBe("never-ran");
    expect(causesOf(c.node)).toEqual([]);
    c.sink(() => undefined);
    space.cell<number>("a").set(2);
    space.cell<number>("a").set(3);
    space.flush();
    expect(c.node.runs).toBe(1);
    expect(causesIn(c.node.lastReason)).toEqual([]);
    scheduler.checkInvariants();
  });

  test("[I2] one arm of a diamond of demand keeps the shared nodes alive; without the second arm they become dormant", async () => {
    const { space, scheduler } = await setup();
    const a = space.cell<number>("a");
    const shared = space.computed("shared", () => a.get());
    const left = space.computed("left", () => shared.get());
    const right = space.computed("right", () => shared.get());
    const cancelLeft = left.sink(() => undefined);
    const cancelRight = right.sink(() => undefined);
    await space.idle();
    cancelLeft();
    scheduler.checkInvariants();
    expect([left, right, shared].map(({ node }) => node.live)).toEqual([false, true, true]);
    cancelRight();
    scheduler.checkInvariants();
    expect([left, right, shared].map(({ node }) => node.live)).toEqual([false, false, false]);
  });

  test("[I2] two computations that read each other do not keep each other alive", async () => {
    const { space, scheduler } = await setup();
    const a = space.cell<boolean>("a");
    const y = space.cell<number>("y");
    const x = space.computed("x", () => (a.get() ? y.get() : 1));
    const yNode = space.computed("y", () => (a.get() ? x.get() : 2));
    const cancel = x.sink(() => undefined);
    yNode.sink(() => undefined)();
    space.flush();
    a.set(true);
    space.flush();
    scheduler.checkInvariants();
    cancel();
    scheduler.checkInvariants();
    expect([x.node.live, yNode.node.live]).toEqual([false, false]);
  });

  test("[I2] an invalid dormant computation that becomes an effect's source runs", async () => {
    const { space } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const c = space.computed("c", () => a.get());
    const cancel = c.sink(() => undefined);
    await space.idle();
    cancel();
    a.set(2);
    await space.idle();
    const seen = new Calls();
    space.effect(() => seen.note(c.get()));
    await space.idle();
    expect(seen.take()).toEqual([2]);
  });

  test("[I2] linked input of a computation without demand is not loaded", async () => {
    const { space, line, open, quiet } = await setup();
    const other = await open();
    other.space.cell("target").set(1);
    await quiet();
    let loads = 0;
    line.plan = ({ method }) => {
      if (method === "load") loads++;
      return {};
    };
    const link = space.cell<unknown>("link");
    link.set(space.cell("target").asLink());
    space.computed("c", () => link.get(), { reads: [link as never] });
    await quiet();
    expect(loads).toBe(0);
  });
});
