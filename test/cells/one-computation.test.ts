/** A place has one computation. */
import { describe, expect, test } from "#test";
import { ComputedError } from "../../src/cells/computed.ts";
import { Space } from "../../src/cells/space.ts";
import { setup } from "../scheduler/scheduler-setup.ts";

describe("a second computation of one place", () => {
  test("[R21] is refused by an error that names it, whoever makes it; the first goes on", async () => {
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
