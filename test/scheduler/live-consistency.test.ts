import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { rejected } from "../../src/store/rejection.ts";
import { Gate } from "../store/faulty-store.ts";
import { Calls, setup } from "./scheduler-setup.ts";

describe("observed values are up to date at rest", () => {
  test("[I1] a sink of a computed value is called with its result, once for each change", async () => {
    const { space } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const c = space.computed("c", () => (a.get() ?? 0) * 10);
    const seen = new Calls();
    c.sink(seen.note);
    await space.idle();
    expect(seen.take()).toEqual([10]);
    a.set(2);
    await space.idle();
    expect(seen.take()).toEqual([20]);
  });

  test("[I1] of two branches only the chosen one is read", async () => {
    const { space } = await setup();
    const [which, left, right] = [space.cell<boolean>("which"), space.cell<number>("l"), space.cell<number>("r")];
    which.set(true);
    left.set(1);
    right.set(2);
    const runs = new Calls();
    const chosen = space.computed("chosen", () => {
      const value = which.get() ? left.get() : right.get();
      runs.note(value);
      return value;
    });
    chosen.sink(() => undefined);
    await space.idle();
    which.set(false);
    await space.idle();
    expect(runs.take()).toEqual([1, 2]);
    left.set(10);
    await space.idle();
    expect(runs.take()).toEqual([]);
    right.set(20);
    await space.idle();
    expect(runs.take()).toEqual([20]);
  });

  test("[I1] across a diamond the join runs once and never sees one side old and the other new", async () => {
    const { space } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const b = space.computed("b", () => (a.get() ?? 0) + 1);
    const c = space.computed("c", () => (a.get() ?? 0) * 2);
    const joined = new Calls();
    const d = space.computed("d", () => {
      const pair = [b.get(), c.get()];
      joined.note(pair);
      return pair;
    });
    const seen = new Calls();
    d.sink(seen.note);
    await space.idle();
    a.set(5);
    await space.idle();
    expect(joined.take()).toEqual([
      [2, 2],
      [6, 10],
    ]);
    expect(seen.count).toBe(2);
  });

  test("[I1] a reader that was there before its writer sees the output when the writer comes", async () => {
    const { space } = await setup();
    const later = space.cell<number>("later");
    const seen = new Calls();
    later.sink(seen.note);
    await space.idle();
    const a = space.cell<number>("a");
    a.set(3);
    space.computed("later", () => (a.get() ?? 0) * 2);
    await space.idle();
    expect(seen.take()).toEqual([undefined, 6]);
  });

  test("[I1] a writer that comes while its document is being loaded is not overwritten by the load", async () => {
    const { space, line, quiet } = await setup();
    const gate = new Gate();
    line.plan = ({ method }) => (method === "load" ? { answered: gate.opened } : {});
    const seen = new Calls();
    space.cell("made").sink(seen.note);
    space.flush();
    space.computed("made", () => "here");
    await quiet();
    gate.open();
    await quiet();
    expect(seen.take()).toEqual(["here"]);
  });

  test("[I1] a link that leads elsewhere takes its reader along; the old target is of no interest", async () => {
    const { space } = await setup();
    const [x, y, link] = [space.cell<number>("x"), space.cell<number>("y"), space.cell<unknown>("link")];
    x.set(1);
    y.set(2);
    link.set(x.asLink());
    const seen = new Calls();
    link.sink(seen.note);
    await space.idle();
    link.set(y.asLink());
    await space.idle();
    x.set(10);
    await space.idle();
    y.set(20);
    await space.idle();
    expect(seen.take()).toEqual([1, 2, 20]);
  });

  test("[I1] a reader below a place that becomes a link reads through it, even if the place was absent", async () => {
    const { space } = await setup();
    const target = space.cell("target");
    target.set({ name: { first: "Ada" } });
    const seen = new Calls();
    const place = space.cell<{ name: { first: string } }>("place");
    place.key("name").key("first").sink(seen.note);
    await space.idle();
    space.cell("place").set(target.asLink());
    await space.idle();
    expect(seen.take()).toEqual([undefined, "Ada"]);
  });

  test("[I1] the absent target of a link wakes the reader when another process creates it", async () => {
    const { space, open, quiet } = await setup();
    const link = space.cell<unknown>("link");
    link.set(space.cell("target").asLink());
    const seen = new Calls();
    link.sink(seen.note);
    await quiet();
    const other = await open();
    other.space.cell("target").set("there");
    await quiet();
    expect(seen.take()).toEqual([undefined, "there"]);
  });

  test("[I1] a declared read of a document that is not here loads it when demand comes", async () => {
    const { space, open, quiet } = await setup();
    const other = await open();
    other.space.cell("far").set(7);
    await quiet();
    const far = space.cell<never>("far");
    const seen = new Calls();
    space.effect(() => seen.note(far.get()), { reads: [far] });
    await quiet();
    expect(seen.seen.at(-1)).toBe(7);
  });

  test("[I1] an asynchronous effect with an input that changes during its run runs again afterwards", async () => {
    const { space, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const gates = [new Gate(), new Gate()];
    const log: string[] = [];
    let run = 0;
    space.effect(async () => {
      const value = a.get();
      log.push(`began ${value}`);
      await gates[run++]?.opened;
      log.push(`ended ${value}`);
    });
    await quiet();
    a.set(2);
    await quiet();
    expect(log).toEqual(["began 1"]);
    gates[0]?.open();
    await quiet();
    expect(log).toEqual(["began 1", "ended 1", "began 2"]);
    gates[1]?.open();
    await space.idle();
    expect(log).toEqual(["began 1", "ended 1", "began 2", "ended 2"]);
  });

  test("[I1] a child that writes a place which its creator has read brings the creator back in the same idle", async () => {
    const { space } = await setup();
    const samples = new Calls();
    let childRuns = 0;
    const output = space.cell<number>("child");
    let made = false;
    space.effect(() => {
      samples.note(output.get() ?? 1);
      if (made) return;
      made = true;
      space.computed("child", () => {
        childRuns++;
        return 2;
      });
    });
    await space.idle();
    expect(samples.take()).toEqual([1, 2]);
    expect(childRuns).toBe(1);
  });

  test("[I1] readers of a rejected commit return to the confirmed values", async () => {
    const { space, line, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    await quiet();
    const double = space.computed("double", () => (a.get() ?? 0) * 2);
    const seen = new Calls();
    double.sink(seen.note);
    await quiet();
    line.plan = ({ method }) => (method === "commit" ? { instead: rejected("refused", "too-large", "no") } : {});
    a.set(5);
    space.flush();
    expect(seen.take()).toEqual([2, 10]);
    await quiet();
    expect(seen.take()).toEqual([2]);
    expect(a.get()).toBe(1);
  });

  test("[I1] a reader that was removed and registered again finds the changes meanwhile", async () => {
    const { space } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const c = space.computed("c", () => (a.get() ?? 0) + 1);
    const seen = new Calls();
    c.sink(seen.note)();
    const cancel = c.sink(seen.note);
    await space.idle();
    cancel();
    a.set(5);
    await space.idle();
    c.sink(seen.note);
    await space.idle();
    expect(seen.take()).toEqual([2, 6]);
  });

  test("[I1] plain writes to two spaces of one scheduler reach a reader of both", async () => {
    const { space, host } = await setup();
    const other = await Space.open({ store: memoryStore({ host }), host, name: "t", scheduler: space.scheduler });
    const [a, b] = [space.cell<number>("a"), other.cell<number>("b")];
    const seen = new Calls();
    space.effect(() => seen.note([a.get(), b.get()]));
    a.set(1);
    b.set(2);
    await space.idle();
    expect(seen.seen.at(-1)).toEqual([1, 2]);
  });
});
