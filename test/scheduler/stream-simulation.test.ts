import { describe, expect, test } from "#test";
import { simulate } from "../../src/host/simulated-host.ts";
import { type Sightings, StreamSimulation } from "./stream-simulation.ts";

/**
 * 64 and 85 kill a process between a handling and its follow-up; 451 found a send that overtook another in a roll-back.
 */
const SEEDS = [...Array.from({ length: 20 }, (_, i) => i + 1), 31, 64, 81, 85, 451];

describe("streams from seeds", () => {
  test("[I11] [I10] [I4] conflicts, duplicates, lost answers and kills: every order once, as if one after the other; equal seeds, equal traces", async () => {
    const seen: Partial<Record<keyof Sightings, number>> = {};
    for (const seed of SEEDS) {
      const once = () =>
        simulate(seed, async (host) => {
          const simulation = new StreamSimulation(host, 30);
          await simulation.run();
          return simulation.sightings;
        });
      const first = await once().catch((error: unknown) => {
        throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
      });
      const second = await once();
      expect(second.traceHash, `seed ${seed}`).toBe(first.traceHash);
      for (const [what, count] of Object.entries(first.value)) {
        seen[what as keyof Sightings] = (seen[what as keyof Sightings] ?? 0) + count;
      }
    }
    for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0);
  });
});
