import { describe, expect, test } from "#test";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { type ProcessSightings, ProcessTrial } from "./process-model.ts";

const isLong = globalThis.process.env["TEST_LONG"] === "1";
const SEEDS = isLong ? 3_000 : 160;

describe("several processes that persist the same computations", () => {
  for (const processes of [2, 3]) {
    test(`[I12] ${processes} processes that write, pause and die show the values of the oracle at every rest`, async () => {
      const total: ProcessSightings = { compared: 0, pauses: 0, kills: 0, spared: 0 };
      for (let seed = 1; seed <= SEEDS; seed++) {
        const disk = new MemoryDisk();
        const trial = new ProcessTrial(seed, () => async (host) => memoryStore({ host, disk }), { processes });
        const met = await trial.run(60);
        for (const key of Object.keys(total) as (keyof ProcessSightings)[]) total[key] += met[key];
      }
      for (const [what, count] of Object.entries(total)) expect([what, count > SEEDS]).toEqual([what, true]);
    }, 600_000);
  }
});
