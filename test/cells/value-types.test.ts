/** The types of cells: checked by the compiler when this file is, and by a space that gives values of these types. */
import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import type { StandardSchema } from "../../src/cells/schema.ts";
import type { AsJson, Frozen } from "../../src/cells/value-types.ts";
import type { Json } from "../../src/message/json.ts";
import { setup } from "../scheduler/scheduler-setup.ts";

/** Compiles only if both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_: Same<A, B>): void {}

interface Item {
  name: string;
  note?: string | undefined;
  tags: string[];
}

const Amount: StandardSchema<{ n: number }> = {
  "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) },
};

describe("the types of cells", () => {
  test("[R90] an initial value gives the type and takes `undefined` out of it", async () => {
    const { space } = await setup();
    const count = space.cell("count", 0);
    const filter = space.cell("filter", "all" as "all" | "open");
    const items = space.cell<Item[]>("items", []);
    const maybe = space.cell<Item>("maybe");
    const checked = space.cell("checked", { n: 1 }, { schema: Amount });
    const unset = space.cell("unset", undefined, { schema: Amount });
    same<typeof count, Cell<number>>(true);
    same<typeof filter, Cell<"all" | "open">>(true);
    same<typeof items, Cell<Frozen<Item[]>>>(true);
    same<typeof maybe, Cell<Frozen<Item> | undefined>>(true);
    same<typeof checked, Cell<{ readonly n: number }>>(true);
    same<typeof unset, Cell<{ readonly n: number } | undefined>>(true);
    count.set(count.get() + 1);
    expect([count.get(), filter.get(), items.get(), maybe.get(), checked.get().n]).toEqual([
      1,
      "all",
      [],
      undefined,
      1,
    ]);
    // @ts-expect-error not in the union
    filter.set("closed");
  });

  test("[R90] the value below a key includes `undefined` only where the key may be missing", async () => {
    const { space } = await setup();
    const item = space.cell<Item>("item", { name: "a", tags: ["x"] });
    const prices = space.cell<Record<string, number>>("prices", {});
    const name = item.key("name");
    const note = item.key("note");
    const tag = item.key("tags").key(0);
    const price = prices.key("pear");
    same<typeof name, Cell<string>>(true);
    same<typeof note, Cell<string | undefined>>(true);
    same<typeof tag, Cell<string | undefined>>(true);
    same<typeof price, Cell<number | undefined>>(true);
    expect([name.get(), note.get(), tag.get(), price.get()]).toEqual(["a", undefined, "x", undefined]);
  });

  test("[R90] a value that was handed out is read-only at every depth, in the type as in fact", async () => {
    const { space } = await setup();
    const items = space.cell<Item[]>("items", [{ name: "a", tags: [] }]);
    const given = items.get();
    // @ts-expect-error read-only
    expect(() => given.push({ name: "b", tags: [] })).toThrow(TypeError);
    expect(() => {
      // @ts-expect-error read-only
      (given[0] as Frozen<Item>).name = "b";
    }).toThrow(TypeError);
    // @ts-expect-error read-only
    expect(() => given[0]?.tags.push("x")).toThrow(TypeError);
    items.update((all) => [...all, { name: "b", tags: ["x"] }]);
    const names = space.computed("names", () => ({ all: items.get().map(({ name }) => name) }));
    // @ts-expect-error read-only
    expect(() => names.get().all.push("c")).toThrow(TypeError);
    expect(names.get()).toEqual({ all: ["a", "b"] });
  });

  test("[R90] a part that is not JSON is a type error with the remedy; interfaces and optional fields are JSON", async () => {
    const { space } = await setup();
    same<AsJson<Item>, Item>(true);
    same<AsJson<Json>, Json>(true);
    same<AsJson<unknown>, unknown>(true);
    same<AsJson<{ at: Date }>["at"], "a Date is not JSON; keep value.toISOString() or value.getTime()">(true);
    same<AsJson<{ at?: bigint }>["at"], "a bigint is not JSON; keep String(value)" | undefined>(true);
    same<AsJson<Set<string>[]>, "a Set is not JSON; keep [...set]"[]>(true);
    same<
      AsJson<{ deep: { by: Map<string, number> } }>["deep"]["by"],
      "a Map is not JSON; keep Object.fromEntries(map), or use a collection"
    >(true);
    // @ts-expect-error a Date
    expect(() => space.cell("dated", { at: new Date(0) })).toThrow("keep its toISOString()");
    // @ts-expect-error a Date
    expect(() => space.cell<{ at: Date }>("at").set({ at: new Date(0) })).toThrow("keep its toISOString()");
    // @ts-expect-error a function
    expect(() => space.cell("called", { run: () => 1 })).toThrow("got a function");
    const item = space.cell<Item>("item");
    item.set({ name: "a", tags: [], ...{ note: undefined } });
    expect(Object.keys(item.get() ?? {})).toEqual(["name", "tags"]);
  });
});
