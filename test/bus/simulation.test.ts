import { describe, expect, test } from "#test";
import { simulate } from "../../src/host/simulated-host.ts";
import { BusSimulation, type Sightings, type Subscribers } from "./simulation.ts";

const SEEDS = 80;
const SEEDS_DIFFERENT = 40;
const ROUNDS = 60;

async function run(seed: number, subscribers: Subscribers): Promise<{ value: Sightings; traceHash: string }> {
  try {
    return await simulate(seed, async (world) => {
      const simulation = new BusSimulation(world, subscribers);
      await simulation.run(ROUNDS);
      return simulation.sightings;
    });
  } catch (error) {
    throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

async function runAll(seeds: number, subscribers: Subscribers): Promise<Sightings> {
  const total: Sightings = {
    ...{ acknowledged: 0, kills: 0, pauses: 0, handledTwice: 0, retried: 0 },
    ...{ suspended: 0, waited: 0 },
  };
  for (let seed = 1; seed <= seeds; seed++) {
    const first = await run(seed, subscribers);
    const second = await run(seed, subscribers);
    if (first.traceHash !== second.traceHash) throw new Error(`seed ${seed} ran in two ways`);
    for (const name of Object.keys(total) as (keyof Sightings)[]) total[name] += first.value[name];
  }
  expect(total.acknowledged > 20 * seeds).toBe(true);
  return total;
}

describe("the bus among faults", () => {
  test("[J80] no acknowledged event is lost, every effect happens once, order is kept per key, and a seed repeats itself", async () => {
    const { suspended: _, waited: __, ...total } = await runAll(SEEDS, "the same");
    // The runs must have met all rare cases.
    for (const [name, count] of Object.entries(total)) if (count < SEEDS) throw new Error(`${name}: only ${count}`);
  });

  test("[J100] no event is lost or handled twice by processes with different subscribers that fail and recover", async () => {
    const total = await runAll(SEEDS_DIFFERENT, "different");
    for (const [name, count] of Object.entries(total))
      if (count < SEEDS_DIFFERENT) throw new Error(`${name}: only ${count}`);
  });
});
