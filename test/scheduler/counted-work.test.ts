import { describe, expect, test } from "#test";
import type { Computed } from "../../src/cells/computed.ts";
import type { Scheduler } from "../../src/scheduler/scheduler.ts";
import { isLongRun } from "../portable/long-run.ts";
import { Calls, setup } from "./scheduler-setup.ts";

const MANY = 100_000;

/** The scheduler's counted work during a step. */
function work(scheduler: Scheduler, act: () => void) {
  const before = scheduler.getStats();
  act();
  const after = scheduler.getStats();
  return {
    runs: after.runs - before.runs,
    readersVisited: after.readersVisited - before.readersVisited,
    indexWrites: after.indexWrites - before.indexWrites,
  };
}

/** A live chain of three over one source, beside a number of dormant nodes that read the same and their like. */
async function beside(dormant: number) {
  const { space, scheduler } = await setup();
  const a = space.cell<number>("a");
  a.set(0);
  const b = space.computed("b", () => (a.get() ?? 0) + 1);
  const c = space.computed("c", () => b.get());
  c.sink(() => undefined);
  space.flush();
  const source = a as never;
  const asleep: Computed<number>[] = [];
  for (let i = 0; i < dormant; i++) {
    const node = space.computed<number>(`dormant ${i}`, () => (a.get() ?? 0) + i, { reads: [source] });
    if (i < 1_000) asleep.push(node);
  }
  // Some have run and sleep again.
  for (const node of asleep) node.sink(() => undefined)();
  const cancels = asleep.map((node) => node.sink(() => undefined));
  space.flush();
  for (const cancel of cancels) cancel();
  return work(scheduler, () => {
    a.set(1);
    space.flush();
  });
}

describe("counted work", () => {
  test("[R32] one leaf written among 100,000 that are read visits one reader", async () => {
    const { space, scheduler } = await setup();
    const doc = space.cell<Record<string, number>>("doc");
    doc.set(Object.fromEntries(Array.from({ length: MANY }, (_, i) => [`k${i}`, i])));
    for (let i = 0; i < MANY; i++) doc.key(`k${i}`).sink(() => undefined);
    space.flush();
    const one = work(scheduler, () => {
      doc.key("k777").set(-1);
      space.flush();
    });
    expect(one).toEqual({ runs: 1, readersVisited: 1, indexWrites: 0 });
  });

  test("[R32] a live update costs the same beside none and beside many dormant nodes", async () => {
    const alone = await beside(0);
    expect(alone).toEqual({ runs: 3, readersVisited: 3, indexWrites: 0 });
    expect(await beside(isLongRun ? 1_000_000 : MANY)).toEqual(alone);
  });

  test("[R222] a run beside 2,000 queued materializers is compared only with those of the documents that it reads", async () => {
    const { space, scheduler } = await setup();
    const tick = space.cell<number>("tick", 0);
    const indexes = Array.from({ length: 2_000 }, (_, n) => space.cell<number>(`index ${n}`, 0));
    for (const [n, index] of indexes.entries())
      space.materialize(`m ${n}`, [index], () => index.set((tick.get() ?? 0) + n));
    const seen: (number | undefined)[] = [];
    space.computed("reader", () => (tick.get() ?? 0) + (indexes[7]?.get() ?? 0)).sink((value) => void seen.push(value));
    space.flush();
    const { envelopesVisited } = scheduler.getStats();
    tick.set(1);
    space.flush();
    expect(seen.at(-1)).toBe(9);
    expect(scheduler.getStats().envelopesVisited - envelopesVisited).toBe(1);
    scheduler.checkInvariants();
  });

  test("[R32] a run with the same reads as before writes no index entry", async () => {
    const { space, scheduler } = await setup();
    const cells = Array.from({ length: 100 }, (_, i) => space.cell<number>(`c${i}`));
    for (const cell of cells) cell.set(1);
    const sum = space.computed("sum", () => cells.reduce((total, cell) => total + (cell.get() ?? 0), 0));
    sum.sink(() => undefined);
    space.flush();
    const hundred = work(scheduler, () => {
      for (let i = 0; i < 100; i++) {
        cells[i]?.set(2);
        space.flush();
      }
    });
    expect(hundred).toEqual({ runs: 200, readersVisited: 200, indexWrites: 0 });
    expect(sum.get()).toBe(200);
  });

  test("[R32] a run with one different read writes one index entry", async () => {
    const { space, scheduler } = await setup();
    const cells = Array.from({ length: 100 }, (_, i) => space.cell<number>(`c${i}`));
    const last = space.cell<string>("last");
    last.set("x");
    for (const cell of [...cells, space.cell<number>("x"), space.cell<number>("y")]) cell.set(0);
    space.effect(() => {
      for (const cell of cells) cell.get();
      space.cell(last.get() ?? "").get();
    });
    space.flush();
    const rewired = work(scheduler, () => {
      last.set("y");
      space.flush();
    });
    expect(rewired).toEqual({ runs: 1, readersVisited: 1, indexWrites: 2 });
  });

  test("[R32] registering a dormant node only writes its declared reads to the index", async () => {
    const { space, scheduler } = await setup();
    const a = space.cell<never>("a");
    const registered = work(scheduler, () => {
      for (let i = 0; i < 1_000; i++) space.computed(`c${i}`, () => a.get(), { reads: [a] });
      for (let i = 0; i < 1_000; i++) space.computed(`d${i}`, () => a.get());
    });
    expect(registered).toEqual({ runs: 0, readersVisited: 0, indexWrites: 1_000 });
  });
});

describe("depth and width", () => {
  for (const order of ["writers", "readers"] as const) {
    test(`[R33] a chain 100,000 deep, ${order} registered first, settles cold and hot without a timer`, async () => {
      const { space, scheduler, host } = await setup();
      const source = space.cell<number>("c0");
      source.set(0);
      const link = (i: number) => {
        const below = space.cell<number>(`c${i - 1}`);
        space.computed(`c${i}`, () => (below.get() ?? Number.NaN) + 1);
      };
      if (order === "writers") for (let i = 1; i <= MANY; i++) link(i);
      else for (let i = MANY; i > 0; i--) link(i);
      const seen = new Calls();
      space.cell(`c${MANY}`).sink(seen.note);
      space.flush();
      expect(seen.take()).toEqual([MANY]);
      const hot = work(scheduler, () => {
        source.set(1);
        space.flush();
      });
      expect(seen.take()).toEqual([MANY + 1]);
      expect(hot).toEqual({ runs: MANY + 1, readersVisited: MANY + 1, indexWrites: 0 });
      expect([host.pendingTimers, scheduler.getStats().gated]).toEqual([0, 0]);
    });
  }

  test("[R33] a fan-out 100,000 wide settles cold and hot without a timer", async () => {
    const { space, scheduler, host } = await setup();
    const source = space.cell<number>("source");
    source.set(0);
    const nodes = Array.from({ length: MANY }, (_, i) => space.computed(`c${i}`, () => (source.get() ?? 0) + i));
    const sum = space.computed("sum", () => nodes.reduce((total, node) => total + (node.get() ?? 0), 0));
    const seen = new Calls();
    sum.sink(seen.note);
    space.flush();
    source.set(1);
    space.flush();
    const base = (MANY * (MANY - 1)) / 2;
    expect(seen.take()).toEqual([base, base + MANY]);
    expect(sum.node.runs).toBe(2);
    expect([host.pendingTimers, scheduler.getStats().gated]).toEqual([0, 0]);
  });

  test("[R33] a chain that is turned around runs each node once: asleep, and awake", async () => {
    const { space, scheduler } = await setup();
    const depth = 20_000;
    const turned = space.cell<boolean>("turned");
    turned.set(false);
    for (const end of ["c-1", `c${depth}`]) space.cell(end).set(0);
    // Each reads the one before it, or turned the one behind it.
    for (let i = 0; i < depth; i++) {
      const [before, behind] = [space.cell<number>(`c${i - 1}`), space.cell<number>(`c${i + 1}`)];
      space.computed(`c${i}`, () => ((turned.get() ? behind : before).get() ?? 0) + 1);
    }
    const [first, last] = [new Calls(), new Calls()];
    const cancel = space.cell(`c${depth - 1}`).sink(last.note);
    space.flush();
    cancel();
    expect(scheduler.getGraphSnapshot().filter(({ live }) => live)).toEqual([]);
    const asleep = work(scheduler, () => {
      turned.set(true);
      space.cell("c0").sink(first.note);
      space.flush();
    });
    expect([first.take(), last.take(), asleep.runs]).toEqual([[depth], [depth], depth + 1]);
    space.cell(`c${depth - 1}`).sink(last.note);
    space.flush();
    const awake = work(scheduler, () => {
      turned.set(false);
      space.flush();
    });
    expect([first.take(), last.take(), awake.runs]).toEqual([[1], [1, depth], depth + 2]);
    expect(scheduler.getStats().gated).toBe(0);
    scheduler.checkInvariants();
  });
});
