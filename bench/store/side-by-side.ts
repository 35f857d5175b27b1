/**
 * One workload of the store benchmark for each kind of system: the bare engine, a `Store` (SQLite or memory), and
 * plainjob where it can do it. Opening and closing is not measured.
 */
import type { Store } from "../../src/store/store.ts";
import type { Metric, Sample, Scale, Scene, System, Workload } from "../harness/benchmark.ts";
import { whyPeerMissing } from "../harness/peers.ts";
import { BareSqlite } from "./bare-sqlite.ts";
import type { Durability } from "./durability.ts";
import { openMemory, openMillrace } from "./millrace.ts";
import { Plainjob } from "./plainjob.ts";

export const SYSTEMS: readonly System[] = [
  { name: "bare sqlite", role: "limit" },
  { name: "millrace", role: "ours" },
  { name: "memory", role: "orientation" },
  { name: "plainjob", role: "peer", unavailable: async () => whyPeerMissing("plainjob") },
];

export interface SideBySide {
  readonly group: string;
  readonly name: string;
  readonly durability: Durability;
  readonly metrics: readonly Metric[];
  readonly from?: Scale;
  bare?(bare: BareSqlite, scene: Scene): Promise<Sample>;
  store(store: Store, scene: Scene): Promise<Sample>;
  plainjob?(queue: Plainjob, scene: Scene): Promise<Sample>;
}

export function sideBySide({ group, name, metrics, from, durability, bare, store, plainjob }: SideBySide): Workload {
  const runs: Record<string, (scene: Scene) => Promise<Sample>> = {
    millrace: async (scene) => {
      await using opened = await openMillrace(scene.directory, durability);
      return await store(opened, scene);
    },
    memory: async (scene) => {
      await using opened = openMemory();
      return await store(opened, scene);
    },
  };
  if (bare) {
    runs["bare sqlite"] = async (scene) => {
      using opened = await BareSqlite.open(scene.directory, durability);
      return await bare(opened, scene);
    };
  }
  if (plainjob) {
    runs["plainjob"] = async (scene) => {
      using opened = await Plainjob.open(scene.directory, durability);
      return await plainjob(opened, scene);
    };
  }
  return { group, name, metrics, runs, ...(from && { from }) };
}
