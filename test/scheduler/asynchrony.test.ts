import { describe, expect, test } from "#test";
import type { RunHandle } from "../../src/scheduler/node.ts";
import { Gate } from "../store/faulty-store.ts";
import { Calls, setup } from "./scheduler-setup.ts";

describe("asynchronous nodes", () => {
  test("[R15] no other node runs while an asynchronous run is awaited", async () => {
    const { space, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const gate = new Gate();
    const log: string[] = [];
    const slow = space.computed("slow", async () => {
      log.push("slow began");
      const value = a.get();
      await gate.opened;
      log.push("slow ended");
      return value;
    });
    slow.sink((value) => log.push(`slow is ${value}`));
    a.sink((value) => log.push(`a is ${value}`));
    await quiet();
    expect(log).toEqual(["slow began"]);
    gate.open();
    await space.idle();
    expect(log).toEqual(["slow began", "slow ended", "slow is 1", "a is 1"]);
  });

  test("[R15] a read that meets an asynchronous computation waits for it by starting over", async () => {
    const { space, scheduler, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const gate = new Gate();
    const far = space.computed("far", async () => {
      const value = a.get() ?? 0;
      await gate.opened;
      return value + 1;
    });
    const near = space.computed("near", () => (far.get() ?? Number.NaN) * 2);
    const seen = new Calls();
    near.sink(seen.note);
    await quiet();
    expect(seen.take()).toEqual([]);
    gate.open();
    await quiet();
    expect(seen.take()).toEqual([4]);
    expect(near.node.runs).toBe(1);
    scheduler.checkInvariants();
  });

  /** `outer` and `inner` are asynchronous; `outer` reads `inner` before its first await. */
  async function nested() {
    const parts = await setup();
    const { space } = parts;
    const [user, gate] = [space.cell<string>("user"), new Gate()];
    user.set("ada");
    const inner = space.computed("inner", async () => {
      const name = user.get();
      await gate.opened;
      return name?.toUpperCase();
    });
    const outer = space.computed("outer", async () => {
      const name = inner.get();
      await Promise.resolve();
      return `hello, ${name}`;
    });
    return { ...parts, user, gate, outer };
  }

  test("[R51] an asynchronous computation that reads another before its first await waits for it", async () => {
    const { scheduler, gate, outer, quiet } = await nested();
    const seen = new Calls();
    outer.sink(seen.note);
    await quiet();
    expect(seen.take()).toEqual([]);
    gate.open();
    await quiet();
    expect(seen.take()).toEqual(["hello, ADA"]);
    expect(outer.node.runs).toBe(1);
    scheduler.checkInvariants();
  });

  test("[R51] a transaction and a handler commit the values of nested asynchronous computations", async () => {
    const { host, space, gate, outer, quiet } = await nested();
    const [written, handled] = [space.cell<string>("written"), space.cell<string>("handled")];
    const stream = space.stream<number>("stream");
    stream.handle(() => handled.set(outer.get() ?? "nothing"));
    const outcome = stream.send(1).outcome;
    const done = space.transact(() => written.set(outer.get() ?? "nothing"));
    await quiet();
    expect([written.get(), handled.get()]).toEqual([undefined, undefined]);
    gate.open();
    await host.run(() => done);
    expect((await outcome).kind).toBe("handled");
    expect([written.get(), handled.get()]).toEqual(["hello, ADA", "hello, ADA"]);
  });

  test("[R51] an asynchronous run waits over a synchronous computation between the two", async () => {
    const { space, scheduler, gate, outer, quiet } = await nested();
    const middle = space.computed("middle", () => `${outer.get()}!`);
    const seen = new Calls();
    space.effect(async () => {
      seen.note(middle.get());
      await Promise.resolve();
    });
    await quiet();
    expect(seen.take()).toEqual([]);
    gate.open();
    await quiet();
    expect(seen.take()).toEqual(["hello, ADA!"]);
    scheduler.checkInvariants();
  });

  test("[R52] a run that catches the interruption of a read starts over all the same", async () => {
    const { space, gate, outer, quiet } = await nested();
    const guarded = space.computed("guarded", () => {
      try {
        return outer.get();
      } catch {
        return "caught";
      }
    });
    const alsoGuarded = space.computed("alsoGuarded", async () => {
      try {
        return guarded.get();
      } catch {
        await Promise.resolve();
        return "caught";
      }
    });
    const seen = new Calls();
    alsoGuarded.sink(seen.note);
    await quiet();
    expect(seen.take()).toEqual([]);
    gate.open();
    await quiet();
    expect(seen.take()).toEqual(["hello, ADA"]);
  });

  test("[R15] reads after an await are registered through the run, links and new computations included", async () => {
    const { space, scheduler, quiet } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    b.set(10);
    const twice = space.computed("twice", () => (b.get() ?? 0) * 2);
    const link = space.cell<number>("link");
    space.cell<unknown>("link").set(twice.asLink());
    const sum = space.computed("sum", async (run: RunHandle) => {
      const first = a.get() ?? 0;
      await Promise.resolve();
      return first + run.within(() => link.get() ?? Number.NaN);
    });
    const seen = new Calls();
    sum.sink(seen.note);
    await quiet();
    b.set(20);
    await quiet();
    a.set(2);
    await quiet();
    expect(seen.take()).toEqual([21, 41, 42]);
    scheduler.checkInvariants();
  });

  test("[R15] reads of a handle between two runs register no dependency", async () => {
    const { space, scheduler, quiet } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    b.set(10);
    let kept: RunHandle | undefined;
    const runs = new Calls();
    space.effect((run: RunHandle) => {
      kept = run;
      runs.note(a.get());
    });
    await quiet();
    expect(kept?.read(b.address)).toBe(10);
    b.set(20);
    await quiet();
    expect(kept?.within(() => b.get())).toBe(20);
    b.set(30);
    a.set(2);
    await quiet();
    expect(runs.take()).toEqual([1, 2]);
    scheduler.checkInvariants();
  });

  test("[R15] a handle refers to its own node's run, even with other runs inside it", async () => {
    const { space, scheduler, quiet } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    b.set(10);
    let outer: RunHandle | undefined;
    const [inner, outerRuns, innerRuns] = [space.cell<number>("inner"), new Calls(), new Calls()];
    space.computed("inner", () => {
      innerRuns.note(outer?.read(b.address));
      return a.get();
    });
    space.effect((run: RunHandle) => {
      outer = run;
      outerRuns.note(inner.get());
    });
    await quiet();
    b.set(20);
    await quiet();
    expect(outerRuns.take()).toEqual([1, 1]);
    expect(innerRuns.take()).toEqual([10]);
    scheduler.checkInvariants();
  });

  test("[R15] a document read after an await is loaded", async () => {
    const { space, open, quiet } = await setup();
    const other = await open();
    other.space.cell("far").set(7);
    await quiet();
    const far = space.cell("far").address;
    const seen = new Calls();
    space.effect(async (run: RunHandle) => {
      await Promise.resolve();
      seen.note(run.read(far));
    });
    await quiet();
    expect(seen.take()).toEqual([7]);
  });

  test("[R15] each stretch of an asynchronous run is a commit of its own that names the node", async () => {
    const { space, line, quiet } = await setup();
    const [a, out] = [space.cell<number>("a"), space.cell<number[]>("out")];
    a.set(1);
    out.set([]);
    await quiet();
    const before = line.arrived.length;
    const gate = new Gate();
    const runs = new Calls();
    space.effect(async (run: RunHandle) => {
      const value = a.get() ?? 0;
      runs.note(value);
      out.push(value);
      await gate.opened;
      run.within(() => {
        out.push(value * 10);
        out.push(value * 100);
      });
    });
    await quiet();
    expect(line.arrived.length - before).toBe(1);
    gate.open();
    await quiet();
    expect(line.arrived.length - before).toBe(2);
    expect(out.get()).toEqual([1, 10, 100]);
    expect(runs.take()).toEqual([1]);
    out.address.home.replica.checkInvariants();
  });

  test("[R15] others' commits that arrive while it waits are not undone when a stretch fails", async () => {
    const { space, open, quiet } = await setup();
    const doc = space.cell<{ x: number; y: number }>("doc");
    doc.set({ x: 0, y: 0 });
    await quiet();
    const other = await open();
    await other.space.cell("doc").pull();
    const gate = new Gate();
    space.effect(async (run: RunHandle) => {
      doc.key("x").set(1);
      await gate.opened;
      run.within(() => {
        doc.key("y").set(5);
        throw new Error("failed");
      });
    });
    await quiet();
    other.space.cell<{ x: number }>("doc").key("x").set(7);
    await quiet();
    gate.open();
    await quiet();
    expect(doc.get()).toEqual({ x: 7, y: 0 });
    doc.address.home.replica.checkInvariants();
  });

  test("[R15] an asynchronous computation that fails calls no sink, throws its error to readers, and recovers", async () => {
    const { space, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const c = space.computed("c", async () => {
      const value = a.get() ?? 0;
      await Promise.resolve();
      if (value === 2) throw new Error("two");
      return value;
    });
    const seen = new Calls();
    c.sink(seen.note);
    for (const value of [1, 2, 3]) {
      a.set(value);
      await quiet();
      if (value === 2) expect(() => c.get()).toThrow("two");
    }
    expect(seen.take()).toEqual([1, 3]);
    expect(c.error).toBeUndefined();
  });
});
