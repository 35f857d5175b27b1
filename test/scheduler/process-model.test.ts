import { describe, expect, test } from "#test";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { type LongPart, rounds, timeoutMs } from "../portable/long-run.ts";
import { type ProcessOptions, type ProcessSightings, ProcessTrial } from "./process-model.ts";

const ALL: LongPart = { name: "processes that persist", short: 160, long: 3_000, minutes: 1 };
const HALF: LongPart = { ...ALL, short: 80, long: 1_500, minutes: 0.5 };

describe("several processes that persist the same computations", () => {
  const cases: readonly [string, ProcessOptions, LongPart][] = [
    ["2 processes", { processes: 2 }, ALL],
    ["3 processes", { processes: 3 }, ALL],
    ["2 processes with time gates", { processes: 2, gates: true }, HALF],
    ["2 processes that evict documents", { processes: 2, residentDocumentsMax: 3 }, HALF],
    ["2 processes with asynchronous computations", { processes: 2, asynchronous: true }, HALF],
    [
      "3 processes with asynchronous computations, time gates and eviction",
      { processes: 3, asynchronous: true, gates: true, residentDocumentsMax: 3 },
      HALF,
    ],
  ];
  for (const [name, options, part] of cases) {
    test(
      `[I12] ${name}: observers and effects that write show the values of the oracle at every rest`,
      async () => {
        const total: ProcessSightings = { compared: 0, pauses: 0, kills: 0, spared: 0, mirrored: 0 };
        let seeds = 0;
        for (const seed of rounds(part)) {
          seeds = seed;
          const disk = new MemoryDisk();
          const trial = new ProcessTrial(seed, () => async (host) => memoryStore({ host, disk }), options);
          const met = await trial.run(60);
          for (const key of Object.keys(total) as (keyof ProcessSightings)[]) total[key] += met[key];
        }
        for (const [what, count] of Object.entries(total)) expect([what, count > seeds / 2]).toEqual([what, true]);
      },
      timeoutMs(part),
    );
  }

  /** Seeds that found a bug, with the bug. */
  const found: readonly [number, ProcessOptions, string][] = [
    [521, { processes: 2, gates: true }, "[I7] a resumed node that reads a waiting node's output waits for its run"],
    [
      292,
      { processes: 3, asynchronous: true, gates: true, residentDocumentsMax: 3 },
      "[I7] a resumed node waits for an output that an evicted input hides",
    ],
  ];
  for (const [seed, options, what] of found)
    test(what, async () => {
      const disk = new MemoryDisk();
      await new ProcessTrial(seed, () => async (host) => memoryStore({ host, disk }), options).run(60);
    });
});
