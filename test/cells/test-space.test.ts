import { describe, expect, test } from "#test";
import type { Space } from "../../src/cells/space.ts";
import { type TestSpaceOptions, testSpace } from "../../src/cells/test-space.ts";

function shop(space: Space) {
  const price = space.cell<number>("price", 2);
  const count = space.cell<number>("count", 1);
  const total = space.computed("total", () => (price.get() ?? 0) * (count.get() ?? 0));
  const shown: (number | undefined)[] = [];
  total.sink((value) => shown.push(value));
  const orders = space.stream<number>("orders");
  orders.handle((more) => {
    count.set((count.get() ?? 0) + more);
    return more;
  });
  return { price, count, total, shown, orders };
}

const opened = (options: Omit<TestSpaceOptions<ReturnType<typeof shop>>, "build"> = {}) =>
  testSpace({ ...options, build: shop });

function messageOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return "did not throw";
}

describe("a space for tests", () => {
  test("[R40] a test space settles without time, advances time on demand, and needs no build function", async () => {
    const kit = await testSpace();
    const cell = kit.space.cell<number>("a");
    const seen: unknown[] = [];
    cell.sink((value) => seen.push(value), { debounceMs: 1_000 });
    await kit.settle();
    cell.set(1);
    const before = kit.host.monotonic();
    await kit.settle();
    expect([seen, kit.host.monotonic() - before]).toEqual([[undefined], 0]);
    await kit.advance(1_000);
    expect(seen).toEqual([undefined, 1]);
    expect(messageOf(() => kit.app)).toMatch(/pass build to testSpace/);
  });

  test("[R40] the same seed gives the same run", async () => {
    const run = async (seed: number) => {
      const { space } = await testSpace({ seed });
      return [space.random(), space.random()];
    };
    expect(await run(5)).toEqual(await run(5));
    expect(await run(5)).not.toEqual(await run(6));
  });

  test("[R41] a restart of a test space keeps stored data and runs no unchanged node", async () => {
    const kit = await opened();
    kit.app.price.set(5);
    kit.app.orders.send(2);
    await kit.settle();
    expect(kit.app.shown.at(-1)).toBe(15);
    await kit.restart();
    expect(kit.app.shown.at(-1)).toBe(15);
    kit.expectNotRan("total");
    kit.app.count.set(1);
    await kit.settle();
    kit.expectRan("total").because("count").times(1);
    expect(kit.app.shown).toEqual([15, 5]);
  });

  test("[R41] a restart can bring other code, which is run", async () => {
    const kit = await testSpace<{ total: { get(): unknown } }>({ build: shop });
    const dearer = (space: Space) => {
      const total = space.computed("total", () => (space.cell<number>("price", 2).get() ?? 0) + 100);
      total.sink(() => undefined);
      return { total };
    };
    await kit.restart(dearer);
    kit.expectRan("total");
    await kit.restart();
    expect(kit.app.total.get()).toBe(102);
  });

  test("[R41] a crash of a test space loses only data that was not durable", async () => {
    const kit = await opened();
    kit.app.price.set(5);
    await kit.settle();
    kit.app.price.set(6);
    await kit.crash();
    expect(await kit.host.run(() => kit.app.price.pull())).toBe(5);
    expect(kit.app.shown.at(-1)).toBe(5);
  });

  test("[R42] expectRan checks that a node ran, why and how often, and lists the runs on failure", async () => {
    const kit = await opened();
    kit.expectRan(kit.app.total).times(1);
    kit.forgetRuns();
    kit.expectNotRan("total");
    kit.app.price.set(3);
    await kit.settle();
    kit.expectRan(kit.app.total).because(kit.app.price).times(1);
    expect(messageOf(() => kit.expectRan("total").because(kit.app.count))).toBe(
      'expected "total" to have run because of "count", and it did not. Its runs:\n' +
        "  total ran because of price\nAll runs:\n  total ran because of price\n  sink of total ran because of total",
    );
    expect(messageOf(() => kit.expectRan("total").times(2))).toMatch(/to have run 2 times, and it ran 1:/);
    expect(messageOf(() => kit.expectNotRan("total"))).toMatch(
      /not to have run, and it did:\n {2}total ran because of price/,
    );
    kit.forgetRuns();
    expect(messageOf(() => kit.expectRan("total"))).toBe(
      'expected "total" to have run, and it did not: did not run: its inputs have not changed since its last run.\nNo node ran.',
    );
    expect(messageOf(() => kit.expectRan("totl"))).toMatch(/there is no node of that name, only "total"/);
  });

  test("[R43] expectIdempotent names computations that depend on more than their reads; takeErrors keeps errors", async () => {
    let calls = 0;
    const kit = await testSpace({
      build: (space) => {
        space.computed("counter", () => ++calls).sink(() => undefined);
        space.effect(() => {
          throw new Error("broken");
        });
      },
    });
    expect(messageOf(() => kit.expectIdempotent())).toMatch(/^"counter" gave another result/);
    expect(kit.takeErrors().map((error) => (error as Error).message)).toContain("broken");
    expect(kit.takeErrors()).toEqual([]);
    (await opened()).expectIdempotent();
  });
});
