/** Pieces from seeds. */
import { describe, expect, test } from "vitest";
import { simulate } from "../../src/host/simulated-host.ts";
import { PiecesModel, type Sightings } from "./pieces-model.ts";

/** The last one has found a bug: a stop in a process that had not heard of the start. */
const SEEDS = [...Array.from({ length: 12 }, (_, i) => i + 1), 38];
const ROUNDS = 60;

async function run(seed: number): Promise<{ value: Sightings; traceHash: string }> {
  try {
    return await simulate(seed, async (world) => {
      const model = new PiecesModel(world);
      await model.run(ROUNDS);
      return model.sightings;
    });
  } catch (error) {
    throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

describe("pieces among faults", () => {
  test("[P4] [P6] [P7] [I11] among faults exactly the unstopped pieces run once per process, each send counts once, and a seed repeats", async () => {
    const total: Record<string, number> = {};
    for (const seed of SEEDS) {
      const [first, second] = [await run(seed), await run(seed)];
      expect(second, `seed ${seed}`).toEqual(first);
      for (const [name, count] of Object.entries(first.value)) total[name] = (total[name] ?? 0) + count;
    }
    // Rare things must have been met, or the model proves little. A refusal needs a store that fails for a whole
    // window.
    for (const [name, count] of Object.entries(total)) if (name !== "refusals") expect(count, name).toBeGreaterThan(3);
  });
});
