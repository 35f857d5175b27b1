import { describe, expect, test } from "#test";
import { Gate } from "../store/faulty-store.ts";
import { Calls, setup } from "./scheduler-setup.ts";

/** Whether a promise has resolved, asked without waiting for it. */
function watch(promise: Promise<unknown>): { readonly done: boolean } {
  const state = { done: false };
  promise.then(() => {
    state.done = true;
  });
  return state;
}

describe("idle, settled and the end", () => {
  test("[R6] idle waits for an asynchronous run and not for a window of a node that has run", async () => {
    const { space, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(0);
    const gate = new Gate();
    space.effect(async () => {
      a.get();
      await gate.opened;
    });
    a.sink(() => undefined, { debounceMs: 1_000_000 });
    const idle = watch(space.idle());
    await quiet();
    expect(idle.done).toBe(false);
    gate.open();
    await quiet();
    expect(idle.done).toBe(true);
    a.set(1);
    await space.idle();
  });

  test("[R6] [R5] idle does not wait for a node at a breakpoint, even if it has not run", async () => {
    const { space, scheduler, host, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const runs = new Calls();
    const before = scheduler.register({ kind: "effect", id: "before", run: () => runs.note("before") });
    scheduler.setBreakpoint(before, true);
    await host.run(() => Promise.all([space.idle(), space.settled()]));
    expect(await host.run(() => a.pull())).toBe(1);
    // A node that is stopped releases the caller that waits for its first run.
    space.effect(() => {
      space.computed("child", () => runs.note("child"), { debounceMs: 60_000 });
    });
    const idle = watch(space.idle());
    await quiet();
    expect(idle.done).toBe(false);
    const child = scheduler.find("child");
    if (child === undefined) throw new Error("there is no child");
    scheduler.setBreakpoint(child, true);
    await quiet();
    expect([idle.done, runs.count]).toEqual([true, 0]);
    scheduler.setBreakpoint(before, false);
    scheduler.setBreakpoint(child, false);
    await host.advance(60_000);
    expect(runs.take()).toEqual(["before", "child"]);
  });

  test("[R6] idle does not wait for the server; settled does", async () => {
    const { space, line, quiet } = await setup();
    const gate = new Gate();
    line.plan = ({ method }) => (method === "commit" ? { answered: gate.opened } : {});
    space.cell("a").set(1);
    const [idle, settled] = [watch(space.idle()), watch(space.settled())];
    await quiet();
    expect([idle.done, settled.done]).toEqual([true, false]);
    gate.open();
    await quiet();
    expect(settled.done).toBe(true);
  });

  test("[R6] a transaction without readers leaves the scheduler idle", async () => {
    const { space } = await setup();
    await space.transact(() => space.cell("lonely").set(1));
    await space.idle();
  });

  test("[R6] idle waits for background work, also for work that fails", async () => {
    const { space, scheduler, quiet } = await setup();
    const gate = new Gate();
    space.effect(() =>
      scheduler.parts.quiescence.background(gate.opened.then(() => Promise.reject(new Error("failed")))),
    );
    const idle = watch(space.idle());
    await quiet();
    expect(idle.done).toBe(false);
    gate.open();
    await quiet();
    expect(idle.done).toBe(true);
  });

  test("[R7] idle that is asked for before, during and after dispose resolves, not before the run in flight has ended", async () => {
    const { space, scheduler, quiet } = await setup();
    const gate = new Gate();
    const ended = new Calls();
    space.effect(async () => {
      await gate.opened;
      ended.note(1);
    });
    const before = watch(space.idle());
    await quiet();
    scheduler.dispose();
    const after = watch(space.idle());
    await quiet();
    expect([before.done, after.done]).toEqual([false, false]);
    gate.open();
    await quiet();
    expect([before.done, after.done, watch(space.idle()).done, ended.count]).toEqual([true, true, false, 1]);
    await space.idle();
  });

  test("[R7] no node runs after dispose", async () => {
    const { space, scheduler, quiet } = await setup();
    const a = space.cell<number>("a");
    const seen = new Calls();
    a.sink(seen.note);
    space.flush();
    seen.take();
    a.set(1);
    scheduler.dispose();
    space.flush();
    await quiet();
    expect(seen.take()).toEqual([]);
  });

  test("[R8] a child without a reader runs once and sleeps; one that gets a reader in the same pass stays awake", async () => {
    const { space, scheduler } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    space.effect(() => {
      space.computed("lonely", () => a.get());
      space.computed("read", () => a.get());
      space.effect(() => space.cell("read").get());
    });
    await space.idle();
    const [lonely, read] = [scheduler.find("lonely"), scheduler.find("read")];
    expect([lonely?.runs, lonely?.live, lonely?.provisional]).toEqual([1, false, false]);
    expect([read?.runs, read?.live, read?.provisional]).toEqual([1, true, false]);
    a.set(2);
    await space.idle();
    expect([lonely?.runs, read?.runs]).toEqual([1, 2]);
    scheduler.checkInvariants();
  });

  test("[R8] a debounced child is waited for and runs once", async () => {
    const { space, scheduler, host } = await setup();
    let made = false;
    space.effect(() => {
      if (made) return;
      made = true;
      space.computed("child", () => 1, { debounceMs: 200 });
    });
    await host.run(() => space.idle());
    expect(host.monotonic()).toBeGreaterThanOrEqual(180);
    const child = scheduler.find("child");
    expect([child?.runs, child?.live]).toEqual([1, false]);
  });

  test("[R8] a node that runs again finds the children of its last run", async () => {
    const { space, scheduler } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const runs = new Calls();
    // The same function each time: it captures no input of the effect.
    const five = () => {
      runs.note(1);
      return 5;
    };
    space.effect(() => {
      a.get();
      space.computed("child", five).get();
    });
    await space.idle();
    const { nodes } = scheduler.getStats();
    a.set(2);
    await space.idle();
    expect(scheduler.getStats().nodes).toBe(nodes);
    expect(runs.count).toBe(1);
  });

  test("[R9] a node that is removed while it runs leaves no reads, no writes and no value", async () => {
    const { space, scheduler, quiet } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    b.set(1);
    await quiet();
    let cancel = () => {};
    const late = space.computed("late", () => b.get());
    cancel = space.effect(() => {
      b.set(a.get() === 1 ? 1 : 2);
      if (a.get() === 1) return;
      cancel();
      late.get();
    });
    space.flush();
    a.set(2);
    space.flush();
    expect(b.get()).toBe(1);
    expect([late.node.live, late.address.edges]).toEqual([false, 0]);
    scheduler.checkInvariants();
    const gate = new Gate();
    const cancelAsync = space.effect(async (run) => {
      await gate.opened;
      run.within(() => b.set(9));
    });
    space.flush();
    cancelAsync();
    gate.open();
    await quiet();
    expect(b.get()).toBe(1);
    scheduler.checkInvariants();
  });

  test("[R9] removing a node removes the nodes that it created, and those that they created", async () => {
    const { space, scheduler } = await setup();
    const source = space.cell<number>("source");
    source.set(1);
    const inner = () => space.computed("inner", () => source.get()).get();
    const middle = () => space.computed("middle", inner).get();
    const outer = space.computed("outer", middle);
    const beside = space.computed("beside", () => source.get());
    for (const node of [outer, beside]) node.sink(() => undefined);
    space.flush();
    expect(scheduler.find("inner")?.runs).toBe(1);
    outer.dispose();
    expect(["outer", "middle", "inner", "beside"].map((id) => scheduler.find(id)?.id)).toEqual([
      undefined,
      undefined,
      undefined,
      "beside",
    ]);
    scheduler.checkInvariants();
  });

  test("[R9] a removed writer leaves its readers with the last value, and another may take its place", async () => {
    const { space, scheduler } = await setup();
    const c = space.computed("c", () => 1);
    const seen = new Calls();
    c.sink(seen.note);
    space.flush();
    c.dispose();
    scheduler.checkInvariants();
    space.computed("c", () => 2);
    space.flush();
    scheduler.checkInvariants();
    expect(seen.take()).toEqual([1, 2]);
  });

  test("[R10] flush completes synchronous work, and is refused inside a transaction", async () => {
    const { space } = await setup();
    const a = space.cell<number>("a");
    const seen = new Calls();
    a.sink(seen.note);
    a.set(1);
    space.flush();
    expect(seen.take()).toEqual([1]);
    await expect(space.transact(() => space.flush())).rejects.toThrow("flush after it");
  });

  test("[R10] a long pass gives the thread back, and a flush finishes it", async () => {
    const { space, host, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(0);
    const seen = new Calls();
    for (let i = 0; i < 300; i++) {
      space.effect(() => {
        host.elapse(1);
        seen.note(a.get());
      });
    }
    await Promise.resolve();
    await Promise.resolve();
    expect(seen.count).toBe(128);
    space.flush();
    expect(seen.count).toBe(300);
    await quiet();
    expect(seen.count).toBe(300);
    a.set(1);
    await quiet();
    expect(seen.count).toBe(600);
    expect(host.pendingTasks).toBe(0);
  });
});
