/** Runs the recorded program once and returns its file operations; all later steps use the record. */
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DiskModel, type Image } from "./disk-model.ts";
import { type IoRecord, readIoLog } from "./io-log.ts";
import { finished, startProgram } from "./shim.ts";
import type { StoreSetting } from "./store-setting.ts";
import type { WorkloadPlan } from "./workload.ts";

export const DATABASE = "crash.db";

export interface RecordingOptions extends Omit<StoreSetting, "path"> {
  readonly library: string;
  /** Scratch space of the test. */
  readonly directory: string;
  readonly seed: number;
  readonly rounds: number;
  /** A copy of the repository with a planted bug. */
  readonly tree?: string | undefined;
}

export async function recordWorkload(options: RecordingOptions): Promise<IoRecord[]> {
  const { library, seed, rounds, tree, ...setting } = options;
  const directory = join(options.directory, "recorded");
  const log = join(options.directory, "io.log");
  rmSync(directory, { recursive: true, force: true });
  rmSync(log, { force: true });
  mkdirSync(directory);
  const path = join(directory, DATABASE);
  const plan: WorkloadPlan = {
    ...setting,
    path,
    name: "w",
    seed,
    rounds,
    deedsBefore: 0,
    clockAheadMs: 0,
    foreignCheckpoints: true,
  };
  const program = { program: "recorded-program.ts", args: [JSON.stringify(plan)] };
  await finished(startProgram({ ...program, library, directory, log, tree }));
  const records = readIoLog(log);
  requireComplete(records, directory);
  return records;
}

/** The recorder must have seen every write: its last state and the real directory are the same, byte by byte. */
function requireComplete(records: readonly IoRecord[], directory: string): void {
  const model = new DiskModel();
  for (const record of records) model.apply(record);
  const rebuilt = model.afterKill();
  const real = readImage(directory);
  for (const name of new Set([...rebuilt.keys(), ...real.keys()])) {
    if (!rebuilt.get(name)?.equals(real.get(name) ?? Buffer.from("missing")))
      throw new Error(`the recorder did not see all that was done to ${name}`);
  }
}

function readImage(directory: string): Image {
  const names = readdirSync(directory).filter((name) => !name.endsWith("-shm"));
  return new Map(names.map((name) => [name, readFileSync(join(directory, name))]));
}
