import { describe, expect, test } from "#test";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";

describe("a read of plain code", () => {
  test("[R80] computes a value that no one observes, through computed values it reads", async () => {
    const { space, scheduler } = await setup();
    const price = space.cell<number>("price");
    const runs = new Calls<string>();
    const net = space.computed("net", () => {
      runs.note("net");
      return price.get() ?? 0;
    });
    const gross = space.computed("gross", () => {
      runs.note("gross");
      return (net.get() ?? 0) * 2;
    });
    price.set(5);
    expect(gross.get()).toBe(10);
    price.set(6);
    expect(gross.get()).toBe(12);
    expect(gross.get()).toBe(12);
    expect(runs.take()).toEqual(["gross", "net", "net", "gross"]);
    expect([net.node.live, gross.node.live]).toEqual([false, false]);
    scheduler.checkInvariants();
  });

  test("[R80] a plain read of an observed value right after a write is up to date, before effects have run", async () => {
    const { space, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const double = space.computed("double", () => (a.get() ?? 0) * 2);
    const seen = new Calls<unknown>();
    double.sink(seen.note);
    await quiet();
    seen.take();
    a.set(2);
    expect(double.get()).toBe(4);
    expect(seen.take()).toEqual([]);
    await quiet();
    expect(seen.take()).toEqual([4]);
  });

  test("[R80] a plain read runs only the dependencies of its value", async () => {
    const { space } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const runs = new Calls<string>();
    const other = space.computed("other", () => runs.note(`other ${a.get()}`));
    other.sink(() => undefined);
    const asked = space.computed("asked", () => a.get());
    space.flush();
    runs.take();
    a.set(2);
    expect(asked.get()).toBe(2);
    expect(runs.take()).toEqual([]);
    space.flush();
    expect(runs.take()).toEqual(["other 2"]);
  });

  test("[R80] computes while another computation awaits", async () => {
    const { space, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const ends: (() => void)[] = [];
    const slow = space.computed("slow", () => new Promise<number>((resolve) => ends.push(() => resolve(1))));
    slow.sink(() => undefined);
    await quiet();
    expect(ends).toHaveLength(1);
    const inner = space.computed("inner", () => (a.get() ?? 0) + 1);
    const outer = space.computed("outer", () => (inner.get() ?? 0) * 10);
    expect(outer.get()).toBe(20);
    a.set(2);
    expect(outer.get()).toBe(30);
    expect(slow.get()).toBe(undefined);
    ends[0]?.();
    await quiet();
    expect(slow.get()).toBe(1);
  });

  test("[R80] after a computation was replaced gives the value of the new one", async () => {
    const { space } = await setup();
    const first = space.computed("c", () => 1);
    expect(first.get()).toBe(1);
    first.dispose();
    expect(space.computed("c", () => 2).get()).toBe(2);
  });

  test("[R80] a plain read of a chain of 2,000 computed values runs each once for a change", async () => {
    const { space } = await setup();
    const source = space.cell<number>("source");
    source.set(0);
    let runs = 0;
    let last = space.computed("c0", () => source.get() ?? 0);
    for (let n = 1; n < 2_000; n++) {
      const before = last;
      last = space.computed(`c${n}`, () => {
        runs++;
        return (before.get() ?? 0) + 1;
      });
    }
    expect(last.get()).toBe(1_999);
    runs = 0;
    source.set(1);
    expect(last.get()).toBe(2_000);
    expect(runs).toBe(1_999);
  });
});

describe("a computed value that fails", () => {
  test("[R81] throws its error to plain code, and fails the computations that read it with the same error", async () => {
    const { space, scheduler } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const errors = new Calls<unknown>();
    scheduler.onError((error, node) => errors.note([node?.id, (error as Error).message]));
    const odd = space.computed("odd", () => {
      if ((a.get() ?? 0) % 2 === 1) throw new Error(`${a.get()} is odd`);
      return a.get();
    });
    const reader = space.computed("reader", () => odd.get());
    expect(() => reader.get()).toThrow("1 is odd");
    expect(reader.error).toBe(odd.error);
    a.set(3);
    expect(() => reader.get()).toThrow("3 is odd");
    a.set(4);
    expect(reader.get()).toBe(4);
    // Reported where it was thrown, and nowhere else.
    expect(errors.take()).toEqual([
      ["odd", "1 is odd"],
      ["odd", "3 is odd"],
    ]);
  });

  test("[R81] wakes an observer again when it gives no value instead of an error", async () => {
    const { space } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const c = space.computed("c", () => {
      if (a.get() === 1) throw new Error("one");
      return undefined;
    });
    const seen = new Calls<unknown>();
    space.effect(() => {
      try {
        seen.note(c.get());
      } catch (error) {
        seen.note((error as Error).message);
      }
    });
    space.flush();
    a.set(2);
    space.flush();
    expect(seen.take()).toEqual(["one", undefined]);
  });
});

describe("untracked and peek", () => {
  test("[R82] register no dependency, and read a value that is up to date", async () => {
    const { space } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    b.set(1);
    const sum = space.computed("sum", () => (b.get() ?? 0) + 1);
    const seen = new Calls<unknown>();
    space.effect(() => seen.note([a.get(), b.peek(), space.untracked(() => sum.get())]));
    space.flush();
    b.set(2);
    space.flush();
    a.set(2);
    space.flush();
    expect(seen.take()).toEqual([
      [1, 1, 2],
      [2, 2, 3],
    ]);
  });

  test("[R82] a computation that runs inside untracked code registers its own reads", async () => {
    const { space } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const c = space.computed("c", () => a.get());
    expect(space.untracked(() => c.get())).toBe(1);
    a.set(2);
    expect(c.get()).toBe(2);
  });

  test("[R82] an untracked read carries the label of the value", async () => {
    const { space } = await setup();
    const secret = space.cell<string>("secret", undefined, { label: ["secret"] });
    secret.set("x");
    const copy = space.computed("copy", () => secret.peek());
    expect(copy.get()).toBe("x");
    expect(space.labelsOf(copy)).toEqual(["secret"]);
  });
});

describe("a batch", () => {
  test("[R83] settles once at its end, also if it throws; reads inside it compute and run no effect", async () => {
    const { space } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const double = space.computed("double", () => (a.get() ?? 0) * 2);
    const seen = new Calls<unknown>();
    double.sink(seen.note);
    space.flush();
    space.batch(() => {
      a.set(2);
      space.flush();
      expect(double.get()).toBe(4);
      space.batch(() => a.set(3));
      expect(seen.take()).toEqual([2]);
    });
    expect(seen.take()).toEqual([6]);
    const failing = () =>
      space.batch(() => {
        a.set(4);
        throw new Error("no");
      });
    expect(failing).toThrow("no");
    expect(seen.take()).toEqual([8]);
  });
});

describe("an effect", () => {
  test("[R84] calls the function that it returned before its next run and when it ends, untracked", async () => {
    const { space } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    b.set(1);
    const seen = new Calls<string>();
    const stop = space.effect(() => {
      const value = a.get();
      seen.note(`run ${value}`);
      return () => seen.note(`clean ${value} ${b.get()}`);
    });
    space.flush();
    a.set(2);
    space.flush();
    b.set(2);
    space.flush();
    stop();
    stop();
    expect(seen.take()).toEqual(["run 1", "clean 1 1", "run 2", "clean 2 2"]);
  });

  test("[R84] an asynchronous effect's clean-up is the function that it resolves to", async () => {
    const { space, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const seen = new Calls<string>();
    space.effect(async () => {
      const value = a.get();
      await Promise.resolve();
      return () => seen.note(`clean ${value}`);
    });
    await quiet();
    a.set(2);
    await quiet();
    expect(seen.take()).toEqual(["clean 1"]);
  });

  test("[R84] an error of an effect's clean-up is reported, and the effect still runs", async () => {
    const { space, scheduler } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const errors = new Calls<string>();
    scheduler.onError((error) => errors.note((error as Error).message));
    const seen = new Calls<unknown>();
    space.effect(() => {
      seen.note(a.get());
      return () => {
        throw new Error("clean-up failed");
      };
    });
    space.flush();
    a.set(2);
    space.flush();
    expect(seen.take()).toEqual([1, 2]);
    expect(errors.take()).toEqual(["clean-up failed"]);
  });

  test("[R85] ends the effects that its last run created, the last one first", async () => {
    const { space, scheduler } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    b.set(1);
    const seen = new Calls<string>();
    const stop = space.effect(() => {
      const outer = a.get();
      for (const name of ["x", "y"]) {
        space.effect(() => {
          seen.note(`${name}${outer} ${b.get()}`);
          return () => seen.note(`end ${name}${outer}`);
        });
      }
    });
    space.flush();
    expect(seen.take()).toEqual(["x1 1", "y1 1"]);
    a.set(2);
    space.flush();
    expect(seen.take()).toEqual(["end y1", "end x1", "x2 1", "y2 1"]);
    stop();
    expect(seen.take()).toEqual(["end y2", "end x2"]);
    b.set(2);
    space.flush();
    expect(seen.take()).toEqual([]);
    scheduler.checkInvariants();
  });
});
