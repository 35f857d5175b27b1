import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import { Space } from "../../src/cells/space.ts";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";

async function made() {
  const site = await setup();
  const { space, scheduler } = site;
  const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
  a.set(1);
  b.set(10);
  const runs = (id: string) => scheduler.getActionStats().find((node) => node.id === id)?.runs;
  return { ...site, a, b, runs };
}

describe("a computation that a run makes again", () => {
  test("[R8] [I1] a recreated computation uses the current variables of its creator, and runs once for each change", async () => {
    const { space, scheduler, a, b, runs } = await made();
    const seen = new Calls();
    const whole = space.computed("whole", () => {
      const x = a.get() ?? 0;
      const double = space.computed("double", () => x * 2).get() ?? 0;
      return double + (b.get() ?? 0);
    });
    whole.sink(seen.note);
    space.flush();
    a.set(2);
    space.flush();
    // Values that the creator reads after creating it are not in its function.
    b.set(20);
    space.flush();
    expect(seen.take()).toEqual([12, 14, 24]);
    expect([runs("whole"), runs("double")]).toEqual([3, 2]);
    scheduler.checkInvariants();
  });

  test("[R8] [I1] an effect that makes it is called once, with values that belong together", async () => {
    const { space, a } = await made();
    const seen = new Calls();
    const stop = space.effect(() => {
      const x = a.get() ?? 0;
      seen.note([x, space.computed("double", () => x * 2).get()]);
    });
    space.flush();
    a.set(2);
    space.flush();
    expect(seen.take()).toEqual([
      [1, 2],
      [2, 4],
    ]);
    stop();
  });

  test("[R8] [I1] nested computations and readers of a recreated computation run once for each change", async () => {
    const { space, a, runs } = await made();
    const seen = new Calls();
    const outer = space.computed("outer", () => {
      const x = a.get() ?? 0;
      const inner = space.computed("inner", () => space.computed("innermost", () => x * 2).get() ?? 0);
      return (inner.get() ?? 0) + 1;
    });
    outer.sink(seen.note);
    space.cell("innermost").sink(seen.note);
    space.flush();
    expect(seen.take()).toEqual([3, 2]);
    a.set(2);
    space.flush();
    expect(seen.take().sort()).toEqual([4, 5]);
    expect(["outer", "inner", "innermost"].map(runs)).toEqual([2, 2, 2]);
  });

  test("[R8] an unobserved recreated computation runs only when it is read", async () => {
    const { space, host, a, runs } = await made();
    const maker = space.computed("maker", () => {
      const x = a.get() ?? 0;
      space.computed("double", () => x * 2);
      return x;
    });
    maker.sink(() => undefined);
    await host.advance(1);
    const before = runs("double") ?? 0;
    a.set(2);
    await host.advance(1);
    expect(runs("double")).toBe(before);
    expect(await host.run(() => space.cell("double").pull())).toBe(4);
  });

  test("[R8] [R15] an asynchronous recreated computation, and one whose creator has written, settle", async () => {
    const { space, host, scheduler, a } = await made();
    const seen = new Calls();
    const log = space.cell<number>("log");
    space.effect(() => {
      const x = a.get() ?? 0;
      log.set(x);
      const slow = space.computed("slow", async () => {
        await undefined;
        return x * 2;
      });
      const quick = space.computed("quick", () => x * 3);
      seen.note([x, quick.get(), slow.get()]);
    });
    await host.run(() => space.settled());
    expect(seen.take().at(-1)).toEqual([1, 3, 2]);
    a.set(2);
    await host.run(() => space.settled());
    expect(seen.take().at(-1)).toEqual([2, 6, 4]);
    expect(scheduler.runDiagnosis().nonSettling).toEqual([]);
  });

  test("[R8] [R27] a list that a run makes again has its function, and keeps its children", async () => {
    const { space, scheduler, a, runs } = await made();
    scheduler.parts.introspection.checksIdempotency = true;
    const list = space.cell<{ id: string; n: number }[]>("list");
    list.set([
      { id: "p", n: 1 },
      { id: "q", n: 2 },
    ]);
    const seen = new Calls();
    const key = ({ id }: { id: string }) => id;
    const shown = space.computed("shown", () => {
      const x = a.get() ?? 0;
      const n = (element: Cell<{ id: string; n: number }>) => (element.get()?.n ?? 0) * x;
      const mapped = space.map("mapped", list, n, { key }).get();
      const kept = space.filter("kept", list, (element) => n(element) > 2, { key }).get();
      const flat = space.flatMap("flat", list, (element) => [n(element), x], { key }).get();
      return [mapped, kept?.map(key), flat] as never;
    });
    shown.sink(seen.note);
    space.flush();
    expect(seen.take()).toEqual([[[1, 2], [], [1, 1, 2, 1]]]);
    a.set(2);
    space.flush();
    expect(seen.take()).toEqual([[[2, 4], ["q"], [2, 2, 4, 2]]]);
    const nodes = scheduler.getStats().nodes;
    const before = ["mapped/p", "mapped/q"].map(runs);
    list.set([{ id: "q", n: 2 }]);
    space.flush();
    expect(seen.take()).toEqual([[[4], ["q"], [4, 2]]]);
    expect(["mapped/p", "mapped/q"].map(runs)).toEqual(before);
    list.set([{ id: "q", n: 3 }]);
    space.flush();
    // Those without an element have gone.
    expect(scheduler.getStats().nodes).toBe(nodes - 3);
    expect(scheduler.notIdempotent).toEqual([]);
    scheduler.checkInvariants();
  });

  test("[R8] [R27] a recreated list uses its new function, also if only the new one takes the position", async () => {
    const { space, a } = await made();
    const list = space.cell<number[]>("list");
    list.set([5, 6]);
    const seen = new Calls();
    const shown = space.computed("shown", () => {
      const plain = (element: Cell<number>) => element.get() ?? 0;
      const placed = (element: Cell<number>, index: Cell<number>) => (element.get() ?? 0) * 10 + (index.get() ?? 0);
      return space.map("mapped", list, a.get() === 1 ? plain : placed).get() as never;
    });
    shown.sink(seen.note);
    space.flush();
    a.set(2);
    space.flush();
    a.set(1);
    space.flush();
    expect(seen.take()).toEqual([
      [5, 6],
      [50, 61],
      [5, 6],
    ]);
  });

  test("[R8] [I7] after a restart it is taken up, and follows its creator from there", async () => {
    const [host, disk] = [simulatedHost(1), new MemoryDisk()];
    const runs = new Calls<string>();
    const begin = async () => {
      const store = memoryStore({ host, disk });
      const space = await Space.open({ store, host, name: "s", persist: { version: "1" } });
      const whole = await host.run(() =>
        space.restore(() => {
          const a = space.cell<number>("a");
          return space.computed("whole", () => {
            const x = a.get() ?? 0;
            const double = space.computed("double", () => {
              runs.note("double");
              return x * 2;
            });
            return double.get();
          });
        }),
      );
      return { space, whole };
    };
    const first = await begin();
    first.space.cell<number>("a").set(1);
    first.whole.sink(() => undefined);
    await host.run(() => first.space.settled());
    await host.run(() => first.space.close());
    runs.take();
    const second = await begin();
    const seen = new Calls();
    second.whole.sink(seen.note);
    await host.run(() => second.space.settled());
    expect([seen.take().at(-1), runs.take()]).toEqual([2, []]);
    second.space.cell<number>("a").set(2);
    await host.run(() => second.space.settled());
    expect([seen.take(), runs.take()]).toEqual([[4], ["double"]]);
  });

  test("[R8] [I1] [R30] random nested creators settle to the values of their functions, in few runs", async () => {
    for (let seed = 1; seed <= 120; seed++) {
      const { space, scheduler, host } = await setup({ seed });
      const random = new SeededRandom(seed);
      const cells = Array.from({ length: 4 }, (_, i) => space.cell<number>(`c${i}`));
      for (const cell of cells) cell.set(random.below(3));
      const value = (at: number) => cells[at]?.get() ?? 0;
      /** The places that a node reads before, in and after its children; the choice of children may depend on them. */
      interface Plan {
        readonly id: string;
        readonly before: readonly number[];
        readonly after: readonly number[];
        readonly makes: readonly Plan[];
        readonly picky: boolean;
      }
      const some = () => Array.from({ length: random.below(3) }, () => random.below(4));
      const plan = (id: string, depth: number): Plan => ({
        id,
        before: some(),
        after: some(),
        makes: Array.from({ length: depth === 0 ? 0 : 1 + random.below(2) }, (_, i) => plan(`${id}.${i}`, depth - 1)),
        picky: random.below(3) === 0,
      });
      const sum = (read: readonly number[]) => read.reduce((total, at) => total + value(at), 0);
      const evaluate = ({ id, before, after, makes, picky }: Plan, caught: number, isMade: boolean): number => {
        const known = (caught * 3 + sum(before)) % 1000;
        const made = makes.map((inner, i) => {
          if (picky && (known + i) % 2 === 1) return 0;
          if (!isMade) return evaluate(inner, known, false);
          return space.computed(inner.id, () => evaluate(inner, known, true)).get() ?? 0;
        });
        return (known + sum(after) + made.reduce((total, one) => total * 2 + one, id.length)) % 1000;
      };
      const plans = [plan("p", 3), plan("q", 2)];
      const seen = new Map<string, number>();
      const written = space.cell<number>("written");
      plans.forEach((whole, i) => {
        if (i === 1) {
          space.effect(() => {
            if (seed % 2 === 0) written.set(sum(whole.before));
            seen.set(whole.id, evaluate(whole, 0, true));
          });
        } else space.computed(whole.id, () => evaluate(whole, 0, true)).sink((now) => seen.set(whole.id, now ?? -1));
      });
      for (let step = 0; step < 25; step++) {
        space.flush();
        for (const whole of plans) {
          expect([seed, step, whole.id, seen.get(whole.id)]).toEqual([seed, step, whole.id, evaluate(whole, 0, false)]);
        }
        scheduler.checkInvariants();
        const runs = new Map(scheduler.getActionStats().map(({ id, runs }) => [id, runs]));
        for (let writes = random.below(3); writes >= 0; writes--) cells[random.below(4)]?.set(random.below(3));
        if (random.below(4) === 0) await host.advance(1);
        space.flush();
        // At most one run for each of its reads, and one for each creator above it.
        const often = scheduler.getActionStats().filter((node) => node.runs > (runs.get(node.id) ?? 0) + 4);
        expect([seed, step, often.map(({ id }) => id)]).toEqual([seed, step, []]);
      }
    }
  });
});
