/**
 * Crash images of a kernel at work: the disk is rebuilt as a crash at a position of the recording may leave it, and a
 * kernel is opened on it. It finishes the work that was left, and answers repeats from the receipts. Each acknowledged
 * invocation of every entry point took effect once, and no other twice.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { countingCapabilities, findings, type Invoked, invoke, isAtRest, type Told } from "../kernel/entries.ts";
import { counted, type LongPart, rounds, timeoutMs } from "../portable/long-run.ts";
import { placeImage } from "./crash-everywhere.ts";
import { DiskModel, type Image } from "./disk-model.ts";
import type { EntriesPlan, EntryMark } from "./entries-program.ts";
import { type IoRecord, readIoLog } from "./io-log.ts";
import { DATABASE } from "./recording.ts";
import { finished, requireShim, startProgram, temporaryDirectory, treeWith } from "./shim.ts";
import { laterHost, openStore } from "./store-setting.ts";

const PART: LongPart = { name: "crash images of a kernel", short: 45, long: 20_000, minutes: 2 };
const SEED = 2_002;
const ROUNDS = 3;
const IMAGES_OF_A_RECORDING = 15;
/** Leases of the crashed kernel have expired; receipts have not. */
const LATER_MS = 3_600_000;

const shim = requireShim();

describe.skipIf(shim.kind === "skipped")("record a kernel once, crash it everywhere", () => {
  test(
    "[J1] [J3] [I11] [U8] [U26] [U27] in each image every acknowledged invocation took effect once, no other twice, and repeats get the first result",
    async () => {
      const tally = await crash();
      const images = tally.kill + tally.power + tally.torn;
      counted(images, "disks rebuilt");
      console.log(`crash images of a kernel (seed ${SEED}): ${images} images, acknowledged ${tally.told}`);
      expect(tally.found.slice(0, 10)).toEqual([]);
      expect(Math.min(tally.kill, tally.power, tally.torn)).toBeGreaterThan(5);
      expect(tally.told).toBeGreaterThan(images);
    },
    timeoutMs(PART),
  );

  test("[J1] acknowledging before the commit loses acknowledged invocations", {
    timeout: timeoutMs(PART),
  }, async () => {
    const { found } = await crash({ tree: treeWith("ack-before-commit"), imagesMax: IMAGES_OF_A_RECORDING });
    expect(found.some((text) => text.includes("lost: "))).toBe(true);
  });
});

/** Records kernels and checks images of them. */
async function crash({ tree, imagesMax = Number.POSITIVE_INFINITY }: { tree?: string; imagesMax?: number } = {}) {
  const directory = temporaryDirectory("entry-images");
  const random = new SeededRandom(SEED);
  const tally = { kill: 0, power: 0, torn: 0, told: 0, found: [] as string[] };
  let images = 0;
  for (const round = rounds(PART); images < imagesMax; ) {
    const records = await record(directory, random.uint32(), tree);
    for (const { kind, position } of positionsOf(records, random)) {
      if (round.next().done) return tally;
      images++;
      const { image, history } = crashAt(records, position, kind, random);
      const wrong = await check(placeImage(directory, image), history);
      tally.found.push(...wrong.map((text) => `${kind} image at record ${position}: ${text}`));
      tally[kind]++;
      tally.told += [...history.values()].filter((one) => one !== undefined).length;
    }
  }
  return tally;
}

type Kind = "kill" | "power" | "torn";
type History = Map<string, Told | undefined>;

async function record(directory: string, seed: number, tree?: string): Promise<IoRecord[]> {
  if (shim.kind === "skipped") throw new Error("the test should have been skipped");
  const [folder, log] = [join(directory, "recorded"), join(directory, "io.log")];
  rmSync(folder, { recursive: true, force: true });
  rmSync(log, { force: true });
  mkdirSync(folder);
  const plan: EntriesPlan = { path: join(folder, DATABASE), durability: "power", seed, rounds: ROUNDS };
  const program = { program: "entries-program.ts", args: [JSON.stringify(plan)] };
  await finished(startProgram({ ...program, library: shim.library, directory: folder, log, tree }));
  return readIoLog(log);
}

/** Some positions after the first invocation, in order. */
function positionsOf(records: readonly IoRecord[], random: SeededRandom): { kind: Kind; position: number }[] {
  const first = records.findIndex(({ kind }) => kind === "mark");
  const kinds: readonly Kind[] = ["kill", "power", "torn"];
  return Array.from({ length: IMAGES_OF_A_RECORDING }, (_, n) => ({
    kind: kinds[n % kinds.length] as Kind,
    position: first + random.below(records.length - first),
  }));
}

function crashAt(records: readonly IoRecord[], position: number, kind: Kind, random: SeededRandom) {
  const disk = new DiskModel();
  const history: History = new Map();
  for (const record of records.slice(0, position + 1)) {
    disk.apply(record);
    if (record.kind !== "mark") continue;
    const mark = JSON.parse(record.text) as EntryMark;
    if ("begin" in mark) history.set(JSON.stringify(mark.begin), undefined);
    else history.set(JSON.stringify(mark.ack), mark.told);
  }
  const images: Record<Kind, () => Image> = {
    kill: () => disk.afterKill(),
    power: () => disk.afterPowerLoss(),
    torn: () => (disk.hasUnsynced ? disk.afterTornPowerLoss(random) : disk.afterPowerLoss()),
  };
  return { image: images[kind](), history };
}

/** Opens a kernel on the image, lets it come to rest, repeats all invocations that have ids, and compares. */
async function check(path: string, history: History): Promise<string[]> {
  const host = laterHost(LATER_MS);
  const store = await openStore({ path, durability: "process" }, host);
  const kernel = await Kernel.open({ host, store, capabilities: countingCapabilities, observe: () => undefined });
  const atRest = async () => {
    while (!(await isAtRest(store))) await new Promise<void>((resolve) => void host.timer(5, resolve));
  };
  const told = new Map([...history].map(([text, answer]) => [JSON.parse(text) as Invoked, answer]));
  const found: string[] = [];
  try {
    await atRest();
    found.push(...(await findings(store, told)));
    for (const [invoked, first] of told) {
      if (invoked.entry === "transact") continue;
      const again = await invoke(kernel, invoked);
      if (again === undefined) found.push(`unusable: ${invoked.entry} ${invoked.id} was not answered`);
      else if (first !== undefined && JSON.stringify(first) !== JSON.stringify(again))
        found.push(`double: ${invoked.id} was answered ${JSON.stringify(first)}, then ${JSON.stringify(again)}`);
      told.set(invoked, again);
    }
    await atRest();
    found.push(...(await findings(store, told)));
  } finally {
    await kernel.close({ graceMs: 0 });
    await store.close();
  }
  return found;
}
