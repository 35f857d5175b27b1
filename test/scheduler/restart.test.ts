import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import type { Computed } from "../../src/cells/computed.ts";
import { type Life, setup } from "./restart-setup.ts";

interface Shop {
  readonly prices: Cell<Record<string, number>>;
  readonly sum: Computed<number>;
  readonly label: Computed<string>;
  readonly other: Computed<number>;
}

/** Two computations in a chain, and one beside them with the same code as the first. */
function shop(life: Life): Shop {
  const { space } = life;
  const prices = space.cell<Record<string, number>>("prices");
  const stock = space.cell<Record<string, number>>("stock");
  const total = (name: string, cell: Cell<Record<string, number>>) =>
    space.computed(
      name,
      life.noting(name, () => Object.values(cell.get() ?? {}).reduce((a, b) => a + b, 0)),
      { fingerprint: "total" },
    );
  const sum = total("sum", prices);
  const other = total("other", stock);
  const label = space.computed(
    "label",
    life.noting("label", () => `sum ${sum.get()}`),
    { fingerprint: "label" },
  );
  return { prices, sum, label, other };
}

async function firstLife(at: ReturnType<typeof setup>) {
  const life = await at.begin();
  const { space } = life;
  space.cell("prices").set({ a: 1, b: 2 });
  space.cell("stock").set({ x: 5 });
  const parts = shop(life);
  await at.host.run(() => Promise.all([parts.label.pull(), parts.other.pull()]));
  await at.host.run(() => space.settled());
  expect(life.takeRan().sort()).toEqual(["label", "other", "sum"]);
  return life;
}

describe("restart", () => {
  test("[I7] clean nodes are taken up without a run and without a document being read", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const life = await at.begin();
    await life.space.restore(() => shop(life));
    await at.host.advance(1_000);
    expect(life.ran).toEqual([]);
    expect(life.loads).toBe(0);
    expect(life.space.scheduler.getGraphSnapshot().map(({ id, status }) => [id, status])).toEqual([
      ["sum", "clean"],
      ["other", "clean"],
      ["label", "clean"],
    ]);
    life.space.scheduler.checkInvariants();
  });

  test("[I7] an observer of a clean node gets its value, and no node runs", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const life = await at.begin();
    const { label } = await life.space.restore(() => shop(life));
    const seen: unknown[] = [];
    label.sink((value) => seen.push(value));
    await at.host.advance(1_000);
    expect(seen).toEqual(["sum 3"]);
    expect(life.ran).toEqual([]);
  });

  test("[I7] a later change runs exactly what it concerns, once", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const life = await at.begin();
    const { label, other, prices } = await life.space.restore(() => shop(life));
    const seen: unknown[] = [];
    label.sink((value) => seen.push(value));
    other.sink(() => undefined);
    await at.host.advance(1_000);
    await at.host.run(() => prices.pull());
    prices.key("a").set(10);
    await at.host.advance(1_000);
    expect(life.ran).toEqual(["sum", "label"]);
    expect(seen).toEqual(["sum 3", "sum 12"]);
  });

  test("[I7] an input that changed while nobody was there: its readers run, those with the same code elsewhere do not", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const between = await at.begin();
    await at.host.run(() => between.space.cell("prices").pull());
    between.space.cell<Record<string, number>>("prices").key("a").set(7);
    await at.host.run(() => between.space.settled());
    between.kill();
    const life = await at.begin();
    const { label, other } = await life.space.restore(() => shop(life));
    const seen: unknown[] = [];
    label.sink((value) => seen.push(value));
    other.sink(() => undefined);
    await at.host.advance(1_000);
    expect(life.ran).toEqual(["sum", "label"]);
    expect(seen).toEqual(["sum 9"]);
  });
});
