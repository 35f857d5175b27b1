/**
 * Inserts into a collection with an index and live totals, on a SQLite file, among few, some and many elements. The ratio of many to
 * few shows whether the cost of an insert depends on the size of the collection.
 */
import { join } from "node:path";
import { index, Space, systemHost } from "millrace/signals";
import { openSqliteStore } from "millrace/sqlite";
import type { Benchmark, Sample, Scale, Scene } from "./harness/benchmark.ts";
import { elapsedMs } from "./harness/timing.ts";

const INSERTS = 500;
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
      metrics: [{ name: "inserts/s", better: "higher", target: { of: "limit", atLeast: 0.67 } }],
      runs: { few: inserts("few"), some: inserts("some"), many: inserts("many") },
    },
  ],
};

async function open(directory: string) {
  const store = await openSqliteStore({ path: join(directory, "store.db"), host, durability: "process" });
  const space = await Space.open({ store, host, name: "s" });
  const tasks = space.collection<{ readonly done: boolean; readonly hours: number }>("tasks", {
    indexes: [index("by_done", (task) => [task.done, task.hours], { totals: 1 })],
    sums: { hours: (task) => task.hours },
  });
  const insert = (n: number) => tasks.set(host.id(), { done: n % 3 === 0, hours: n % 50 });
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
    const { space, tasks, insert, close } = await open(await filled(scene, SIZES[which](scene.scale)));
    const group = { index: "by_done", key: [false] };
    const totals = space.computed("totals", () => [tasks.count(group), tasks.sum("hours", group)]);
    let told = 0;
    const stop = totals.sink(() => told++);
    await space.settled();
    const ms = await elapsedMs(async () => {
      const made = Array.from({ length: INSERTS }, (_, n) => space.transact(() => insert(n)));
      await Promise.all(made);
      await space.settled();
    });
    stop();
    await close();
    if (told < 2) throw new Error("the totals did not follow the inserts");
    return { "inserts/s": (INSERTS / ms) * 1_000 };
  };
}
