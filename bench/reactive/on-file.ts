/**
 * Ours alone, on a real file with the default durability: the scheduler's own time of a run, without the disk, and the
 * time until a change and its derived values are durable.
 */
import { join } from "node:path";
import { Space, systemHost } from "millrace/signals";
import { openSqliteStore } from "millrace/sqlite";
import type { Sample, Scene } from "../harness/benchmark.ts";
import { elapsedMs } from "../harness/timing.ts";
import { pace } from "./pace.ts";

export const SHARE = "us per run, own share";
export const DURABLE = "us per run, until durable";
const NODES = 1_000;
const CHANGES = 20;

export async function chainOnFile({ directory, scale }: Scene): Promise<Sample> {
  const host = systemHost();
  const store = await openSqliteStore({ path: join(directory, "store.db"), host });
  const space = await Space.open({ store, host, name: "bench", persist: { version: "1" } });
  const source = space.cell<number>("source");
  source.set(0);
  let last = space.computed<number>("node 0", () => (source.get() ?? 0) + 1);
  for (let n = 1; n < NODES; n++) {
    const below = last;
    last = space.computed<number>(`node ${n}`, () => (below.get() ?? 0) + 1);
  }
  const stop = space.effect(() => void last.get());
  await space.settled();
  const change = (to: number) => {
    source.set(to);
    space.flush();
  };
  const before = space.scheduler.getStats().runs;
  const us = await pace(scale, change);
  const runs = space.scheduler.getStats().runs - before;
  if (runs < NODES) throw new Error(`only ${runs} runs`);
  const ms = await elapsedMs(async () => {
    for (let n = 1; n <= CHANGES; n++) {
      change(-n);
      await space.settled();
    }
  });
  stop();
  await space.close();
  await store.close();
  return { [SHARE]: us / (NODES + 1), [DURABLE]: (ms * 1000) / (CHANGES * (NODES + 1)) };
}
