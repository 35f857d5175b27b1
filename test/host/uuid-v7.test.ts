import { describe, expect, test } from "#test";
import type { RandomSource } from "../../src/host/random-source.ts";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { UuidV7Minter } from "../../src/host/uuid-v7.ts";

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function setup(random: RandomSource = new SeededRandom(11)) {
  const clock = { ms: 1_700_000_000_000 };
  return { clock, minter: new UuidV7Minter(() => clock.ms, random) };
}

function timeOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The 42 bits between version and chance: 12 after the version, 30 after the variant. */
function counterOf(id: string): bigint {
  const high = BigInt(`0x${id.slice(15, 18)}`);
  const low = BigInt(`0x${id.slice(19, 23)}${id.slice(24, 28)}`) & 0x3fff_ffffn;
  return (high << 30n) | low;
}

/** Gives these words, then zeros. */
function scripted(words: number[]): RandomSource {
  return { uint32: () => words.shift() ?? 0 };
}

describe("ids", () => {
  test("[H8] an id has the form, version and variant of a UUIDv7", () => {
    const { minter } = setup();
    for (let count = 0; count < 1_000; count++) expect(minter.mint()).toMatch(UUID_V7);
    expect(systemHost().id()).toMatch(UUID_V7);
  });

  test("[H8] the first 48 bits of an id are the wall clock, up to its last millisecond", () => {
    for (const ms of [0, 1, 0xffff, 0x1_0000, 1_700_000_000_123, 0xffff_ffff_ffff]) {
      const { clock, minter } = setup();
      clock.ms = ms;
      expect(timeOf(minter.mint())).toBe(ms);
    }
  });

  test("[H9] 100,000 ids increase strictly while the clock stands, jumps and steps back", () => {
    const { clock, minter } = setup();
    const steps = new SeededRandom(12);
    let last = "";
    for (let count = 0; count < 100_000; count++) {
      if (steps.below(10) === 0) clock.ms += steps.below(2_000) - 1_000;
      const id = minter.mint();
      if (id <= last) throw new Error(`${id} follows ${last}`);
      last = id;
    }
  });

  test("[H9] ids of the system host increase strictly", () => {
    const host = systemHost();
    let last = "";
    for (let count = 0; count < 100_000; count++) {
      const id = host.id();
      if (id <= last) throw new Error(`${id} follows ${last}`);
      last = id;
    }
  });

  test("[H9] within a millisecond the counter increases by one and the time stays", () => {
    const { clock, minter } = setup();
    const first = minter.mint();
    clock.ms -= 60_000;
    const second = minter.mint();
    expect(timeOf(second)).toBe(timeOf(first));
    expect(counterOf(second)).toBe(counterOf(first) + 1n);
  });

  test("[H9] within a millisecond every counter follows the one before, over all carries of its low part", () => {
    const { minter } = setup();
    let last = counterOf(minter.mint());
    for (let count = 0; count < 140_000; count++) {
      const counter = counterOf(minter.mint());
      if (counter !== last + 1n) throw new Error(`${counter} follows ${last}`);
      last = counter;
    }
  });

  test("[H9] an id for an earlier time is still greater than the last one", () => {
    const { clock, minter } = setup();
    const first = minter.mint(clock.ms + 5);
    expect(timeOf(first)).toBe(clock.ms + 5);
    expect(minter.mint(clock.ms) > first).toBe(true);
  });

  test("[H9] the counter carries from its low part into its high part", () => {
    const { minter } = setup(scripted([0, 0xffff_ffff]));
    const first = minter.mint();
    const second = minter.mint();
    expect(counterOf(first)).toBe(0x3fff_ffffn);
    expect(counterOf(second)).toBe(0x4000_0000n);
    expect(timeOf(second)).toBe(timeOf(first));
  });

  test("[H9] a full counter borrows the next millisecond, and the clock does not take it back", () => {
    const { clock, minter } = setup(scripted([0xffff_ffff, 0xffff_ffff, 0, 7, 7]));
    const full = minter.mint();
    const borrowed = minter.mint();
    expect(timeOf(borrowed)).toBe(timeOf(full) + 1);
    clock.ms += 1;
    const caughtUp = minter.mint();
    expect(timeOf(caughtUp)).toBe(timeOf(borrowed));
    expect(caughtUp > borrowed && borrowed > full).toBe(true);
  });

  test("[H9] two hosts of one process do not create the same id", () => {
    const one = systemHost();
    const other = systemHost();
    const ids = new Set<string>();
    for (let count = 0; count < 1_000; count++) ids.add(one.id()).add(other.id());
    expect(ids.size).toBe(2_000);
  });
});
