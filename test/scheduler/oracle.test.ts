import { describe, expect, test } from "#test";
import { type LongPart, rounds, timeoutMs } from "../portable/long-run.ts";
import { type Sightings, Trial, type TrialOptions } from "./oracle-trial.ts";

const PART: LongPart = { name: "the scheduler beside the oracle", short: 400, long: 20_000, minutes: 1.2 };
const MIXED: LongPart = { ...PART, short: 100, long: 5_000, minutes: 0.4 };

async function trials(options: TrialOptions, part = PART): Promise<Sightings & { seeds: number }> {
  const total: Sightings & { seeds: number } = {
    seeds: 0,
    compared: 0,
    callbacks: 0,
    circular: 0,
    failed: 0,
    dormant: 0,
    children: 0,
    rejections: 0,
    foreign: 0,
    dropped: 0,
    reads: 0,
    echoed: 0,
  };
  for (const seed of rounds(part)) {
    total.seeds = seed;
    const sightings = await new Trial(seed, options).run();
    for (const key of Object.keys(sightings) as (keyof Sightings)[]) total[key] += sightings[key];
  }
  return total;
}

describe("beside a naive scheduler that recomputes everything", () => {
  test(
    "[R30] [I1] [I9] without gates and circles: equal at every rest and at every single callback",
    async () => {
      const met = await trials({ circles: false, gates: false, steps: 30 });
      for (const [what, count] of Object.entries(met))
        if (!["circular", "dropped", "echoed"].includes(what)) expect([what, count > 100]).toEqual([what, true]);
      expect(met.circular).toBe(0);
    },
    timeoutMs(PART),
  );

  test(
    "[R30] [I1] [R1] with gates: equal when they have opened",
    async () => {
      const met = await trials({ circles: false, gates: true, steps: 30 });
      expect(met.compared).toBeGreaterThan(met.seeds);
    },
    timeoutMs(PART),
  );

  test(
    "[R30] [I1] [R15] with asynchronous computations: equal at every rest and at every single callback",
    async () => {
      const met = await trials({ circles: false, gates: false, asynchronous: true, steps: 30 });
      expect(met.compared).toBeGreaterThan(met.seeds);
    },
    timeoutMs(PART),
  );

  test(
    "[R30] [I6] with circles: values outside of them are equal, and there is always rest",
    async () => {
      const met = await trials({ circles: true, gates: false, steps: 20 });
      expect(met.compared).toBeGreaterThan(met.seeds);
      expect(met.circular).toBeGreaterThan(100);
    },
    timeoutMs(PART),
  );

  test(
    "[R44] [I1] with documents dropped all the time: equal at every rest",
    async () => {
      const met = await trials({ circles: false, gates: false, steps: 30, residentDocumentsMax: 2 });
      expect(met.compared).toBeGreaterThan(met.seeds);
      expect(met.dropped).toBeGreaterThan(met.seeds);
    },
    timeoutMs(PART),
  );

  const MIXES: readonly [string, Omit<TrialOptions, "circles" | "steps">][] = [
    ["with asynchronous computations and gates", { gates: true, asynchronous: true }],
    [
      "with asynchronous computations and documents dropped all the time",
      { gates: false, asynchronous: true, residentDocumentsMax: 2 },
    ],
    ["with gates and documents dropped all the time", { gates: true, residentDocumentsMax: 2 }],
    ["with effects that write what computations read", { gates: false, effects: true }],
    ["with such effects and asynchronous computations", { gates: false, effects: true, asynchronous: true }],
    ["with all of these", { gates: true, effects: true, asynchronous: true, residentDocumentsMax: 2 }],
  ];
  for (const [name, options] of MIXES)
    test(
      `[R30] [R15] [R44] [I1] ${name}: equal at every rest`,
      async () => {
        const met = await trials({ circles: false, steps: 30, ...options }, MIXED);
        expect(met.compared).toBeGreaterThan(met.seeds);
        if (options.residentDocumentsMax !== undefined) expect(met.dropped).toBeGreaterThan(met.seeds);
        if (options.effects) expect(met.echoed).toBeGreaterThan(met.seeds);
      },
      timeoutMs(MIXED),
    );

  /** Seeds that found a bug, with the bug. */
  const found: readonly (TrialOptions & { readonly seed: number; readonly what: string })[] = [
    { seed: 178, circles: false, gates: true, steps: 30, what: "[I1] a reader two steps below a new link slept on" },
    {
      seed: 10_006,
      circles: false,
      gates: false,
      steps: 60,
      what: "[R11] a commit that fell with another was given up",
    },
    {
      seed: 9063,
      circles: true,
      gates: false,
      steps: 20,
      what: "[R18] a node of a circle that fell asleep and woke during its own run lost a read",
    },
    {
      seed: 1287,
      circles: false,
      gates: false,
      steps: 30,
      what: "[R80] a read of plain code missed that a computation upstream was replaced",
    },
  ];
  for (const { seed, what, ...options } of found) {
    test(what, async () => {
      await new Trial(seed, options).run();
    });
  }
});
