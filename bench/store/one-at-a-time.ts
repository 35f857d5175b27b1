/**
 * Publishing one event after the other, each waiting for the disk alone. Everybody has a log of full length behind him
 * (`warm-log.ts`), and the target is taken by turns, an event to the bare engine and an event to ours: what a disk does from one
 * second to the next is more than what lies between the two.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { JournalEntry } from "../../src/store/journal.ts";
import type { Store } from "../../src/store/store.ts";
import type { Sample, Scale, Scene } from "../harness/benchmark.ts";
import { elapsedMs, percentile } from "../harness/timing.ts";
import { BareSqlite } from "./bare-sqlite.ts";
import type { Durability } from "./durability.ts";
import { makeEntries } from "./events.ts";
import { BULK, publishInBulk } from "./journal-runs.ts";
import type { SideBySide } from "./side-by-side.ts";
import { warmLog } from "./warm-log.ts";

const EVENTS: Readonly<Record<Scale, number>> = { quick: 200, full: 1500, long: 3000 };
const TO_BARE = "p50, of bare by turns";

type Publish = (entry: JournalEntry) => unknown;

export function oneAtATime(durability: Durability): Omit<SideBySide, "group" | "durability"> {
  return {
    name: "publish, one at a time",
    metrics: [
      { name: "p50 ms", better: "lower" },
      { name: "p99 ms", better: "lower" },
      { name: "events/s", better: "higher" },
      { name: TO_BARE, better: "lower", target: { of: "itself", atMost: 1.5 } },
    ],
    bare: async (bare, scene) => {
      await warmLog(join(scene.directory, "bare.db"), () => bare.append(makeEntries(BULK)));
      return latencies(scene, (entry) => bare.append([entry]));
    },
    store: async (store, scene) => {
      if (store.backend !== "sqlite") return latencies(scene, (entry) => store.append([entry]));
      await warmStore(store, scene.directory);
      const alone = await latencies(scene, (entry) => store.append([entry]));
      return { ...alone, [TO_BARE]: await besideBare(store, scene, durability) };
    },
    plainjob: async (queue, scene) => {
      await warmLog(join(scene.directory, "plainjob.db"), () => queue.publishMany(makeEntries(BULK)));
      return latencies(scene, (entry) => queue.publish(entry));
    },
  };
}

function warmStore(store: Store, directory: string): Promise<void> {
  return warmLog(join(directory, "millrace.db"), () => publishInBulk(store, makeEntries(BULK)));
}

async function latencies({ scale }: Scene, publish: Publish): Promise<Sample> {
  const entries = makeEntries(EVENTS[scale]);
  const tookMs: number[] = [];
  const totalMs = await elapsedMs(async () => {
    for (const entry of entries) tookMs.push(await elapsedMs(() => publish(entry)));
  });
  return {
    "p50 ms": percentile(tookMs, 0.5),
    "p99 ms": percentile(tookMs, 0.99),
    "events/s": (entries.length * 1000) / totalMs,
  };
}

/** Our median divided by that of the bare engine, which publishes in between. */
async function besideBare(store: Store, { scale, directory }: Scene, durability: Durability): Promise<number> {
  const beside = join(directory, "beside");
  mkdirSync(beside);
  using bare = await BareSqlite.open(beside, durability);
  await warmLog(join(beside, "bare.db"), () => bare.append(makeEntries(BULK)));
  const bareMs: number[] = [];
  const ourMs: number[] = [];
  for (const entry of makeEntries(EVENTS[scale])) {
    bareMs.push(await elapsedMs(() => bare.append([entry])));
    ourMs.push(await elapsedMs(() => store.append([entry])));
  }
  return percentile(ourMs, 0.5) / percentile(bareMs, 0.5);
}
