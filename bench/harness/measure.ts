/**
 * Runs a benchmark: workload by workload, rounds of A B C A B C …, so that other load on the machine affects every
 * system alike. A first round warms up and is dropped. A run that throws is kept as that cell's failure; the others go
 * on.
 */
import type { Benchmark, Sample, Scale, System, Workload } from "./benchmark.ts";
import { Scratch } from "./scratch.ts";

export interface Plan {
  readonly scale: Scale;
  readonly rounds: number;
  readonly onProgress: (step: string) => void;
}

/** The result of one system on one workload. */
export type Cell =
  /** One sample for each round. */
  | { readonly kind: "measured"; readonly samples: readonly Sample[] }
  | { readonly kind: "unavailable"; readonly reason: string }
  | { readonly kind: "crashed"; readonly error: Error };

export interface Measured {
  readonly benchmark: Benchmark;
  readonly rows: readonly MeasuredWorkload[];
  readonly tookMs: number;
}

export interface MeasuredWorkload {
  readonly workload: Workload;
  /** By the system's name; none for a system that does not do this workload. */
  readonly cells: ReadonlyMap<string, Cell>;
}

const SCALES: readonly Scale[] = ["quick", "full", "long"];

export async function measure(benchmark: Benchmark, plan: Plan): Promise<Measured> {
  const started = performance.now();
  const scratch = new Scratch();
  try {
    const missing = await findUnavailable(benchmark.systems);
    const rows: MeasuredWorkload[] = [];
    for (const workload of benchmark.workloads) {
      if (!isIncluded(workload, plan.scale)) continue;
      rows.push({ workload, cells: await measureWorkload(benchmark, workload, missing, plan, scratch) });
    }
    return { benchmark, rows, tookMs: performance.now() - started };
  } finally {
    scratch.remove();
  }
}

function isIncluded(workload: Workload, scale: Scale): boolean {
  return SCALES.indexOf(workload.from ?? "quick") <= SCALES.indexOf(scale);
}

async function findUnavailable(systems: readonly System[]): Promise<ReadonlyMap<string, string>> {
  const reasons = new Map<string, string>();
  for (const system of systems) {
    const reason = await system.unavailable?.();
    if (reason !== undefined) reasons.set(system.name, reason);
  }
  return reasons;
}

async function measureWorkload(
  benchmark: Benchmark,
  workload: Workload,
  missing: ReadonlyMap<string, string>,
  plan: Plan,
  scratch: Scratch,
): Promise<ReadonlyMap<string, Cell>> {
  const samples = new Map<string, Sample[]>();
  const cells = new Map<string, Cell>();
  for (const { name } of benchmark.systems) {
    if (!Object.hasOwn(workload.runs, name)) continue;
    const reason = missing.get(name);
    if (reason === undefined) samples.set(name, []);
    else cells.set(name, { kind: "unavailable", reason });
  }
  for (let round = 0; round <= plan.rounds; round++) {
    for (const [name, taken] of samples) {
      plan.onProgress(`${workload.group} · ${workload.name} · ${round === 0 ? "warm-up" : `round ${round}`} · ${name}`);
      try {
        collectGarbage();
        const sample = await scratch.scene(plan.scale, workload.runs[name]!);
        if (round > 0) taken.push(sample);
      } catch (thrown) {
        samples.delete(name);
        cells.set(name, { kind: "crashed", error: thrown instanceof Error ? thrown : new Error(String(thrown)) });
      }
    }
  }
  for (const [name, taken] of samples) cells.set(name, { kind: "measured", samples: taken });
  return cells;
}

/**
 * Collects young garbage, so that no system pays for the one before it; `run.ts` exposes the collector. No full
 * collection, because it also discards optimised code, and every sample would begin cold (decision 0004).
 */
function collectGarbage(): void {
  void globalThis.gc?.({ type: "minor" });
}
