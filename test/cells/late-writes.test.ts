import { describe, expect, test } from "#test";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import type { Json } from "../../src/message/json.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";

/** A list in the store, and a second process that has not loaded it. */
async function unloaded({ stored, seed = 1 }: { stored: Json | undefined; seed?: number } = { stored: [1, 2] }) {
  const parts = await setup({ seed });
  if (stored !== undefined) parts.space.cell<Json>("list").set(stored);
  await parts.quiet();
  const { space } = await parts.open();
  const errors = new Calls<unknown>();
  space.scheduler.onError(errors.note);
  const list = space.cell<number[]>("list");
  const settle = () => parts.host.run(() => space.settled());
  const first = async () => {
    await parts.quiet();
    return parts.host.run(() => parts.space.cell<number[]>("list").pull());
  };
  return { ...parts, other: space, list, errors, settle, first };
}

describe("plain writes to a document that is not loaded", () => {
  test("[R53] pushes are added to the stored list, in the order of the calls", async () => {
    const { list, errors, settle, first } = await unloaded();
    list.push(3);
    list.push(4, 5);
    expect(list.isLoaded).toBe(true);
    await settle();
    list.push(6);
    await settle();
    expect([await first(), errors.seen]).toEqual([[1, 2, 3, 4, 5, 6], []]);
  });

  test("[R53] a push onto a list that no store has is there at once", async () => {
    const { space, quiet } = await setup();
    const list = space.cell<number[]>("new");
    expect(list.isLoaded).toBe(false);
    list.push(1);
    list.push(2);
    expect(list.get()).toEqual([1, 2]);
    await quiet();
    expect(list.get()).toEqual([1, 2]);
  });

  test("[R53] an update is called with the stored value", async () => {
    const { list, settle, first } = await unloaded();
    list.update((value = []) => [...value, 3]);
    await settle();
    expect(await first()).toEqual([1, 2, 3]);
  });

  test("[R53] a set after a push that waits comes after it", async () => {
    const { list, settle, first, errors } = await unloaded();
    list.push(3);
    list.set([9]);
    list.push(10);
    await settle();
    expect([await first(), errors.seen]).toEqual([[9, 10], []]);
  });

  test("[R53] a delete removes the stored document", async () => {
    const { list, settle, first } = await unloaded();
    list.delete();
    await settle();
    expect(await first()).toBe(undefined);
  });

  test("[R53] other writes of the same turn are not taken back with a push that waits", async () => {
    const { space, other, list, errors, settle, first } = await unloaded();
    other.cell("before").set(1);
    list.push(3);
    other.cell("after").set(2);
    await settle();
    expect(await first()).toEqual([1, 2, 3]);
    expect([await space.cell("before").pull(), await space.cell("after").pull(), errors.seen]).toEqual([1, 2, []]);
  });

  test("[R53] random plain writes end as if the document had been loaded before them", async () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = new SeededRandom(seed, 3);
      const stored = random.below(4) === 0 ? undefined : [1, 2];
      const { host, list, errors, settle, first } = await unloaded({ stored, seed });
      let expected: number[] | undefined = stored;
      for (let step = 0; step < 6; step++) {
        const item = 10 + step;
        switch (random.below(6)) {
          case 0:
            list.set([item]);
            expected = [item];
            break;
          case 1:
            list.delete();
            expected = undefined;
            break;
          case 2:
            list.update((value = []) => [item, ...value]);
            expected = [item, ...(expected ?? [])];
            break;
          case 3:
            await host.advance(random.below(3) * 5);
            break;
          default:
            list.push(item);
            expected = [...(expected ?? []), item];
        }
      }
      await settle();
      expect([seed, await first(), errors.seen]).toEqual([seed, expected, []]);
    }
  });
});
