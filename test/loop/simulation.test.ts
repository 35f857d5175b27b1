/** Whole loops from seeds. */
import { describe, expect, test } from "#test";
import { simulate } from "../../src/host/simulated-host.ts";
import { LoopSimulation, type Sightings } from "./simulation.ts";

const SEEDS = 40;
const ROUNDS = 150;

async function run(seed: number): Promise<{ hash: string; sightings: Sightings }> {
  try {
    const { value, traceHash } = await simulate(seed, async (host) => {
      const simulation = new LoopSimulation(host);
      await simulation.run(ROUNDS);
      return simulation.sightings;
    });
    return { hash: traceHash, sightings: value };
  } catch (error) {
    throw new Error(`seed ${seed} failed: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

describe("simulation", () => {
  test("[L30] [N1] every request has exactly one answer, or none after its client has left, and a seed repeats", async () => {
    const total: Record<string, number> = {};
    for (let seed = 1; seed <= SEEDS; seed++) {
      const [first, second] = [await run(seed), await run(seed)];
      expect(second, `seed ${seed}`).toEqual(first);
      for (const [name, count] of Object.entries(first.sightings)) total[name] = (total[name] ?? 0) + count;
    }
    // Rare things must have been met, or the simulation proves little.
    for (const [name, count] of Object.entries(total)) expect(count, name).toBeGreaterThan(10);
  });
});
