import { describe, expect, test } from "#test";
import { pattern } from "../../src/cells/pattern.ts";
import { setup } from "../scheduler/scheduler-setup.ts";

/** The method by which Node, Deno and Bun print an object. */
const INSPECT = Symbol.for("nodejs.util.inspect.custom");

function printed(value: object): unknown {
  return (value as { [INSPECT](): unknown })[INSPECT]();
}

describe("printed objects", () => {
  test("[R50] is one line that says which one it is", async () => {
    const { space, scheduler, quiet } = await setup();
    const cell = space.cell<{ open: number }>("tasks");
    expect(printed(cell)).toBe("Cell tasks");
    expect(printed(cell.key("open"))).toBe("Cell tasks /open");
    expect(printed(space.stream("orders"))).toBe("Stream orders");
    const sum = space.computed("sum", () => 1);
    expect(printed(sum)).toBe("Computed sum");
    expect(printed(sum.node)).toBe("computation sum, never-ran");
    expect(printed(space)).toBe(`Space ${space.name}`);
    expect(printed(scheduler)).toBe("Scheduler of 1 nodes");
    using transaction = space.begin();
    expect(printed(transaction)).toBe(`CellTransaction of space ${space.name}`);
    const counter = pattern("counter", (_inputs, piece) => ({ count: piece.cell("count") }));
    const running = space.run(counter, {}, { id: "one" });
    await quiet();
    expect(printed(await running)).toBe("Piece one of counter, running");
  });

  test("[R50] is neither read nor made for that", async () => {
    const { space, scheduler } = await setup();
    const source = space.cell<number>("source");
    const unseen = space.computed("unseen", () => 2);
    let runs = 0;
    space.effect(() => {
      runs++;
      printed(source);
      printed(unseen);
    });
    scheduler.flush();
    source.set(1);
    scheduler.flush();
    expect(runs).toBe(1);
    expect(unseen.node.output).toBe(undefined);
  });
});
