import { describe, expect, test } from "vitest";
import { simulate } from "../../src/host/simulated-host.ts";
import { counted, type LongPart, rounds, timeoutMs } from "../portable/long-run.ts";
import { noSightings, type Sightings, TwoKernels } from "./two-kernels.ts";

const PART: LongPart = { name: "two kernels among faults", short: 10, long: 200, minutes: 2 };
const OPTIONS = { rounds: 100, eventsPerRound: 220 };
/** The minimal events of `npm test`. */
const EVENTS = 200_000;

async function run(seed: number): Promise<{ value: Sightings; traceHash: string }> {
  try {
    return await simulate(seed, async (world) => {
      const simulation = new TwoKernels(world, OPTIONS);
      await simulation.run();
      return simulation.sightings;
    });
  } catch (error) {
    throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

describe("the whole kernel among faults", () => {
  test(
    "[K1] no acknowledged write is lost or done twice, all is idle 10 s after the last fault, and a seed repeats",
    async () => {
      const all = noSightings();
      let seeds = 0;
      for (const seed of rounds(PART)) {
        seeds = seed;
        const first = await run(seed);
        const second = await run(seed);
        if (first.traceHash !== second.traceHash) throw new Error(`seed ${seed} ran in two ways`);
        for (const name of Object.keys(all) as (keyof Sightings)[]) all[name] += first.value[name];
      }
      counted(all.events, "simulated events");
      expect(all.events).toBeGreaterThan(EVENTS);
      // Situations that the runs must reach, in every second one at least: the rarest depends on the order of steps.
      for (const [name, count] of Object.entries(all)) {
        expect(`${name}: ${2 * count >= seeds ? "enough" : count}`).toBe(`${name}: enough`);
      }
    },
    timeoutMs(PART),
  );
});
