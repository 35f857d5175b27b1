/** Values that consist of links read as their type says: results of pieces, inputs, lists, `ifElse`. */
import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import { pattern } from "../../src/cells/pattern.ts";
import type { Launched } from "../../src/cells/piece.ts";
import type { Space } from "../../src/cells/space.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";

const half = pattern("half", (inputs: Cell<{ of: number }>, piece) => ({
  value: piece.computed("value", () => (inputs.key("of").get() ?? 0) / 2),
}));

const basket = pattern("basket", (inputs: Cell<{ prices: readonly number[]; owner: string }>, piece) => {
  const notes = piece.cell<readonly string[]>("notes", ["new"]);
  const taxed = piece.map("taxed", inputs.key("prices"), (price) => (price.get() ?? 0) * 2);
  const sum = piece.computed("sum", () => (inputs.get()?.prices ?? []).reduce((total, price) => total + price, 0));
  const add = piece.stream<number>("add");
  return {
    owner: inputs.key("owner"),
    notes,
    taxed,
    sum,
    add,
    nested: piece.run("nested", half, { of: sum }),
    kind: 1,
  };
});

/** Doubled prices, in a list of links. */
function doubled(space: Space) {
  const prices = space.cell<readonly number[]>("prices", [1, 2]);
  return { prices, list: space.map("doubled", prices, (price) => (price.get() ?? 0) * 2) };
}

/** A basket of doubled prices, and an observer of the whole result. */
async function withBasket() {
  const site = await setup();
  const made = doubled(site.space);
  const started = site.space.run(basket, { prices: made.list, owner: "Ada" }, { id: "b" });
  await site.quiet();
  const piece = await started;
  const seen = new Calls<unknown>();
  piece.result.sink(seen.note);
  await site.quiet();
  return { ...site, ...made, piece, seen };
}

describe("values that consist of links", () => {
  test("[P2] a result reads as the values of its parts, lists, defaults and nested pieces too; a stream is its link", async () => {
    const { space, prices, piece, seen } = await withBasket();
    const add = space.stream("b/add").asLink();
    const shown = { owner: "Ada", notes: ["new"], taxed: [4, 8], sum: 6, add, nested: { value: 3 }, kind: 1 };
    expect(piece.result.get()).toEqual(shown);
    expect(seen.take()).toEqual([shown]);
    const sum: number | undefined = piece.result.get()?.nested?.value;
    expect(sum).toBe(3);
    prices.push(3);
    space.flush();
    expect(seen.take()).toEqual([{ ...shown, taxed: [4, 8, 12], sum: 12, nested: { value: 6 } }]);
    expect(Object.isFrozen(piece.result.get())).toBe(true);
  });

  test("[P2] a part of a result reads as the part does, at any depth", async () => {
    const { piece, quiet } = await withBasket();
    const pulled = piece.result.key("taxed").pull();
    await quiet();
    expect(await pulled).toEqual([4, 8]);
    expect(piece.result.key("taxed").key(1).get()).toBe(8);
    expect(piece.result.key("notes").key(0).get()).toBe("new");
    expect(piece.result.key("nested").get()).toEqual({ value: 3 });
    expect(piece.result.key("nested").key("value").get()).toBe(3);
  });

  test("[P2] a result is stored as links, and a stopped piece's result reads as before", async () => {
    const { space, piece, quiet } = await withBasket();
    expect(piece.result.getRaw()).toMatchObject({ sum: space.cell("b/sum").asLink() });
    const stopped = space.stop(piece);
    await quiet();
    await stopped;
    expect(piece.result.get()).toMatchObject({ taxed: [4, 8], nested: { value: 3 } });
  });

  test("[P7] the result of a launched piece reads like that of any other", async () => {
    const { space, quiet } = await setup();
    const launched: Launched<{ value: Cell<number> }>[] = [];
    space.stream("go").handle(() => {
      launched.push(space.launch(half, { of: 8 }));
    });
    space.stream("go").send(1);
    await quiet();
    const pulled = launched[0]?.result.pull();
    await quiet();
    expect(await pulled).toEqual({ value: 4 });
  });

  test("[P1] inputs read as values, whether they were given as values or as cells", async () => {
    const { space, quiet } = await setup();
    const { list } = doubled(space);
    const all = pattern("all", (inputs: Cell<{ list: readonly number[]; of: { a: number }; n: number }>, piece) => ({
      all: piece.computed("all", () => inputs.get()),
      list: piece.computed("list", () => inputs.key("list").get()),
    }));
    const of = space.cell("of", { a: 1 });
    of.key("a").set(7);
    const started = space.run(all, { list, of, n: 3 }, { id: "all" });
    await quiet();
    const pulled = (await started).result.pull();
    await quiet();
    expect(await pulled).toEqual({ all: { list: [2, 4], of: { a: 7 }, n: 3 }, list: [2, 4] });
  });

  test("[P1] an update of inputs keeps the links to values that it does not change", async () => {
    const { space, quiet } = await setup();
    const kept: Cell<{ price: number; count: number; note?: string }>[] = [];
    const line = pattern("line", (inputs: Cell<{ price: number; count: number; note?: string }>, piece) => {
      kept.push(inputs);
      return { total: piece.computed("total", () => (inputs.get()?.price ?? 0) * (inputs.get()?.count ?? 0)) };
    });
    const price = space.cell<number>("price");
    price.set(2);
    const started = space.run(line, { price, count: 3, note: "x" }, { id: "line" });
    await quiet();
    const piece = await started;
    kept[0]?.update((inputs) => ({ price: inputs?.price ?? 0, count: 10 }));
    price.set(4);
    await quiet();
    expect(
      space
        .cell("line/piece")
        .key("inputs" as never)
        .get(),
    ).toEqual({ price: price.asLink(), count: 10 });
    const pulled = piece.result.pull();
    await quiet();
    expect(await pulled).toEqual({ total: 40 });
  });

  test("[R26] ifElse of lists and of cells with defaults shows their values", async () => {
    const { space, quiet } = await setup();
    const { list } = doubled(space);
    const [flag, empty] = [space.cell<boolean>("flag"), space.cell<readonly number[]>("empty", [7])];
    const chosen = space.ifElse("chosen", flag, list, empty);
    const seen = new Calls<unknown>();
    chosen.sink(seen.note);
    chosen.key(0).sink(seen.note);
    await quiet();
    flag.set(true);
    await quiet();
    expect(seen.take()).toEqual([[7], 7, [2, 4], 2]);
  });

  test("[R27] [R29] a transaction reads a list as its elements' values", async () => {
    const { space, quiet } = await setup();
    const { list } = doubled(space);
    list.sink(() => undefined);
    await quiet();
    expect(space.begin().get(list)).toEqual([2, 4]);
  });

  test("[P2] [R29] a transaction reads a result as the values of its parts", async () => {
    const { space, piece } = await withBasket();
    expect(space.begin().get(piece.result)).toMatchObject({ notes: ["new"], taxed: [4, 8], nested: { value: 3 } });
  });

  test("[R25] a link stored inside a value reads as a link; key follows it", async () => {
    const { space } = await setup();
    const ada = space.cell<string>("ada");
    ada.set("Ada");
    const by = space.cell<{ by: unknown }>("by");
    by.set({ by: ada.asLink() });
    const chosen = space.ifElse("chosen", by, by, by);
    chosen.sink(() => undefined);
    space.flush();
    expect(chosen.get()).toEqual({ by: ada.asLink() });
    expect(chosen.key("by").get()).toBe("Ada");
  });

  test("[R20] below a place that may be missing lie places with types", async () => {
    const { space } = await setup();
    const at = space.cell<{ a?: { b: number } }>("x").key("a").key("b");
    space.cell<{ a?: { b: number } }>("x").set({ a: { b: 1 } });
    const value: number | undefined = at.get();
    expect(value).toBe(1);
  });
});
