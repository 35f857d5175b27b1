/**
 * Rounds in processes of their own, for a benchmark of code that runs in nanoseconds: how the engine has compiled it,
 * and where it lies in memory, is settled once in a process and differs from one to the next. All rounds of one process
 * are one sample of that. Each process (`bench/round.ts`) runs every system and every workload as `measure` does, once
 * to warm up and once to count.
 */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Benchmark, Scale } from "./benchmark.ts";
import type { Cell, Measured, MeasuredWorkload, Plan } from "./measure.ts";

/** The request to a process. */
export interface RoundOrder {
  readonly name: string;
  readonly only: string | undefined;
  readonly scale: Scale;
  readonly peers: boolean;
  /** Whether only our own system runs. */
  readonly onlyOurs?: boolean;
}

/** The results of a workload in one process, by the system's name. */
export type RoundCells = ReadonlyMap<string, Cell>;

/** The message of a process. */
export type RoundMessage =
  | { readonly kind: "step"; readonly text: string }
  | { readonly kind: "done"; readonly rows: readonly RoundCells[] };

const PROCESS = fileURLToPath(new URL("../round.ts", import.meta.url));

export async function measureApart(benchmark: Benchmark, plan: Plan, order: RoundOrder): Promise<Measured> {
  const started = performance.now();
  const processes: (readonly RoundCells[])[] = [];
  for (let round = 1; round <= plan.rounds; round++) {
    processes.push(await takeRound(order, (step) => plan.onProgress(`process ${round} of ${plan.rounds} · ${step}`)));
  }
  return { benchmark, rows: joined(benchmark, processes), tookMs: performance.now() - started };
}

/** One row for each workload, with a sample from every process. */
export function joined(benchmark: Benchmark, processes: readonly (readonly RoundCells[])[]): MeasuredWorkload[] {
  return benchmark.workloads.flatMap((workload, at) => {
    const taken = processes.map((rows) => rows[at] as RoundCells);
    // Not of this scale.
    if (taken.some((cells) => cells.size === 0)) return [];
    const names = [...(taken[0]?.keys() ?? [])];
    const cells = new Map(names.map((name) => [name, inAll(taken.map((one) => one.get(name) as Cell))]));
    return [{ workload, cells }];
  });
}

/** A failure in one process is a failure of the workload. */
function inAll(cells: readonly Cell[]): Cell {
  const failed = cells.find((cell) => cell.kind !== "measured");
  if (failed !== undefined) return failed;
  return { kind: "measured", samples: cells.flatMap((cell) => (cell.kind === "measured" ? cell.samples : [])) };
}

/** One round in a process of its own, with these variables added to its environment. */
export function takeRound(
  order: RoundOrder,
  onStep: (text: string) => void,
  env: NodeJS.ProcessEnv = {},
): Promise<readonly RoundCells[]> {
  return new Promise((resolve, reject) => {
    // Structured clone keeps maps and errors.
    const child = fork(PROCESS, [JSON.stringify(order)], {
      serialization: "advanced",
      env: { ...process.env, ...env },
    });
    const stop = () => void child.kill();
    process.once("exit", stop);
    let rows: readonly RoundCells[] | undefined;
    child.on("message", (message: RoundMessage) => {
      if (message.kind === "step") onStep(message.text);
      else rows = message.rows;
    });
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      process.off("exit", stop);
      if (rows !== undefined) resolve(rows);
      else reject(new Error(`a round of ${order.name} ended with ${signal ?? `exit code ${code}`}`));
    });
  });
}
