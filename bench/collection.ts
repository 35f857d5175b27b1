/**
 * Inserts into a collection with an index and live totals, on a SQLite file, among few, some and many elements.
 * The ratio of many to few shows whether the cost of an insert depends on the size of the collection. The first
 * stretch loads the pages of the indexes from the file and is reported alone. Of the others the fastest counts, because
 * other work on the machine only makes a stretch slower.
 */
import { cpSync } from "node:fs";
import { join } from "node:path";
import { index, Space, systemHost } from "millrace/signals";
import { openSqliteStore } from "millrace/sqlite";
import type { Benchmark, Sample, Scale, Scene } from "./harness/benchmark.ts";
import { elapsedMs } from "./harness/timing.ts";

/** Inserts that are made at once and timed together. */
const STRETCH = 500;
const STRETCHES: Readonly<Record<Scale, number>> = { quick: 8, full: 15, long: 30 };
/** Elements in one commit while the file is built. */
const TOGETHER = 200;
const host = systemHost();

/** Elements before the inserts that are timed. A quick run builds no file of 100,000. */
const SIZES: Readonly<Record<"few" | "some" | "many", (scale: Scale) => number>> = {
  few: () => 100,
  some: (scale) => (scale === "quick" ? 1_000 : 10_000),
  many: (scale) => (scale === "quick" ? 10_000 : 100_000),
};

export const collectionBenchmark: Benchmark = {
  name: "collection",
  what: "inserts among 100, 10,000 and 100,000 elements (quick: 100, 1,000 and 10,000), on a SQLite file",
  systems: [
    { name: "few", role: "limit" },
    { name: "some", role: "orientation" },
    { name: "many", role: "ours" },
  ],
  workloads: [
    {
      group: "collection",
      name: "insert with live totals",
      metrics: [
        { name: "inserts/s", better: "higher", target: { of: "limit", atLeast: 0.67 } },
        { name: "first inserts/s", better: "higher" },
      ],
      runs: { few: inserts("few"), some: inserts("some"), many: inserts("many") },
    },
  ],
};

async function open(directory: string) {
  const store = await openSqliteStore({ path: join(directory, "store.db"), host, durability: "process" });
  const space = await Space.open({ store, host, name: "s" });
  const tasks = space.collection<{ readonly done: boolean; readonly hours: number }, "by_done">("tasks", {
    indexes: [index("by_done", (task) => [task.done, task.hours], { totals: 1 })],
    sums: { hours: (task) => task.hours },
  });
  const insert = (n: number) => {
    const id = host.id();
    tasks.set(id, { done: n % 3 === 0, hours: n % 50 });
    return id;
  };
  const close = async () => {
    await space.close();
    await store.close();
  };
  return { space, tasks, insert, close };
}

/** A file with so many elements; made once for each size. */
function filled(scene: Scene, size: number): Promise<string> {
  return scene.shared(`${size} elements`, async (directory) => {
    const { space, insert, close } = await open(directory);
    for (let from = 0; from < size; from += TOGETHER)
      await space.transact(() => {
        for (let n = from; n < Math.min(from + TOGETHER, size); n++) insert(n);
      });
    await close();
  });
}

function inserts(which: keyof typeof SIZES): (scene: Scene) => Promise<Sample> {
  return async (scene) => {
    // A copy: every run begins with the same number of elements.
    cpSync(await filled(scene, SIZES[which](scene.scale)), scene.directory, { recursive: true });
    const { space, tasks, insert, close } = await open(scene.directory);
    const group = { index: "by_done", key: [false] } as const;
    const totals = space.computed("totals", () => [tasks.count(group), tasks.sum("hours", group)]);
    let calls = 0;
    const stop = totals.sink(() => calls++);
    await space.settled();
    const stretch = async () => {
      let ids: readonly string[] = [];
      const ms = await elapsedMs(async () => {
        ids = await Promise.all(Array.from({ length: STRETCH }, (_, n) => space.transact(() => insert(n))));
        await space.settled();
      });
      // The next stretch begins with the same number of elements.
      await space.transact(() => {
        for (const id of ids) tasks.delete(id);
      });
      return (STRETCH / ms) * 1_000;
    };
    const first = await stretch();
    let fastest = 0;
    for (let nth = 0; nth < STRETCHES[scene.scale]; nth++) fastest = Math.max(fastest, await stretch());
    stop();
    await close();
    if (calls < STRETCHES[scene.scale]) throw new Error("the totals did not follow the inserts");
    return { "inserts/s": fastest, "first inserts/s": first };
  };
}
