import { describe, expect, test } from "vitest";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { counted, type LongPart, rounds, timeoutMs } from "../portable/long-run.ts";
import { ExtensionSimulation, type Sightings } from "./simulation.ts";

const PART: LongPart = { name: "extensions among faults", short: 8, long: 300, minutes: 1.5 };

async function run(seed: number): Promise<{ value: Sightings; traceHash: string }> {
  try {
    // Without the guard against real time: the cron library makes dates of its own while it reads an expression. The
    // trace shows all the same.
    const world = simulatedHost(seed);
    const simulation = new ExtensionSimulation(world);
    await simulation.run();
    return { value: simulation.sightings, traceHash: world.traceHash() };
  } catch (error) {
    throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

describe("extensions among faults", () => {
  test(
    "[X22] [X43] [X44] [X46] no acknowledged event is lost, also while an extension is in ERROR, no keyed event is there twice, no slot goes back, and a seed repeats",
    async () => {
      const all: Sightings = {
        ...{ grains: 0, kills: 0, refused: 0, ticks: 0, tasks: 0, repeatedSlots: 0 },
        ...{ failures: 0, recoveries: 0 },
      };
      let seeds = 0;
      for (const seed of rounds(PART)) {
        seeds = seed;
        const first = await run(seed);
        const second = await run(seed);
        if (first.traceHash !== second.traceHash) throw new Error(`seed ${seed} ran in two ways`);
        for (const name of Object.keys(all) as (keyof Sightings)[]) all[name] += first.value[name];
      }
      counted(all.grains + all.tasks + all.ticks, "simulated events");
      // The runs must have met the faults that they are made for.
      for (const [name, count] of Object.entries(all))
        expect(`${name}: ${count >= seeds ? "enough" : count}`).toBe(`${name}: enough`);
    },
    timeoutMs(PART),
  );
});
