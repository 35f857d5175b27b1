import { describe, expect, test } from "#test";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { type ProcessOptions, type ProcessSightings, ProcessTrial } from "./process-model.ts";

const isLong = globalThis.process.env["TEST_LONG"] === "1";
const SEEDS = isLong ? 3_000 : 160;

describe("several processes that persist the same computations", () => {
  const cases: readonly [string, ProcessOptions, number][] = [
    ["2 processes", { processes: 2 }, SEEDS],
    ["3 processes", { processes: 3 }, SEEDS],
    ["2 processes with time gates", { processes: 2, gates: true }, SEEDS / 2],
    ["2 processes that evict documents", { processes: 2, residentDocumentsMax: 3 }, SEEDS / 2],
  ];
  for (const [name, options, seeds] of cases) {
    test(`[I12] ${name}: observers and effects that write show the values of the oracle at every rest`, async () => {
      const total: ProcessSightings = { compared: 0, pauses: 0, kills: 0, spared: 0, mirrored: 0 };
      for (let seed = 1; seed <= seeds; seed++) {
        const disk = new MemoryDisk();
        const trial = new ProcessTrial(seed, () => async (host) => memoryStore({ host, disk }), options);
        const met = await trial.run(60);
        for (const key of Object.keys(total) as (keyof ProcessSightings)[]) total[key] += met[key];
      }
      for (const [what, count] of Object.entries(total)) expect([what, count > seeds / 2]).toEqual([what, true]);
    }, 600_000);
  }
});
