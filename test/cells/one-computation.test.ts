/** A place has one computation. */
import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { ComputedError } from "../../src/scheduler/computed-error.ts";
import { setup } from "../scheduler/scheduler-setup.ts";

describe("a second computation of one place", () => {
  test("[R21] a second computation of one place is refused by an error that names it; the first goes on", async () => {
    const { space } = await setup();
    const [list, flag] = [space.cell<readonly number[]>("list"), space.cell<boolean>("flag")];
    const first = space.computed("sum", () => 1);
    const attempts = [
      () => space.computed("sum", () => 2),
      () => space.ifElse("sum", flag, flag, flag),
      () => space.map("sum", list, (one) => one.get()),
      () => space.filter("sum", list, () => true),
      () => space.flatMap("sum", list, () => []),
    ];
    for (const attempt of attempts) {
      expect(attempt).toThrow(ComputedError);
      expect(attempt).toThrow('"sum" of space "s" is computed already');
    }
    expect(await first.pull()).toBe(1);
    expect(space.scheduler.getGraphSnapshot().map(({ id }) => id)).toEqual(["sum"]);
  });

  test("[R21] takes its place once the first is removed", async () => {
    const { space, scheduler } = await setup();
    space.computed("sum", () => 1).dispose();
    space.computed("sum", () => 2).discard();
    expect(await space.computed("sum", () => 3).pull()).toBe(3);
    scheduler.checkInvariants();
  });

  test("[R21] [R8] is the first itself for the node that made it, and refused to any other", async () => {
    const { space, scheduler, quiet } = await setup();
    const errors: unknown[] = [];
    scheduler.onError((error) => errors.push(error));
    const turn = space.cell<number>("turn");
    const maker = () => {
      turn.get();
      space.computed("made", () => 1);
    };
    space.effect(maker, { id: "one" });
    await quiet();
    turn.set(1);
    await quiet();
    expect(errors).toEqual([]);
    space.effect(maker, { id: "other" });
    await quiet();
    expect(errors).toEqual([expect.any(ComputedError)]);
  });

  test("[R21] is another in another space, of the same scheduler too, and beside an effect of that name", async () => {
    const { space, scheduler, line, host } = await setup();
    const other = await host.run(() => Space.open({ store: line.store, host, name: "t", scheduler }));
    space.effect(() => undefined, { id: "sum" });
    const here = space.computed("sum", () => 1);
    const there = other.computed("sum", () => 2);
    expect(() => space.computed("sum", () => 3)).toThrow('of space "s" is computed already');
    expect(() => other.computed("sum", () => 3)).toThrow('of space "t" is computed already');
    expect([await here.pull(), await there.pull()]).toEqual([1, 2]);
  });
});

describe("a computed value", () => {
  test("[R21] a computed value refuses writes by id, below it, by link, in transactions, runs and handlers", async () => {
    const { space, quiet } = await setup();
    const sum = space.computed("sum", () => ({ total: 1 }));
    const place = space.cell<{ total: number }>("sum");
    const link = space.cell<{ total: number }>("link");
    link.set(sum.asLink() as never);
    using tx = space.begin();
    const attempts = [
      () => sum.set({ total: 2 }),
      () => place.set({ total: 2 }),
      () => place.key("total").set(2),
      () => place.delete(),
      () => link.key("total").set(2),
      () => tx.set(place, { total: 2 }),
      () => tx.set(link.key("total"), 2),
      () => tx.delete(place),
    ];
    for (const attempt of attempts)
      expect(attempt).toThrow(expect.objectContaining({ name: "ComputedError", code: "COMPUTED_SET" }));
    await expect(space.transact(() => place.set({ total: 2 }))).rejects.toThrow("is a computed value");
    const errors: unknown[] = [];
    space.scheduler.onError((error) => errors.push(error));
    space.effect(() => place.set({ total: 2 }));
    await quiet();
    expect(errors).toEqual([expect.objectContaining({ code: "COMPUTED_SET" })]);
    const stream = space.stream<number>("in");
    stream.handle(() => place.set({ total: 2 }));
    expect(await stream.send(1).outcome).toMatchObject({ kind: "failed" });
    expect(await sum.pull()).toEqual({ total: 1 });
  });

  test("[R21] a place refuses plain writes once it is computed, also after a write in the same turn", async () => {
    const { space } = await setup();
    const place = space.cell<number>("sum");
    place.set(2);
    const sum = space.computed("sum", () => 1);
    expect(() => place.set(3)).toThrow("is a computed value");
    expect(await sum.pull()).toBe(1);
  });

  test("[R21] a write that a computed value refused adds no default to its transaction", async () => {
    const { space } = await setup();
    space.computed<number[] | undefined>("nothing", () => undefined);
    using tx = space.begin();
    const place = space.cell<readonly number[]>("nothing", [1]);
    expect(() => tx.set(place.key(0), 2)).toThrow(expect.objectContaining({ code: "COMPUTED_SET" }));
    expect(tx.get(space.cell("nothing"))).toBe(undefined);
  });

  test("[R21] a place can be written again once its computation is disposed", async () => {
    const { space } = await setup();
    const sum = space.computed("sum", () => 1);
    expect(await sum.pull()).toBe(1);
    sum.dispose();
    space.cell("sum").set(2);
    expect(await space.cell("sum").pull()).toBe(2);
  });
});
