/**
 * Rebuilds the disk at every position of a recording, as a crash there may leave it, and has each image checked.
 *
 * | image | built after each                 | holds                                     |
 * |-------|----------------------------------|-------------------------------------------|
 * | kill  | change, acknowledgement          | every write so far                        |
 * | power | sync, acknowledgement            | synced data                               |
 * | torn  | record, if some data is unsynced | synced data and a random part of the rest |
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SeededRandom } from "../../src/host/seeded-random.ts";
import { DiskModel, type Image } from "./disk-model.ts";
import { History, type HistoryMark } from "./history.ts";
import { checkImage, type Fault, type Finding } from "./image-check.ts";
import type { IoRecord } from "./io-log.ts";
import { DATABASE } from "./recording.ts";

export type ImageKind = "kill" | "power" | "torn";

export interface CrashOptions {
  readonly records: readonly IoRecord[];
  /** Scratch space of the test. */
  readonly directory: string;
  readonly random: SeededRandom;
  readonly tornPerPosition: number;
}

/** How many images of each kind there were, and in how many of them each fault was found. */
export class CrashTally {
  readonly images: Record<ImageKind, number> = { kill: 0, power: 0, torn: 0 };
  /** Acknowledged deeds looked for, summed over all images. */
  acknowledged = 0;
  readonly #faulty: Record<ImageKind, Map<Fault, number>> = { kill: new Map(), power: new Map(), torn: new Map() };
  /** The first few, to find the cause. */
  readonly examples: string[] = [];

  add(kind: ImageKind, position: number, acknowledged: number, findings: readonly Finding[]): void {
    this.images[kind] += 1;
    this.acknowledged += acknowledged;
    const counts = this.#faulty[kind];
    for (const fault of new Set(findings.map((finding) => finding.fault)))
      counts.set(fault, (counts.get(fault) ?? 0) + 1);
    const first = findings[0];
    if (first && this.examples.length < 10)
      this.examples.push(`${kind} image at record ${position}: ${first.fault}: ${first.text}`);
  }

  get total(): number {
    return this.images.kill + this.images.power + this.images.torn;
  }

  /** Images of the kinds (all, when none is named) in which the fault was found. */
  faulty(fault: Fault, ...kinds: readonly ImageKind[]): number {
    const looked = kinds.length > 0 ? kinds : (Object.keys(this.images) as ImageKind[]);
    return looked.reduce((sum, kind) => sum + (this.#faulty[kind].get(fault) ?? 0), 0);
  }

  summary(): string {
    const { kill, power, torn } = this.images;
    const faults = (["lost", "partial", "double", "corrupt", "unusable"] as const)
      .map((fault) => `${fault} ${this.faulty(fault)}`)
      .join(", ");
    return `images ${this.total} (kill ${kill}, power ${power}, torn ${torn}), acknowledged deeds checked ${this.acknowledged}, ${faults}`;
  }
}

export async function crashEverywhere(options: CrashOptions, tally: CrashTally): Promise<void> {
  const { records, directory, random, tornPerPosition } = options;
  const disk = new DiskModel();
  const history = new History();
  const check = async (kind: ImageKind, position: number, image: Image): Promise<void> => {
    const path = placeImage(directory, image);
    tally.add(kind, position, history.acknowledged, await checkImage({ path, durability: "power" }, history));
  };
  for (const [position, record] of records.entries()) {
    disk.apply(record);
    const isAcknowledgement = record.kind === "mark" && tell(history, record.text);
    const isSync = record.kind === "sync";
    if (isAcknowledgement || (record.kind !== "mark" && !isSync)) await check("kill", position, disk.afterKill());
    if (isAcknowledgement || isSync) await check("power", position, disk.afterPowerLoss());
    if (record.kind === "mark" && !isAcknowledgement) continue;
    for (let i = 0; i < tornPerPosition && disk.hasUnsynced; i++)
      await check("torn", position, disk.afterTornPowerLoss(random));
  }
}

/** True for a mark that acknowledges an operation. */
function tell(history: History, text: string): boolean {
  const mark = JSON.parse(text) as HistoryMark;
  history.apply(mark);
  return "ack" in mark;
}

/** Writes the image to the scratch space, in the place of the last one; returns the database's path. */
export function placeImage(directory: string, image: Image): string {
  const place = join(directory, "image");
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place);
  for (const [name, content] of image) writeFileSync(join(place, name), content);
  return join(place, DATABASE);
}
