import { describe, expect, test } from "#test";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";

describe("writes besides the result", () => {
  test("[R64] a reader of a declared side-write runs the computed value", async () => {
    const { space, scheduler, quiet } = await setup();
    const [input, log] = [space.cell<number>("input"), space.cell<number>("log")];
    input.set(1);
    log.set(0);
    await quiet();
    const double = space.computed(
      "double",
      () => {
        const value = input.get() ?? 0;
        log.set(value);
        return value * 2;
      },
      { writes: [log] },
    );
    await quiet();
    expect(double.node.runs).toBe(0);
    const seen = new Calls();
    log.sink(seen.note);
    await quiet();
    input.set(5);
    await quiet();
    expect([seen.seen.at(-1), double.get()]).toEqual([5, 10]);
    expect(scheduler.getStats().outsideWrites).toBe(0);
    scheduler.checkInvariants();
  });

  test("[R64] a materializer keeps an index without a reader, until it is ended", async () => {
    const { space, scheduler, quiet } = await setup();
    const people = space.cell<Record<string, string>>("people");
    const index = space.cell<Record<string, string>>("index");
    people.set({ ada: "London" });
    index.set({});
    await quiet();
    const end = space.materialize("by city", [index], () => {
      for (const [name, city] of Object.entries(people.get() ?? {})) index.key(city).set(name);
    });
    await quiet();
    expect(index.get()).toEqual({ London: "ada" });
    people.key("bob").set("Paris");
    await quiet();
    expect(index.get()).toEqual({ London: "ada", Paris: "bob" });
    end();
    people.key("eve").set("Rome");
    await quiet();
    expect(index.keys()).toEqual(["London", "Paris"]);
    scheduler.checkInvariants();
  });
});
