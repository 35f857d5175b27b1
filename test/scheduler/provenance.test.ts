import { describe, expect, test } from "#test";
import { causesIn, causesOf } from "../../src/scheduler/causes.ts";
import type { RunHandle, SchedulerNode } from "../../src/scheduler/node.ts";
import type { Notification } from "../../src/store/change.ts";
import { type RejectionClass, rejected } from "../../src/store/rejection.ts";
import { Calls, setup } from "./scheduler-setup.ts";

describe("every run knows its node and its causes", () => {
  test("[I8] a run's commit names its node, and the node the addresses that caused the run", async () => {
    const { space, quiet } = await setup();
    const [a, b] = [space.cell<{ x: number }>("a"), space.cell<number>("b")];
    a.set({ x: 1 });
    await quiet();
    space.effect(() => b.set((a.key("x").get() ?? 0) * 2), { id: "copier" });
    await quiet();
    const told: Notification[] = [];
    b.address.home.replica.subscribe((notification) => void told.push(notification));
    a.key("x").set(2);
    await quiet();
    const own = told.find(({ changes }) => changes.some(({ id }) => id === "b"));
    const source = own?.source as SchedulerNode;
    expect(source.id).toBe("copier");
    expect(causesIn(source.lastReason).map(String)).toEqual(["a /x"]);
  });

  test("[I8] a branch that never looks at the cause again carries it all the same", async () => {
    const { space } = await setup();
    const [flag, a] = [space.cell<boolean>("flag"), space.cell<number>("a")];
    flag.set(true);
    a.set(1);
    const causes = new Calls();
    let isFirst = true;
    space.effect((run: RunHandle) => {
      causes.note(run.causes.map(String));
      if (isFirst) a.get();
      isFirst = false;
      flag.get();
    });
    space.flush();
    a.set(2);
    space.flush();
    flag.set(false);
    space.flush();
    expect(causes.take()).toEqual([[], ["a"], ["flag"]]);
  });

  for (const kind of ["stale", "failed"] as const satisfies RejectionClass[]) {
    test(`[I8] the causes of a run with a commit that is ${kind} are those of the run that repeats it`, async () => {
      const { space, line, quiet, scheduler } = await setup();
      const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
      a.set(1);
      await quiet();
      const causes = new Calls();
      space.effect((run: RunHandle) => {
        causes.note(run.causes.map(String));
        b.set((a.get() ?? 0) * 2);
      });
      await quiet();
      causes.take();
      let rejections = 1;
      line.plan = ({ method, request }) => {
        const isOwn = request?.patches.some(({ id }) => id === "b");
        if (method !== "commit" || !isOwn || rejections-- <= 0) return {};
        return { instead: rejected(kind, "read-moved", "try again") };
      };
      a.set(2);
      await quiet();
      expect(causes.take()).toEqual([["a"], ["a"]]);
      expect(b.get()).toBe(4);
      scheduler.checkInvariants();
    });
  }

  test("[I8] a run that starts over has the causes of its first attempt", async () => {
    const { space } = await setup();
    const [a, out] = [space.cell<number>("a"), space.cell<number>("out")];
    a.set(1);
    const late = space.computed("late", () => 5);
    const causes = new Calls();
    space.effect((run: RunHandle) => {
      causes.note(run.causes.map(String));
      if (a.get() === 1) return;
      // After its write, it cannot wait inside the read for a node that never ran.
      out.set(a.get() as number);
      late.get();
    });
    space.flush();
    a.set(2);
    space.flush();
    expect(causes.take()).toEqual([[], ["a"], ["a", "late"]]);
    expect(out.get()).toBe(2);
  });

  test("[I8] own changes and those of the own group are no causes; removal forgets them", async () => {
    const { space, scheduler, quiet } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    b.set(1);
    await quiet();
    const node = scheduler.register({
      kind: "effect",
      id: "writer",
      changeGroup: "g",
      debounceMs: 1_000,
      run: () => {
        a.get();
        b.get();
        b.set(7);
      },
    });
    await quiet();
    await space.transact(() => a.set(2), { changeGroup: "g" });
    expect(causesOf(node)).toEqual([]);
    a.set(3);
    await space.idle();
    expect(causesOf(node).map(String)).toEqual(["a"]);
    scheduler.remove(node);
    expect(causesOf(node)).toEqual([]);
    scheduler.checkInvariants();
  });

  test("[I8] the causes are those of this run, whatever those of the last one", async () => {
    const { space, quiet } = await setup();
    const names = ["a", "b", "c", "d"];
    const cells = new Map(names.map((name) => [name, space.cell<number>(name)]));
    const causes = new Calls<string>();
    space.effect((run: RunHandle) => {
      for (const cell of cells.values()) cell.get();
      causes.note(run.causes.map(String).join(""));
    });
    await quiet();
    const told = ["abcd", "abcd", "ab", "abd", "abdc", "abd", "ba", "a", "a", "abc", "abd", "dcba", "dcba", "dc"];
    let value = 0;
    for (const each of told) {
      for (const name of each) cells.get(name)?.set(++value);
      await quiet();
    }
    expect(causes.take()).toEqual(["", ...told]);
  });

  test("[I8] a node that is told of many places, each of them twice, has each once among its causes", async () => {
    const { space, scheduler, host } = await setup();
    const cells = Array.from({ length: 40 }, (_, i) => space.cell<number>(`cell ${i}`));
    for (const cell of cells) cell.set(0);
    const causes = new Calls<readonly string[]>();
    scheduler.register({
      kind: "effect",
      id: "effect",
      debounceMs: 100,
      run: (run) => {
        causes.note(run.causes.map(String));
        for (const cell of cells) cell.get();
      },
    });
    await host.advance(1_000);
    for (const round of [1, 2]) {
      for (const cell of cells) cell.set(round);
      space.flush();
    }
    await host.advance(1_000);
    expect(causes.take()).toEqual([[], cells.map(String)]);
  });
});
