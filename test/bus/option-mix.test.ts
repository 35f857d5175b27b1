import { describe, expect, test } from "#test";
import { simulate, simulatedHost } from "../../src/host/simulated-host.ts";
import { OptionMix, type Sightings } from "./option-mix.ts";

const SEEDS = 120;
const ROUNDS = 80;

async function run(seed: number): Promise<Sightings> {
  try {
    const { value } = await simulate(seed, async (world) => {
      const mix = new OptionMix(world);
      await mix.run(ROUNDS);
      return mix.sightings;
    });
    return value;
  } catch (error) {
    throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

describe("all options of subscriptions at once", () => {
  test("[J43] [J64] [J68] [J69] [J75] each handler is called once for each attempt, alone of its key, within its bound, and no event is lost", async () => {
    const { sightings: total } = new OptionMix(simulatedHost(0));
    for (let seed = 1; seed <= SEEDS; seed++) {
      const met = await run(seed);
      for (const name of Object.keys(total) as (keyof Sightings)[]) total[name] += met[name];
    }
    // The runs must have met all rare cases.
    for (const [name, count] of Object.entries(total)) if (count < SEEDS / 2) throw new Error(`${name}: only ${count}`);
    expect(total.handled > 20 * SEEDS).toBe(true);
  });
});
