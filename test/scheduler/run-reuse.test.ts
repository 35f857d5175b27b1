import { describe, expect, test } from "#test";
import { setup } from "./scheduler-setup.ts";

describe("a listener that reads while a run is being ended", () => {
  test("[R12] [R19] a failed node runs again when its inputs change, even if an error listener reads during the end of its run", async () => {
    const { space, scheduler, quiet } = await setup();
    const source = space.cell<number>("source");
    source.set(1);
    const other = space.computed("other", () => (source.get() ?? 0) * 10);
    const odd = space.computed("odd", () => {
      const n = source.get() ?? 0;
      if (n % 2 === 1) throw new Error(`${n} is odd`);
      return n;
    });
    const reported: unknown[] = [];
    scheduler.onError((error) => reported.push([String(error), other.get()]));
    const seen: unknown[] = [];
    space
      .computed("top", () => {
        try {
          return [odd.get()];
        } catch {
          return ["none"];
        }
      })
      .sink((value) => seen.push(value?.[0]));
    await quiet();
    for (const n of [2, 3, 4]) {
      source.set(n);
      await quiet();
    }
    expect(seen).toEqual(["none", 2, "none", 4]);
    expect(reported.map((one) => (one as unknown[])[0])).toEqual(["Error: 1 is odd", "Error: 3 is odd"]);
    scheduler.checkInvariants();
  });

  test("[R11] the result goes into the node's own output, even if a commit listener reads during the end of its run", async () => {
    const { space, scheduler, quiet } = await setup();
    const source = space.cell<number>("source");
    const log = space.cell<number>("log");
    source.set(1);
    const other = space.computed("other", () => `other ${source.get()}`);
    const writer = space.computed("writer", () => {
      const n = source.get() ?? 0;
      log.set(n);
      return `writer ${n}`;
    });
    space.replica("s").subscribe(() => void other.get());
    const seen: unknown[] = [];
    space.computed("top", () => `${writer.get()}`).sink((value) => seen.push(value));
    await quiet();
    source.set(2);
    await quiet();
    expect(seen).toEqual(["writer 1", "writer 2"]);
    expect([other.get(), writer.get(), log.get()]).toEqual(["other 2", "writer 2", 2]);
    scheduler.checkInvariants();
  });
});
