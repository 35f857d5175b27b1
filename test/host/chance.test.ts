import { describe, expect, test } from "#test";
import { HostError } from "../../src/host/host.ts";
import { randomUnit } from "../../src/host/random-source.ts";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { RANDOM_BYTES_MAX } from "../../src/limits.ts";

describe("randomness", () => {
  test("[H10] random() stays below 1 and reaches 0 at the ends of its source", () => {
    expect(randomUnit({ uint32: () => 0xffff_ffff })).toBe(1 - 2 ** -53);
    expect(randomUnit({ uint32: () => 0 })).toBe(0);
  });

  test("[H10] each tenth of [0, 1) gets its share of random numbers, in both hosts", () => {
    for (const host of [systemHost(), simulatedHost(5)]) {
      const buckets = new Array<number>(10).fill(0);
      for (let count = 0; count < 100_000; count++) buckets[Math.floor(host.random() * 10)]! += 1;
      // 10,000 expected, standard deviation 95: ten of them is out of reach for chance.
      for (const share of buckets) expect(Math.abs(share - 10_000) < 950).toBe(true);
    }
  });

  test("[H10] randomBytes(n) has n bytes, each of which varies independently", () => {
    for (const host of [systemHost(), simulatedHost(5)]) {
      for (const length of [0, 1, 3, 4, 5, 1_000, RANDOM_BYTES_MAX])
        expect(host.randomBytes(length).length).toBe(length);
      const draws = Array.from({ length: 64 }, () => host.randomBytes(7));
      expect(draws.filter((bytes) => bytes[0] === bytes[1]).length < 8).toBe(true);
      for (let index = 0; index < 7; index++) {
        expect(new Set(draws.map((bytes) => bytes[index])).size > 32).toBe(true);
      }
    }
  });

  test("[H10] an invalid number of bytes throws INVALID_LENGTH", () => {
    for (const length of [-1, 0.5, Number.NaN, RANDOM_BYTES_MAX + 1]) {
      let thrown: unknown;
      try {
        systemHost().randomBytes(length);
      } catch (error) {
        thrown = error;
      }
      expect(thrown instanceof HostError && thrown.code).toBe("INVALID_LENGTH");
    }
  });

  test("[H12] a seeded source repeats itself, and its streams differ from each other", () => {
    const words = (seed: number, stream: number) => {
      const random = new SeededRandom(seed, stream);
      return Array.from({ length: 100 }, () => random.uint32());
    };
    expect(words(7, 1)).toEqual(words(7, 1));
    expect(new Set([...words(7, 1), ...words(7, 2), ...words(8, 1)]).size).toBe(300);
  });

  test("[H12] below(n) reaches 0 and n - 1 and stays within", () => {
    const random = new SeededRandom(1);
    const seen = new Set(Array.from({ length: 1_000 }, () => random.below(3)));
    expect([...seen].sort()).toEqual([0, 1, 2]);
  });
});
