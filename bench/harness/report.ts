/**
 * From samples to statements: medians, ratios and whether the target was reached. Ratios are taken round by round,
 * between runs that were neighbours in time, and then their median: drift of the machine cancels out.
 */
import type { Metric, Sample, System, Target } from "./benchmark.ts";
import type { Cell, Measured, MeasuredWorkload } from "./measure.ts";
import { median } from "./timing.ts";

export interface Report {
  readonly name: string;
  readonly what: string;
  readonly tookMs: number;
  readonly systems: readonly string[];
  readonly lines: readonly Line[];
  /** Systems that did not run, and the reason. */
  readonly unavailable: Readonly<Record<string, string>>;
  readonly crashes: readonly Crash[];
}

export interface Line {
  readonly group: string;
  readonly workload: string;
  readonly metric: string;
  /** Medians, by the system's name. */
  readonly values: Readonly<Record<string, number>>;
  /** Ours divided by the limit's. */
  readonly toLimit?: number;
  /** Ours divided by the best peer's. */
  readonly toBestPeer?: number;
  /** Ours divided by that of each system that a target names. */
  readonly toNamed: Readonly<Record<string, number>>;
  readonly targets: readonly Target[];
  /** For each target that is a ratio, the one of the round that was farthest from it. */
  readonly worst: readonly number[];
  readonly verdict?: "reached" | "missed";
}

export interface Crash {
  readonly workload: string;
  readonly system: string;
  readonly error: Error;
}

export function report({ benchmark, rows, tookMs }: Measured): Report {
  const unavailable: Record<string, string> = {};
  const crashes: Crash[] = [];
  for (const { workload, cells } of rows) {
    for (const [system, cell] of cells) {
      if (cell.kind === "unavailable") unavailable[system] = cell.reason;
      if (cell.kind === "crashed") {
        crashes.push({ workload: `${workload.group} · ${workload.name}`, system, error: cell.error });
      }
    }
  }
  const lines = rows.flatMap((row) => row.workload.metrics.map((metric) => lineOf(benchmark.systems, row, metric)));
  const systems = benchmark.systems.map((system) => system.name);
  return { name: benchmark.name, what: benchmark.what, tookMs, systems, lines, unavailable, crashes };
}

function lineOf(systems: readonly System[], { workload, cells }: MeasuredWorkload, metric: Metric): Line {
  const values: Record<string, number> = {};
  for (const { name } of systems) {
    const taken = numbersOf(cells.get(name), metric.name);
    if (taken.length > 0) values[name] = median(taken);
  }
  const of = (role: System["role"]) => systems.filter((system) => system.role === role).map((system) => system.name);
  const [ours] = of("ours");
  const ratiosTo = (other: string | undefined): readonly number[] =>
    ours === undefined || other === undefined
      ? []
      : ratios(numbersOf(cells.get(ours), metric.name), numbersOf(cells.get(other), metric.name));
  const ratioTo = (other: string | undefined): number | undefined => typical(ratiosTo(other));
  const limit = of("limit")[0];
  const bestPeer = best(of("peer"), values, metric);
  const toLimit = ratioTo(limit);
  const toBestPeer = ratioTo(bestPeer);
  const targets = metric.target === undefined ? [] : [metric.target].flat();
  const toNamed: Record<string, number> = {};
  for (const { of: reference } of targets) {
    if (typeof reference !== "object") continue;
    const to = ratioTo(reference.system);
    if (to !== undefined) toNamed[reference.system] = to;
  }
  const ratiosFor = (target: Target) =>
    target.of === "itself" ? [] : ratiosTo(referenceOf(target.of, limit, bestPeer));
  const reached = targets.map((target) => {
    const own = ours === undefined ? undefined : values[ours];
    const value = target.of === "itself" ? own : typical(ratiosFor(target));
    return value === undefined ? undefined : isReached(target, value);
  });
  return {
    group: workload.group,
    workload: workload.name,
    metric: metric.name,
    values,
    ...(toLimit !== undefined && { toLimit }),
    ...(toBestPeer !== undefined && { toBestPeer }),
    toNamed,
    targets,
    worst: targets.flatMap((target) => farthest(target, ratiosFor(target))),
    ...(reached.some((one) => one !== undefined) && { verdict: reached.includes(false) ? "missed" : "reached" }),
  };
}

function numbersOf(cell: Cell | undefined, metric: string): readonly number[] {
  if (cell?.kind !== "measured") return [];
  return cell.samples.map((sample: Sample) => sample[metric]).filter((value) => value !== undefined);
}

function best(peers: readonly string[], values: Readonly<Record<string, number>>, metric: Metric): string | undefined {
  const there = peers.filter((peer) => values[peer] !== undefined);
  const sign = metric.better === "higher" ? -1 : 1;
  return there.toSorted((a, b) => sign * (values[a]! - values[b]!))[0];
}

/** Of the rounds, one by one. */
function ratios(ours: readonly number[], theirs: readonly number[]): readonly number[] {
  return Array.from({ length: Math.min(ours.length, theirs.length) }, (_, round) => ours[round]! / theirs[round]!);
}

function typical(ratios: readonly number[]): number | undefined {
  return ratios.length === 0 ? undefined : median(ratios);
}

/** The system that a target is a ratio to. */
function referenceOf(
  of: Exclude<Target["of"], "itself">,
  limit: string | undefined,
  bestPeer: string | undefined,
): string | undefined {
  if (typeof of === "object") return of.system;
  return of === "limit" ? limit : bestPeer;
}

function farthest({ atLeast }: Target, ratios: readonly number[]): readonly number[] {
  if (ratios.length === 0) return ratios;
  return [atLeast === undefined ? Math.max(...ratios) : Math.min(...ratios)];
}

function isReached(
  { atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY }: Target,
  value: number,
): boolean {
  return value >= atLeast && value <= atMost;
}
