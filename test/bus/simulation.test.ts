import { describe, expect, test } from "#test";
import { simulate } from "../../src/host/simulate.ts";
import { BusSimulation, type Sightings } from "./simulation.ts";

const SEEDS = 80;
const ROUNDS = 60;

async function run(seed: number): Promise<{ value: Sightings; traceHash: string }> {
  try {
    return await simulate(seed, async (world) => {
      const simulation = new BusSimulation(world);
      await simulation.run(ROUNDS);
      return simulation.sightings;
    });
  } catch (error) {
    throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

describe("the bus among faults", () => {
  test("[J80] nothing acknowledged is lost, every effect happens once, order is kept per key, and a seed repeats itself", async () => {
    const total: Sightings = { acknowledged: 0, kills: 0, pauses: 0, handledTwice: 0, retried: 0 };
    for (let seed = 1; seed <= SEEDS; seed++) {
      const first = await run(seed);
      const second = await run(seed);
      if (first.traceHash !== second.traceHash) throw new Error(`seed ${seed} ran in two ways`);
      for (const name of Object.keys(total) as (keyof Sightings)[]) total[name] += first.value[name];
    }
    // What the runs are there to meet, they must have met.
    for (const [name, count] of Object.entries(total)) if (count < SEEDS) throw new Error(`${name}: only ${count}`);
    expect(total.acknowledged > 20 * SEEDS).toBe(true);
  });
});
