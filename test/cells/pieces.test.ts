/** Patterns and the pieces they make. */
import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import { pattern } from "../../src/cells/pattern.ts";
import type { StandardSchema } from "../../src/cells/schema.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";

interface Line {
  readonly price: number;
  readonly count: number;
}

const lineSchema: StandardSchema<Line> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) =>
      (value as Line).price >= 0 ? { value } : { issues: [{ message: "must be 0 or more", path: ["price"] }] },
  },
};

const line = pattern("line", lineSchema, (inputs, piece) => ({
  total: piece.computed("total", () => (inputs.key("price").get() ?? 0) * (inputs.key("count").get() ?? 0)),
}));

/** Returns the promise's result without advancing time. */
async function here<T>({ quiet }: { quiet: () => Promise<unknown> }, promise: Promise<T>): Promise<T> {
  void promise.catch(() => {});
  await quiet();
  return promise;
}

describe("patterns and pieces", () => {
  test("[P1] [P2] a piece computes from values and from cells, and shows its parts by links", async () => {
    const site = await setup();
    const { space } = site;
    const price = space.cell<number>("price");
    price.set(10);
    const piece = await here(site, space.run(line, { price, count: 3 }, { id: "first" }));
    const totals = new Calls<number | undefined>();
    space.cell<{ total: number }>("first").key("total").sink(totals.note);
    space.flush();
    price.set(11);
    space.flush();
    expect(totals.seen).toEqual([30, 33]);
    expect(piece.parts.total.get()).toBe(33);
    expect(piece.result.key("total").get()).toBe(33);
    expect([piece.id, piece.pattern, piece.state]).toEqual(["first", "line", "running"]);
  });

  test("[P1] inputs that the schema rejects create no piece", async () => {
    const site = await setup();
    const { space, scheduler } = site;
    const nodes = scheduler.getStats().nodes;
    await expect(here(site, space.run(line, { price: -1, count: 1 }, { id: "bad" }))).rejects.toMatchObject({
      code: "CELL_SCHEMA",
    });
    expect([scheduler.getStats().nodes, space.pieces.size, space.cell("bad/piece").get()]).toEqual([
      nodes,
      0,
      undefined,
    ]);
  });

  test("[P3] a pattern that throws while it builds leaves no node and no document", async () => {
    const site = await setup();
    const { space, scheduler } = site;
    const half = pattern("half", (_: Cell<object>, piece) => {
      piece.effect(() => {});
      piece.run("inner", line, { price: 1, count: 1 });
      throw new Error("no further");
    });
    const nodes = scheduler.getStats().nodes;
    const started = here(site, space.run(half, {}, { id: "h" }));
    await expect(started).rejects.toMatchObject({
      code: "PATTERN_FAILED",
      message: 'pattern "half" failed to build piece "h": no further',
    });
    expect(scheduler.getStats().nodes).toBe(nodes);
    expect([space.cell("h").get(), space.cell("h/piece").get(), space.cell("h/inner").get()]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(space.pieces.size).toBe(0);
  });

  test("[P4] a stopped piece takes its nodes and its nested pieces with it, and is not resumed", async () => {
    const site = await setup();
    const { space, scheduler } = site;
    const ran = new Calls<number | undefined>();
    const outer = pattern("outer", (inputs: Cell<Line>, piece) => {
      const inner = piece.run("inner", line, { price: inputs.key("price"), count: inputs.key("count") });
      piece.effect(() => ran.note(inner.parts.total.get()));
      const doubled = piece.map(
        "doubled",
        piece.cell<readonly number[]>("list"),
        (element) => (element.get() ?? 0) * 2,
      );
      return { inner, doubled };
    });
    const nodes = scheduler.getStats().nodes;
    const price = space.cell<number>("price");
    price.set(2);
    const piece = await here(site, space.run(outer, { price, count: 2 }, { id: "o" }));
    space.flush();
    expect(piece.result.key("inner").key("total").get()).toBe(4);
    await here(site, space.stop(piece));
    price.set(3);
    space.flush();
    expect([ran.seen, piece.state, scheduler.getStats().nodes, space.pieces.size]).toEqual([[4], "stopped", nodes, 0]);
    await here(site, space.stop(piece));
    const other = await site.open();
    const { pieces, left } = await here(site, other.space.resume([outer]));
    expect([pieces, left]).toEqual([[], []]);
  });

  test("[R24] a computation that starts a piece is told that it must not", async () => {
    const site = await setup();
    const starting = site.space.computed("starting", () => void site.space.run(line, { price: 1, count: 1 }));
    starting.sink(() => undefined);
    site.space.flush();
    expect(String(starting.error)).toContain("computation starting must not start a piece");
  });

  test("[I4] a value that cannot be sent is refused with the stream it was for", async () => {
    const { space } = await setup();
    expect(() => space.stream("orders").send({ at: new Date(0) })).toThrow(
      /^cannot send to .*orders.*: the value at \/at must be/,
    );
    expect(() => space.stream("orders").send(undefined)).toThrow(
      /^cannot send to .*orders.*: the value must be a JSON value/,
    );
  });

  test("[P5] names are given while a pattern builds, and not later", async () => {
    const site = await setup();
    const piece = await here(site, site.space.run(line, { price: 1, count: 1 }));
    expect(() => piece.computed("late", () => 1)).toThrow(/is built/);
  });

  test("[P6] another process resumes started pieces with their inputs; a piece without a given pattern is reported", async () => {
    const site = await setup();
    const { space } = site;
    const price = space.cell<number>("price");
    price.set(5);
    await here(site, space.run(line, { price, count: 2 }, { id: "a" }));
    const empty = pattern("empty", () => ({}));
    await here(site, space.run(empty, {}, { id: "b" }));
    const other = await site.open();
    const { pieces, left } = await here(site, other.space.resume([line]));
    expect(pieces.map(({ id }) => id)).toEqual(["a"]);
    expect(left).toEqual([{ id: "b", pattern: "empty", reason: 'no pattern "empty" was given' }]);
    expect(await here(site, pieces[0]!.result.pull())).toEqual({ total: expect.anything() });
    expect(await here(site, other.space.cell<{ total: number }>("a").key("total").pull())).toBe(10);
  });

  test("[P6] [P20] a piece that is started under its id again is the same piece with the new inputs; another pattern is refused", async () => {
    const site = await setup();
    const { space, scheduler } = site;
    await here(site, space.run(line, { price: 1, count: 1 }, { id: "a" }));
    const nodes = scheduler.getStats().nodes;
    const again = await here(site, space.run(line, { price: 4, count: 1 }, { id: "a" }));
    expect([scheduler.getStats().nodes, space.pieces.size, await here(site, again.parts.total.pull())]).toEqual([
      nodes,
      1,
      4,
    ]);
    const other = here(
      site,
      space.run(
        pattern("other", () => ({})),
        {},
        { id: "a" },
      ),
    );
    await expect(other).rejects.toMatchObject({ code: "PIECE_OTHER_PATTERN" });
    expect(again.state).toBe("running");
  });
});
