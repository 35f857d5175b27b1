/** Whole kernels from seeds. */
import { describe, expect, test } from "vitest";
import { simulate } from "../../src/host/simulated-host.ts";
import { KernelSimulation, type Sightings } from "./simulation.ts";

const SEEDS = 20;
const ROUNDS = 80;

async function run(seed: number): Promise<{ value: Sightings; traceHash: string }> {
  try {
    return await simulate(seed, async (world) => {
      const simulation = new KernelSimulation(world);
      await simulation.run(ROUNDS);
      return simulation.sightings;
    });
  } catch (error) {
    throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

describe("the kernel among faults", () => {
  test("[L30] [J1] [J2] [J3] [N1] among faults every command is answered and done once, every event and timer handled, and a seed repeats", async () => {
    const total: Record<string, number> = {};
    for (let seed = 1; seed <= SEEDS; seed++) {
      const [first, second] = [await run(seed), await run(seed)];
      expect(second, `seed ${seed}`).toEqual(first);
      for (const [name, count] of Object.entries(first.value)) total[name] = (total[name] ?? 0) + count;
    }
    // Rare things must have been met, or the simulation proves little.
    for (const [name, count] of Object.entries(total)) expect(count, name).toBeGreaterThan(10);
  });
});
