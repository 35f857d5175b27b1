/**
 * Layer 2: record once, crash everywhere. A workload runs once under the recorder; the disk is rebuilt as a crash at
 * each of its positions may leave it, and the real store must open every one of these images and have all that was
 * acknowledged.
 */
import { describe, expect, test } from "vitest";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { counted, type LongPart, Rounds, rounds, roundsMax, timeoutMs } from "../portable/long-run.ts";
import { flipBits } from "./bit-flips.ts";
import { CrashTally, crashEverywhere } from "./crash-everywhere.ts";
import { DiskModel } from "./disk-model.ts";
import { History, type HistoryMark } from "./history.ts";
import type { IoRecord } from "./io-log.ts";
import { type RecordingOptions, recordWorkload } from "./recording.ts";
import { requireShim, temporaryDirectory, treeWith } from "./shim.ts";

const IMAGES: LongPart = { name: "crash images", short: 5_000, long: 1_000_000, minutes: 5 };
const FLIPS: LongPart = { name: "flipped bits", short: 400, long: 20_000, minutes: 1 };
const SEED = 1_001;
const ROUNDS = 4;

const shim = requireShim();

describe.skipIf(shim.kind === "skipped")("record once, crash everywhere", () => {
  test(`[J1] [J3] [S5] [S24] in up to ${roundsMax(IMAGES)} disk images no acknowledged write is lost and no commit is partial`, {
    timeout: timeoutMs(IMAGES),
  }, async () => {
    const tally = new CrashTally();
    const { directory, record } = setup();
    let seed = SEED;
    const budget = new Rounds(IMAGES);
    for (; budget.goesOn(tally.total); seed++) {
      const records = await record({ seed, durability: "power" });
      await crashEverywhere({ records, directory, random: new SeededRandom(seed, 1), tornPerPosition: 2 }, tally);
    }
    counted(tally.total, "disks rebuilt");
    counted(tally.acknowledged, "acknowledged deeds looked for");
    console.log(`crash images, seeds ${SEED} to ${seed - 1}: ${tally.summary()}`);
    expect(tally.examples).toEqual([]);
    expect(tally.acknowledged).toBeGreaterThan(tally.total);
  });

  test("[J1] [S5] [S107] no acknowledged write is lost while a thread copies the log beside the batches", {
    timeout: timeoutMs(FLIPS),
  }, async () => {
    const tally = new CrashTally();
    const { directory, record } = setup();
    // The timing between two writes differs from run to run; the images are made from the log of this run.
    const records = await record({ seed: SEED, rounds: 6, durability: "power", checkpointThread: true });
    await crashEverywhere({ records, directory, random: new SeededRandom(SEED, 1), tornPerPosition: 1 }, tally);
    console.log(`crash images, the log copied by a thread (seed ${SEED}): ${tally.summary()}`);
    expect(tally.examples).toEqual([]);
  });

  test("[S26] verify finds a flipped bit in data that the store still returns", {
    timeout: timeoutMs(FLIPS),
  }, async () => {
    const { directory, record } = setup();
    const records = await record({ seed: SEED, rounds: 5 * ROUNDS, durability: "power" });
    const { disk, history } = atTheEnd(records);
    const tally = await flipBits(disk.afterKill(), history, directory, SEED, rounds(FLIPS));
    counted(tally.struck, "flipped bits that mattered");
    counted(tally.detected, "flipped bits detected");
    console.log(`flipped bits (seed ${SEED}): ${tally.flips}, live ${tally.struck}, detected ${tally.detected}`);
    expect(tally.undetected).toEqual([]);
    expect(tally.struck).toBeGreaterThan(tally.flips / 4);
  });

  describe("the crash tests detect planted bugs", () => {
    test("[J1] with durability for the process only, a power loss loses acknowledged writes", {
      timeout: timeoutMs(FLIPS),
    }, async () => {
      const tally = await crash({ durability: "process" });
      console.log(`planted, durability "process": ${tally.summary()}`);
      expect(tally.faulty("lost", "power")).toBeGreaterThan(0);
      expect(tally.faulty("lost", "torn")).toBeGreaterThan(0);
      expect(tally.faulty("lost", "kill")).toBe(0);
      // The loss is at the end: never a part of a commit, and never an effect without its receipt.
      expect(tally.faulty("partial") + tally.faulty("double") + tally.faulty("corrupt")).toBe(0);
    });

    test("[J1] acknowledging before the commit loses acknowledged writes", {
      timeout: timeoutMs(FLIPS),
    }, async () => {
      const tally = await crash({ durability: "power", tree: treeWith("ack-before-commit") });
      console.log(`planted, ack before commit: ${tally.summary()}`);
      expect(tally.faulty("lost", "kill")).toBeGreaterThan(0);
      expect(tally.faulty("lost", "power")).toBeGreaterThan(0);
    });

    test("[J3] a receipt outside the transaction lets work be done twice", { timeout: timeoutMs(FLIPS) }, async () => {
      const tally = await crash({ durability: "power", tree: treeWith("receipt-outside-transaction") });
      console.log(`planted, receipt outside the transaction: ${tally.summary()}`);
      expect(tally.faulty("double", "kill")).toBeGreaterThan(0);
      expect(tally.faulty("double", "power")).toBeGreaterThan(0);
    });
  });
});

type Setting = Pick<RecordingOptions, "durability" | "tree" | "checkpointThread">;

function setup() {
  if (shim.kind === "skipped") throw new Error("the test should have been skipped");
  const { library } = shim;
  const directory = temporaryDirectory("images");
  return {
    directory,
    record: (options: Setting & { seed: number; rounds?: number }) =>
      recordWorkload({ library, directory, rounds: ROUNDS, ...options }),
  };
}

/** A shorter run, for a mistake that shows soon. */
async function crash(setting: Setting): Promise<CrashTally> {
  const { directory, record } = setup();
  const records = await record({ seed: SEED, rounds: 2, ...setting });
  const tally = new CrashTally();
  await crashEverywhere({ records, directory, random: new SeededRandom(SEED, 1), tornPerPosition: 1 }, tally);
  return tally;
}

function atTheEnd(records: readonly IoRecord[]): { disk: DiskModel; history: History } {
  const disk = new DiskModel();
  const history = new History();
  for (const record of records) {
    disk.apply(record);
    if (record.kind === "mark") history.apply(JSON.parse(record.text) as HistoryMark);
  }
  return { disk, history };
}
