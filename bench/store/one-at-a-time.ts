/**
 * Publishing one event after the other, each waiting for the disk. Every system has a log of full length
 * (`warm-log.ts`). For the target, the bare engine and our store take turns event by event, because the disk varies
 * more from second to second than the two differ.
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
/** A metric's name: our median divided by that of the bare engine, which works in between. */
export const TO_BARE = "p50, of bare by turns";

export type Publish = (entry: JournalEntry) => unknown;

/** The measured system and the limit beside it, with the same durability. */
export interface Turns {
  readonly scene: Scene;
  readonly durability: Durability;
  ours(entry: JournalEntry): unknown;
  bare(bare: BareSqlite, entry: JournalEntry): unknown;
}

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
      await warmBare(bare, scene.directory);
      return latencies(scene, (entry) => bare.append([entry]));
    },
    store: async (store, scene) => {
      if (store.backend !== "sqlite") return latencies(scene, (entry) => store.append([entry]));
      await warmStore(store, scene.directory);
      const alone = await latencies(scene, (entry) => store.append([entry]));
      const turns: Turns = {
        scene,
        durability,
        ours: (entry) => store.append([entry]),
        bare: (bare, entry) => bare.append([entry]),
      };
      return { ...alone, [TO_BARE]: await besideBare(turns) };
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

export function warmBare(bare: BareSqlite, directory: string): Promise<void> {
  return warmLog(join(directory, "bare.db"), () => bare.append(makeEntries(BULK)));
}

export async function latencies({ scale }: Scene, publish: Publish): Promise<Sample> {
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

export async function besideBare({ scene, durability, ours, bare: does }: Turns): Promise<number> {
  const beside = join(scene.directory, "beside");
  mkdirSync(beside);
  using bare = await BareSqlite.open(beside, durability);
  await warmBare(bare, beside);
  const bareMs: number[] = [];
  const ourMs: number[] = [];
  for (const entry of makeEntries(EVENTS[scene.scale])) {
    bareMs.push(await elapsedMs(() => does(bare, entry)));
    ourMs.push(await elapsedMs(() => ours(entry)));
  }
  return percentile(ourMs, 0.5) / percentile(bareMs, 0.5);
}
