/**
 * Layer 4: the nth write or sync of a workload fails, for every n. Acknowledged data stays, even if the power fails
 * right after; the process lives; reads are served. A full disk only fails writes that do not fit, a failed sync stops
 * the store, and another process can go on with the file.
 */
import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { counted, isLongRun } from "../portable/long-run.ts";
import { placeImage } from "./crash-everywhere.ts";
import { DiskModel, type Image } from "./disk-model.ts";
import type { FailingMark, FailingPlan, TrialReport } from "./failing-program.ts";
import { History, type HistoryMark } from "./history.ts";
import { checkImage } from "./image-check.ts";
import { type IoRecord, readIoLog } from "./io-log.ts";
import { DATABASE } from "./recording.ts";
import { finished, linesOf, requireShim, startProgram, temporaryDirectory } from "./shim.ts";

const SEED = 4_004;
/** For a disk that stays full until the program lets go. */
const UNTIL_DISARMED = 1_000_000_000;
const TIMEOUT_MS = isLongRun ? 3_600_000 : 600_000;
const STEP = isLongRun ? 1 : 3;

const shim = requireShim();

describe.skipIf(shim.kind === "skipped")("when a call of the disk fails", () => {
  test("[J1] [S5] a write that fails once is never acknowledged", { timeout: TIMEOUT_MS }, async () => {
    await run({ calls: "write", action: "EIO", times: 1, step: STEP });
  });

  test("[J1] [S5] a write that is cut short is never acknowledged", { timeout: TIMEOUT_MS }, async () => {
    await run({ calls: "write", action: "short", times: 1, step: STEP });
  });

  test("[J1] a disk that is full for one write refuses it, and later writes succeed", {
    timeout: TIMEOUT_MS,
  }, async () => {
    await run({ calls: "write", action: "ENOSPC", times: 1, step: STEP });
  });

  test("[J1] a full disk serves reads, and accepts writes when there is room again", {
    timeout: TIMEOUT_MS,
  }, async () => {
    await run({ calls: "write", action: "ENOSPC", times: UNTIL_DISARMED, step: STEP });
  });

  test("[J1] a failed sync stops the store; writes acknowledged before and by the next process are kept", {
    timeout: TIMEOUT_MS,
  }, async () => {
    const reports = await run({ calls: "sync", action: "EIO", times: 1, step: 1 });
    const stopped = reports.filter(({ refusals }) => refusals.includes("STORE_STOPPED"));
    expect(stopped.length).toBeGreaterThan(0);
  });

  test("[S107] a failed sync in the thread that copies the log stops the store too", {
    timeout: TIMEOUT_MS,
  }, async () => {
    const directory = temporaryDirectory("copying");
    const child = start("copying-program.ts", join(directory, DATABASE), directory);
    const said: string[] = [];
    for await (const line of linesOf(child)) said.push(line);
    await finished(child);
    // Queued writes get the first code, later ones the second.
    expect(["store-stopped", "STORE_STOPPED"]).toContain(said.join());
  });
});

function start(program: string, argument: string, directory: string, log?: string): ChildProcess {
  if (shim.kind === "skipped") throw new Error("the test should have been skipped");
  return startProgram({ library: shim.library, program, args: [argument], directory, ...(log ? { log } : {}) });
}

async function run(fault: FailingPlan["fault"]): Promise<readonly TrialReport[]> {
  const scratch = temporaryDirectory("errors");
  const directory = temporaryDirectory("failing");
  const log = join(scratch, "io.log");
  const startOn = (plan: FailingPlan) => start("failing-program.ts", JSON.stringify(plan), directory, log);

  await finished(startOn({ directory, seed: SEED, rounds: 2, fault }), "SIGKILL");
  const reports = reportsIn(readIoLog(log)).filter((report) => report.struck);
  const resume = reports.map((report) => report.trial);
  await finished(startOn({ directory, seed: SEED + 1, rounds: 1, fault, resume }));
  // Only a failed sync can make an acknowledgement hollow for a while; the rest shows at the end, too.
  const verdict = new Verdict(scratch, fault.calls === "sync" ? "each acknowledgement" : "end");
  await verdict.judge(readIoLog(log));
  const { images, acknowledged } = verdict;
  counted(reports.length, "failing calls to the disk");
  console.log(
    `I/O errors, ${fault.calls} ${fault.action} (seed ${SEED}): ${reports.length} errors, ${images} images, acknowledged deeds checked ${acknowledged}, lost 0`,
  );
  expect(reports.length).toBeGreaterThan(0);
  return reports;
}

function reportsIn(records: readonly IoRecord[]): TrialReport[] {
  const reports: TrialReport[] = [];
  for (const record of records) {
    if (record.kind !== "mark") continue;
    const mark = JSON.parse(record.text) as FailingMark | HistoryMark;
    if ("end" in mark) reports.push(mark.end);
  }
  return reports;
}

/** Reads the log of the failing program and checks each trial's disk. */
class Verdict {
  images = 0;
  acknowledged = 0;
  readonly #scratch: string;
  readonly #when: "each acknowledgement" | "end";
  readonly #disk = new DiskModel();
  readonly #histories = new Map<string, History>();
  #trial = "";

  constructor(scratch: string, when: "each acknowledgement" | "end") {
    this.#scratch = scratch;
    this.#when = when;
  }

  async judge(records: readonly IoRecord[]): Promise<void> {
    for (const record of records) {
      this.#disk.apply(record);
      if (record.kind === "mark") await this.#heard(JSON.parse(record.text) as FailingMark | HistoryMark);
    }
  }

  async #heard(mark: FailingMark | HistoryMark): Promise<void> {
    if ("start" in mark) {
      this.#trial = mark.start;
    } else if ("end" in mark) {
      expect(mark.end.problems, JSON.stringify(mark.end)).toEqual([]);
      await this.#check("after a kill", this.#disk.afterKill());
      await this.#check("after a power loss", this.#disk.afterPowerLoss());
    } else if ("closed" in mark) {
      await this.#check("closed, after a power loss", this.#disk.afterPowerLoss());
    } else {
      this.#history.apply(mark);
      if ("ack" in mark && this.#when === "each acknowledgement")
        await this.#check("after a power loss", this.#disk.afterPowerLoss());
    }
  }

  get #history(): History {
    const history = this.#histories.get(this.#trial) ?? new History();
    this.#histories.set(this.#trial, history);
    return history;
  }

  async #check(when: string, image: Image): Promise<void> {
    const path = placeImage(this.#scratch, filesOf(image, `${this.#trial}.db`));
    const findings = await checkImage({ path, durability: "power" }, this.#history);
    expect(findings, `${this.#trial}, ${when}, deeds acknowledged ${this.#history.acknowledged}`).toEqual([]);
    this.images += 1;
    this.acknowledged += this.#history.acknowledged;
  }
}

/** One trial's files, under the names that the checker opens. */
function filesOf(image: Image, database: string): Image {
  const mine = [...image].filter(([name]) => name === database || name.startsWith(`${database}-`));
  return new Map(mine.map(([name, content]) => [name.replace(database, DATABASE), content]));
}
