/** Whole kernels from seeds with receipts that expire. */
import { describe, expect, test } from "vitest";
import { simulate } from "../../src/host/simulated-host.ts";
import { ReceiptsSimulation, type Sightings } from "./receipts-simulation.ts";

const SEEDS = 30;
const ROUNDS = 250;

async function run(seed: number): Promise<{ value: Sightings; traceHash: string }> {
  try {
    return await simulate(seed, async (world) => {
      const simulation = new ReceiptsSimulation(world);
      await simulation.run(ROUNDS);
      return simulation.sightings;
    });
  } catch (error) {
    throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

describe("the kernel while receipts are removed", () => {
  test("[J3] [S101] [S102] [I11] while receipts are removed every command, event and send takes effect at most once, acknowledged ones once", async () => {
    const total: Record<string, number> = {};
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { value } = await run(seed);
      for (const [name, count] of Object.entries(value)) total[name] = (total[name] ?? 0) + count;
    }
    expect((await run(1)).traceHash).toBe((await run(1)).traceHash);
    // Rare things must have been met, or the simulation proves little.
    for (const [name, count] of Object.entries(total)) expect([name, count > 10]).toEqual([name, true]);
  });
});
