import { describe, expect, test } from "#test";
import { Calls, setup } from "./scheduler-setup.ts";

describe("writers run before readers", () => {
  test("[I9] a writer that was registered after its reader runs first", async () => {
    const { space } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const order = new Calls<string>();
    const written = space.cell<number>("written");
    space.effect(() => {
      a.get();
      order.note(`reader ${written.get()}`);
    });
    space.computed("written", () => {
      order.note("writer");
      return a.get();
    });
    await space.idle();
    order.take();
    a.set(2);
    await space.idle();
    expect(order.take()).toEqual(["writer", "reader 2"]);
  });

  test("[I9] without data between nodes, the order of registration decides, whichever input changed first", async () => {
    const { space } = await setup();
    const cells = ["a", "b", "c", "d"].map((id) => space.cell<number>(id));
    const order = new Calls<string>();
    for (const cell of cells) {
      cell.set(0);
      space.effect(() => {
        cell.get();
        order.note(String(cell));
      });
    }
    space.flush();
    order.take();
    for (const cell of cells.toReversed()) cell.set(1);
    space.flush();
    expect(order.take()).toEqual(["a", "b", "c", "d"]);
  });

  test("[I9] a node that becomes ready during a pass takes its place in that order", async () => {
    const { space, quiet } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(0);
    b.set(0);
    await quiet();
    const order = new Calls<string>();
    space.effect(() => {
      order.note("first");
      b.set(a.get() ?? 0);
    });
    space.effect(() => {
      b.get();
      order.note("second");
    });
    space.effect(() => {
      a.get();
      order.note("third");
    });
    space.flush();
    order.take();
    a.set(1);
    space.flush();
    expect(order.take()).toEqual(["first", "second", "third"]);
  });

  test("[I9] a parent runs before the effects that it created, which end with its next run", async () => {
    const { space, scheduler } = await setup();
    const [a, late] = [space.cell<number>("a"), space.cell<number>("late")];
    a.set(1);
    late.set(1);
    const order = new Calls<string>();
    space.effect(() => {
      order.note("parent");
      if ((a.get() ?? 0) < 3) {
        space.effect(() => {
          order.note(`child ${a.get()}`);
        });
      }
      if ((a.get() ?? 0) > 1) space.cell<number>("written").get();
    });
    space.flush();
    expect(order.take()).toEqual(["parent", "child 1"]);
    // Reading it lifts the parent above its child.
    const base = space.computed("base", () => late.get());
    space.computed("written", () => base.get()).sink(() => undefined);
    space.flush();
    a.set(2);
    space.flush();
    expect(order.take()).toEqual(["parent", "child 2"]);
    a.set(3);
    space.flush();
    expect(order.take()).toEqual(["parent"]);
    scheduler.checkInvariants();
  });

  test("[I9] an effect that discovers a chain which never ran sees no value before it is computed", async () => {
    const { space } = await setup();
    const seen = new Calls();
    const cells = [0, 1, 2, 3].map((i) => space.cell<number>(`c${i}`));
    cells[0]?.set(1);
    const inputs = new Calls();
    for (let i = 3; i > 0; i--) {
      space.computed(`c${i}`, () => {
        const below = cells[i - 1]?.get();
        inputs.note(below);
        return (below ?? Number.NaN) + 1;
      });
    }
    cells[3]?.sink(seen.note);
    space.flush();
    expect(seen.take()).toEqual([4]);
    expect(inputs.take()).toEqual([1, 2, 3]);
  });

  test("[I9] a run is never inside itself, even if it waits for a change of its own reads", async () => {
    const { space, scheduler } = await setup();
    const orders = space.cell<readonly { n: number }[]>("orders");
    orders.set([{ n: 1 }, { n: 2 }]);
    const doubled = space.map("doubled", orders, (order) => (order.get()?.n ?? 0) * 2);
    const big = space.filter("big", orders, (order) => (order.get()?.n ?? 0) > 1);
    const [doubles, bigs] = [new Calls(), new Calls()];
    doubled.sink(doubles.note);
    big.sink(bigs.note);
    await space.idle();
    expect(doubles.take()).toEqual([[2, 4]]);
    expect(bigs.take()).toEqual([[{ n: 2 }]]);
    await space.transact(() => {
      orders.push({ n: 3 });
      return orders.get()?.length;
    });
    await space.idle();
    expect(doubles.take()).toEqual([[2, 4, 6]]);
    expect(bigs.take()).toEqual([[{ n: 2 }, { n: 3 }]]);
    scheduler.checkInvariants();
  });
});
