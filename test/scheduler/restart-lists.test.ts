import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import { type Life, setup } from "./restart-setup.ts";

interface Item {
  readonly id: string;
  readonly price: number;
}

const ITEMS: readonly Item[] = [
  { id: "a", price: 1 },
  { id: "b", price: 20 },
  { id: "c", price: 30 },
];

/** The three list operations over one list; the runs of their children are noted. */
function lists(life: Life) {
  const { space } = life;
  const items = space.cell<readonly Item[]>("items");
  const key = ({ id }: Item) => id;
  const price = (item: Cell<Item>) => item.key("price").get() ?? 0;
  const noting = <T>(what: string, item: Cell<Item>, compute: () => T): T => {
    life.ran.push(`${what} ${item.key("id").get()}`);
    return compute();
  };
  return {
    items,
    map: space.map("twice", items, (item) => noting("map", item, () => price(item) * 2), { key }),
    filter: space.filter("dear", items, (item) => noting("filter", item, () => price(item) > 10), { key }),
    flatMap: space.flatMap("pairs", items, (item) => noting("flatMap", item, () => [price(item), -price(item)]), {
      key,
    }),
  };
}

async function firstLife(at: ReturnType<typeof setup>): Promise<Life> {
  const life = await at.begin();
  life.space.cell("items").set(ITEMS);
  const { map, filter, flatMap } = lists(life);
  const values = await at.host.run(() => Promise.all([map.pull(), filter.pull(), flatMap.pull()]));
  expect(values).toEqual([[2, 40, 60], ITEMS.slice(1), [1, -1, 20, -20, 30, -30]]);
  await at.host.run(() => life.space.settled());
  return life;
}

describe("lists after a restart", () => {
  test("[R38] [I7] the list runs and its children do not", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const life = await at.begin();
    const { map, filter, flatMap } = await life.space.restore(() => lists(life));
    const seen: unknown[] = [];
    for (const list of [map, filter, flatMap]) list.sink((value) => seen.push(value));
    await at.host.advance(1_000);
    expect(life.ran).toEqual([]);
    expect(seen).toEqual([[2, 40, 60], ITEMS.slice(1), [1, -1, 20, -20, 30, -30]]);
    life.space.scheduler.checkInvariants();
  });

  test("[R38] after a restart only the children of changed and new elements run", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const between = await at.begin();
    between.space.cell("items").set([ITEMS[1], { id: "a", price: 5 }, { id: "d", price: 7 }]);
    await at.host.run(() => between.space.settled());
    between.kill();
    const life = await at.begin();
    const { map } = await life.space.restore(() => lists(life));
    expect(await at.host.run(() => map.pull())).toEqual([40, 10, 14]);
    expect(life.ran.sort()).toEqual(["map a", "map d"]);
  });

  test("[R38] the stored value of a list is not overwritten while its input is still loading", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const life = await at.begin();
    let arrive = () => {};
    const arrives = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    life.line.plan = ({ method }) => (method === "load" ? { arrives } : {});
    const { map } = await life.space.restore(() => lists(life));
    const seen: unknown[] = [];
    map.sink((value) => seen.push(value));
    await at.host.advance(1_000);
    expect([seen, life.line.arrived.length]).toEqual([[], 0]);
    arrive();
    await at.host.advance(1_000);
    expect(seen).toEqual([[2, 40, 60]]);
    expect(life.line.arrived.flatMap(({ patches }) => patches.map(({ id }) => id))).toEqual([]);
  });

  test("[R39] a child with a removed element loses its row and its output", async () => {
    const at = setup();
    const life = await at.begin();
    life.space.cell("items").set(ITEMS);
    const { items, map } = lists(life);
    map.sink(() => undefined);
    await at.host.run(() => life.space.settled());
    items.set(ITEMS.slice(1));
    await at.host.run(() => life.space.settled());
    items.set([...ITEMS.slice(1), { id: "z", price: 0 }]);
    await at.host.run(() => life.space.settled());
    await at.host.advance(100);
    const removed = life.line.arrived.flatMap(({ basisRemoved }) => basisRemoved);
    expect(removed).toEqual(["twice/a"]);
    const erased = life.line.arrived.flatMap(({ patches }) =>
      patches.filter(({ operations }) => operations[0]?.op === "delete"),
    );
    expect(erased.map(({ id }) => id)).toEqual(["twice/a"]);
  });
});
