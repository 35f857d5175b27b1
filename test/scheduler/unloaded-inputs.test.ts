/** Resumed nodes with inputs that are not loaded; these become known in several ways, also as absent. */
import { describe, expect, test } from "#test";
import { type Life, setup } from "./restart-setup.ts";

interface Price {
  a?: number;
  b?: number;
}

/** A computation forwards the source's value; another shows that. */
function register(life: Life, between: () => number | undefined) {
  const { space } = life;
  const name = "between";
  const middle = space.computed(name, life.noting(name, between), { fingerprint: String(between) });
  const shown = space.computed(
    "shown",
    life.noting("shown", () => `a is ${space.cell<Price>("price").key("a").get()}, ${name} ${middle.get()}`),
    { fingerprint: "shown" },
  );
  return { shown, middle };
}

async function resumed() {
  const at = setup();
  const first = await at.begin();
  first.space.cell<Price>("price").set({ a: 1, b: 2 });
  const before = register(first, () => 5);
  expect(await at.host.run(() => before.shown.pull())).toBe("a is 1, between 5");
  await at.host.run(() => first.space.settled());
  first.kill();
  const life = await at.begin();
  const { shown, middle } = await at.host.run(() => life.space.restore(() => register(life, () => 5)));
  return { at, life, shown, middle, price: life.space.cell<Price>("price") };
}

/** Once with a permanent observer, once with a later one. */
async function seenAfter(change: (parts: Awaited<ReturnType<typeof resumed>>) => Promise<unknown>): Promise<unknown[]> {
  const seen: unknown[] = [];
  for (const isWatched of [true, false]) {
    const parts = await resumed();
    const { at, life, shown } = parts;
    let last: unknown;
    const watch = () => shown.sink((value) => (last = value));
    if (isWatched) watch();
    await at.host.advance(1_000);
    expect(life.ran).toEqual([]);
    await change(parts);
    await at.host.advance(1_000);
    if (!isWatched) watch();
    await at.host.advance(1_000);
    life.space.scheduler.checkInvariants();
    seen.push([last, life.takeRan()]);
    life.kill();
  }
  return seen;
}

describe("an input that was not loaded", () => {
  test("[I7] a part that others removed from an unloaded input is missed", async () => {
    const seen = await seenAfter(async ({ at }) => {
      const other = await at.begin();
      const price = other.space.cell<Price>("price");
      await at.host.run(() => price.pull());
      price.set({ b: 2 });
      await at.host.run(() => other.space.settled());
      other.kill();
    });
    expect(seen).toEqual(Array(2).fill(["a is undefined, between 5", ["shown"]]));
  });

  test("[I7] others have removed it", async () => {
    const seen = await seenAfter(async ({ at }) => {
      const other = await at.begin();
      const price = other.space.cell<Price>("price");
      await at.host.run(() => price.pull());
      price.delete();
      await at.host.run(() => other.space.settled());
      other.kill();
    });
    expect(seen).toEqual(Array(2).fill(["a is undefined, between 5", ["shown"]]));
  });

  test("[I7] [S64] others have written it, and it could not be loaded at first", async () => {
    const seen = await seenAfter(async ({ at, life }) => {
      const other = await at.begin();
      other.space.cell<Price>("price").set({ a: 7 });
      life.line.plan = ({ method }) => (method === "load" ? { instead: new Error("the line is dead") } : {});
      await at.host.run(() => other.space.settled());
      await at.host.advance(500);
      expect(life.ran).toEqual([]);
      life.line.plan = () => ({});
      other.kill();
    });
    expect(seen).toEqual(Array(2).fill(["a is 7, between 5", ["shown"]]));
  });

  test("[I7] an unloaded input that is replaced by one with fewer parts makes the reader run", async () => {
    const seen = await seenAfter(async ({ price }) => price.set({ b: 2 }));
    expect(seen).toEqual(Array(2).fill(["a is undefined, between 5", ["shown"]]));
  });

  test("[I7] an unloaded output that is replaced by an absent value makes the reader run", async () => {
    const seen = await seenAfter(async ({ life, middle }) => {
      middle.dispose();
      life.space.computed("between", () => undefined, { fingerprint: "nothing" });
    });
    expect(seen).toEqual(Array(2).fill(["a is 1, between undefined", ["shown"]]));
  });

  test("[I7] an unchanged input runs no reader, however it arrives", async () => {
    const seen = await seenAfter(async ({ life, middle, price, at }) => {
      await at.host.run(() => price.pull());
      price.set({ a: 1, b: 3 });
      middle.dispose();
      life.space.computed("between", () => 5, { fingerprint: "as before" });
    });
    expect(seen).toEqual(Array(2).fill(["a is 1, between 5", []]));
  });

  test("[I7] [S64] a stored output that cannot be loaded at first is shown when it can be, as it was or as it is computed by then", async () => {
    for (const isChanged of [false, true]) {
      const { at, life, shown, price } = await resumed();
      if (isChanged) price.set({ a: 7 });
      life.line.plan = ({ method }) => (method === "load" ? { instead: new Error("the line is dead") } : {});
      let last: unknown;
      shown.sink((value) => (last = value));
      await at.host.advance(500);
      life.line.plan = () => ({});
      await at.host.advance(5_000);
      expect(last).toBe(isChanged ? "a is 7, between 5" : "a is 1, between 5");
      life.space.scheduler.checkInvariants();
      life.kill();
    }
  });
});
