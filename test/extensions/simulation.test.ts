import { describe, expect, test } from "vitest";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { ExtensionSimulation, type Sightings } from "./simulation.ts";

const SEEDS = process.env["TEST_LONG"] ? 300 : 8;

async function run(seed: number): Promise<{ value: Sightings; traceHash: string }> {
  try {
    // Without the guard against real time: the cron library makes dates of its own while it reads an expression. The trace shows all the same.
    const world = simulatedHost(seed);
    const simulation = new ExtensionSimulation(world);
    await simulation.run();
    return { value: simulation.sightings, traceHash: world.traceHash() };
  } catch (error) {
    throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

describe("extensions among faults", () => {
  test("[X22] [X43] [X44] [X46] nothing acknowledged is lost, nothing keyed is there twice, no slot goes back, and a seed repeats itself", async () => {
    const all: Sightings = { grains: 0, kills: 0, refused: 0, ticks: 0, tasks: 0, repeatedSlots: 0 };
    for (let seed = 1; seed <= SEEDS; seed++) {
      const first = await run(seed);
      const second = await run(seed);
      if (first.traceHash !== second.traceHash) throw new Error(`seed ${seed} ran in two ways`);
      for (const name of Object.keys(all) as (keyof Sightings)[]) all[name] += first.value[name];
    }
    // What the runs are there to meet, they must have met.
    for (const [name, count] of Object.entries(all))
      expect(`${name}: ${count >= SEEDS ? "enough" : count}`).toBe(`${name}: enough`);
  }, 600_000);
});
