/** How often nodes run in the workloads of `bench/reactive`: exactly once for each change of their inputs. */
import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";

class Counted {
  readonly space: Space;
  runs = 0;

  private constructor(space: Space) {
    this.space = space;
  }

  static async open(): Promise<Counted> {
    const host = simulatedHost(1);
    return new Counted(await Space.open({ store: memoryStore({ host }), host, name: "counts" }));
  }

  source<T>(id: string, value: T): Cell<T> {
    const cell = this.space.cell(id) as Cell<T>;
    cell.set(value);
    return cell;
  }

  computed<T>(id: string, compute: () => T): Cell<T> {
    const counted = () => {
      this.runs++;
      return compute();
    };
    return this.space.computed<T>(id, counted) as Cell<T>;
  }

  effect(run: () => void): void {
    this.space.effect(() => {
      this.runs++;
      run();
    });
  }

  /** The number of runs of the change; all nodes have settled before it. */
  runsFor(change: () => void): number {
    this.space.flush();
    this.runs = 0;
    change();
    this.space.flush();
    return this.runs;
  }
}

function chain(counted: Counted, first: Cell<number>, length: number): Cell<number> {
  let last = first;
  for (let i = 0; i < length; i++) {
    const before = last;
    last = counted.computed(`link ${i}`, () => (before.get() ?? 0) + 1);
  }
  return last;
}

function fields(count: number): Record<string, number> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]));
}

describe("run counts", () => {
  test("[I3] (a) of 10,000 computations of one source only the observed one runs", async () => {
    const counted = await Counted.open();
    const source = counted.source("source", 0);
    const all = Array.from({ length: 10_000 }, (_, i) => counted.computed(`c${i}`, () => (source.get() ?? 0) + i));
    counted.space.effect(() => void all[0]?.get());
    expect(counted.runsFor(() => source.set(1))).toBe(1);
  });

  test("[I3] (b) nodes that are not observed do not run", async () => {
    const counted = await Counted.open();
    const source = counted.source("source", 0);
    for (let i = 0; i < 1000; i++) counted.computed(`c${i}`, () => source.get());
    expect(counted.runsFor(() => source.set(1))).toBe(0);
  });

  test("[I3] (c) a chain of 1,000 runs 1,000 times", async () => {
    const counted = await Counted.open();
    const source = counted.source("source", 0);
    const last = chain(counted, source, 999);
    let seen: number | undefined;
    counted.effect(() => {
      seen = last.get();
    });
    expect(counted.runsFor(() => source.set(1))).toBe(1000);
    expect(seen).toBe(1000);
  });

  test("[I3] (d) a grid of 495 in which every node reads two runs each of them once, and the effect once", async () => {
    const counted = await Counted.open();
    const source = counted.source("source", 1);
    let above: Cell<number>[] = Array.from({ length: 5 }, () => source);
    for (let row = 0; row < 99; row++) {
      const upper = above;
      above = upper.map((left, i) => {
        const right = upper[(i + 1) % 5] as Cell<number>;
        return counted.computed(`${row} ${i}`, () => ((left.get() ?? 0) + (right.get() ?? 0)) % 1_000_003);
      });
    }
    counted.effect(() => {
      for (const node of above) node.get();
    });
    expect(counted.runsFor(() => source.set(2))).toBe(495 + 1);
  });

  test("[I3] (e) a chain of 10,000 with an unchanged first output runs once", async () => {
    const counted = await Counted.open();
    const source = counted.source("source", 0);
    const parity = counted.computed("parity", () => (source.get() ?? 0) % 2);
    const last = chain(counted, parity, 9999);
    counted.effect(() => void last.get());
    expect(counted.runsFor(() => source.set(2))).toBe(1);
  });

  test("[I3] (f) of 10,000 readers of a document's keys only the reader of the written key runs", async () => {
    const counted = await Counted.open();
    const document = counted.source("document", fields(10_000));
    for (let i = 0; i < 10_000; i++) {
      const key = document.key(`k${i}`);
      counted.effect(() => void key.get());
    }
    expect(counted.runsFor(() => document.key("k7").set(-1))).toBe(1);
    // (f2) The whole is replaced by one that differs in one key.
    expect(counted.runsFor(() => document.set({ ...fields(10_000), k7: -2 }))).toBe(1);
    expect(counted.runsFor(() => document.set({ ...fields(10_000), k7: -2 }))).toBe(0);
  });

  test("[I3] (g) 100 effects that read other cells than before run 100 times, and know the new ones afterwards", async () => {
    const counted = await Counted.open();
    const selector = counted.source("selector", 0);
    const sets = [0, 1].map((set) => Array.from({ length: 20 }, (_, i) => counted.source(`${set} ${i}`, set)));
    for (let i = 0; i < 100; i++) {
      counted.effect(() => {
        for (const cell of sets[selector.get() ?? 0] ?? []) cell.get();
      });
    }
    expect(counted.runsFor(() => selector.set(1))).toBe(100);
    expect(counted.runsFor(() => sets[0]?.[3]?.set(9))).toBe(0);
    expect(counted.runsFor(() => sets[1]?.[3]?.set(9))).toBe(100);
    expect(counted.runsFor(() => selector.set(0))).toBe(100);
    expect(counted.runsFor(() => sets[1]?.[3]?.set(8))).toBe(0);
  });

  test("[I3] (h) an element inserted into a mapped list of 10,000 runs once", async () => {
    const counted = await Counted.open();
    const list = counted.source<readonly { readonly id: number }[]>(
      "list",
      Array.from({ length: 10_000 }, (_, id) => ({ id })),
    );
    const double = (element: Cell<{ readonly id: number }>) => {
      counted.runs++;
      return (element.get()?.id ?? 0) * 2;
    };
    const mapped = counted.space.map("mapped", list, double, { key: ({ id }) => id });
    let seen: readonly number[] = [];
    counted.space.effect(() => {
      seen = mapped.get() ?? [];
    });
    expect(counted.runsFor(() => list.splice(5000, 0, { id: 10_000 }))).toBe(1);
    expect(seen[5000]).toBe(20_000);
    expect(seen[10_000]).toBe(9999 * 2);
  });

  test("[I3] (i) a thousand writes in one transaction are one run", async () => {
    const counted = await Counted.open();
    const source = counted.source("source", 0);
    counted.effect(() => void source.get());
    const runs = counted.runsFor(() => {
      void counted.space.transact(() => {
        for (let i = 1; i <= 1000; i++) source.set(i);
      });
    });
    expect(runs).toBe(1);
  });

  test("[I3] (k) a chain of 100,000 is gone through, when first looked at and when its source changes", async () => {
    const counted = await Counted.open();
    const source = counted.source("source", 0);
    const last = chain(counted, source, 100_000);
    let seen: number | undefined;
    counted.space.effect(() => {
      seen = last.get();
    });
    counted.space.flush();
    expect(seen).toBe(100_000);
    expect(counted.runsFor(() => source.set(1))).toBe(100_000);
    expect(seen).toBe(100_001);
  });
});
