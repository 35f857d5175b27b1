/** Lists against plain arrays: whatever is done to a list, its map is the map of what it holds, and only new elements run. */
import fc from "fast-check";
import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";

interface Item {
  readonly id: number;
  readonly text: string;
}

async function openSpace(): Promise<Space> {
  const host = simulatedHost(1);
  return Space.open({ store: memoryStore({ host }), host, name: "lists" });
}

const item = fc.record({ id: fc.nat(12), text: fc.constantFrom("a", "b", "c") });
const edits = fc.array(fc.record({ at: fc.nat(20), remove: fc.nat(3), insert: fc.array(item, { maxLength: 3 }) }), {
  maxLength: 12,
});

describe("lists", () => {
  for (const keyed of [true, false]) {
    test(`[R] a map ${keyed ? "by key" : "by position"} is the map of what the list holds`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(item, { maxLength: 8 }), edits, async (start, changes) => {
          const space = await openSpace();
          const list = space.cell<readonly Item[]>("list");
          list.set(start);
          const options = keyed ? { key: ({ id }: Item) => id } : {};
          const mapped = space.map<Item, string>(
            "mapped",
            list,
            (one) => `${one.get()?.id}${one.get()?.text}`,
            options,
          );
          let seen: readonly string[] = [];
          space.effect(() => {
            seen = mapped.get() ?? [];
          });
          space.flush();
          let plain = [...start];
          for (const { at, remove, insert } of changes) {
            const from = Math.min(at, plain.length);
            const count = Math.min(remove, plain.length - from);
            list.splice(from, count, ...insert);
            plain = plain.toSpliced(from, count, ...insert);
            space.flush();
            expect(seen).toEqual(plain.map(({ id, text }) => `${id}${text}`));
          }
          space.scheduler.dispose();
        }),
        { numRuns: 150 },
      );
    });
  }

  test("[R] only what is new to a list runs: not what moves, nor what stays behind an insertion", async () => {
    const space = await openSpace();
    const list = space.cell<readonly Item[]>("list");
    const items = Array.from({ length: 50 }, (_, id) => ({ id, text: "x" }));
    list.set(items);
    let runs = 0;
    const mapped = space.map<Item, number>(
      "mapped",
      list,
      (one) => {
        runs++;
        return one.get()?.id ?? -1;
      },
      { key: ({ id }) => id },
    );
    space.effect(() => void mapped.get());
    space.flush();
    expect(runs).toBe(50);
    list.splice(20, 0, { id: 50, text: "new" });
    space.flush();
    expect(runs).toBe(51);
    list.set(list.get()?.toReversed() ?? []);
    space.flush();
    expect(runs).toBe(51);
    list.splice(7, 1);
    space.flush();
    expect(runs).toBe(51);
    expect(mapped.get()).toEqual(list.get()?.map(({ id }) => id));
  });
});
