/** Kernels from seeds with invocations at every entry point. */
import { describe, expect, test } from "vitest";
import { simulate } from "../../src/host/simulated-host.ts";
import { counted, type LongPart, rounds, timeoutMs } from "../portable/long-run.ts";
import { EntriesSimulation, type Sightings } from "./entries-simulation.ts";

const PART: LongPart = { name: "every entry point among faults", short: 10, long: 400, minutes: 2 };
const ROUNDS = 120;

async function run(seed: number): Promise<{ value: Sightings; traceHash: string }> {
  try {
    return await simulate(seed, async (world) => {
      const simulation = new EntriesSimulation(world);
      await simulation.run(ROUNDS);
      return simulation.sightings;
    });
  } catch (error) {
    throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

describe("every entry point among faults", () => {
  test(
    "[J1] [J3] [I11] [U1] [U5] each acknowledged invocation takes effect once, no other twice, repeats get the first result; a seed repeats",
    async () => {
      const total: Record<string, number> = {};
      for (const seed of rounds(PART)) {
        const first = await run(seed);
        if (seed <= 2) expect(await run(seed), `seed ${seed}`).toEqual(first);
        for (const [name, count] of Object.entries(first.value)) total[name] = (total[name] ?? 0) + count;
      }
      counted(total["kills"] ?? 0, "simulated kills over all entry points");
      // Rare things must have been met, or the simulation proves little.
      const { requeued: _requeued, ...met } = total;
      for (const [name, count] of Object.entries(met)) expect([name, count > 10]).toEqual([name, true]);
    },
    timeoutMs(PART),
  );
});
