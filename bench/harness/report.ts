/**
 * From samples to statements: medians, ratios and whether the target was reached. Ratios are taken round by round, between
 * runs that were neighbours in time, and then their median: drift of the machine cancels out.
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
  /** What did not run and why, one entry for each system. */
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
  const ratioTo = (other: string | undefined): number | undefined =>
    ours === undefined || other === undefined
      ? undefined
      : ratio(numbersOf(cells.get(ours), metric.name), numbersOf(cells.get(other), metric.name));
  const toLimit = ratioTo(of("limit")[0]);
  const toBestPeer = ratioTo(best(of("peer"), values, metric));
  const targets = metric.target === undefined ? [] : [metric.target].flat();
  const toNamed: Record<string, number> = {};
  for (const { of: reference } of targets) {
    if (typeof reference !== "object") continue;
    const to = ratioTo(reference.system);
    if (to !== undefined) toNamed[reference.system] = to;
  }
  const reached = targets.map((target) => {
    const value =
      ours === undefined ? undefined : measured(target, { own: values[ours], toLimit, toBestPeer, toNamed });
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

function ratio(ours: readonly number[], theirs: readonly number[]): number | undefined {
  const rounds = Math.min(ours.length, theirs.length);
  if (rounds === 0) return undefined;
  return median(Array.from({ length: rounds }, (_, round) => ours[round]! / theirs[round]!));
}

function measured(
  { of }: Target,
  taken: {
    readonly own: number | undefined;
    readonly toLimit: number | undefined;
    readonly toBestPeer: number | undefined;
    readonly toNamed: Readonly<Record<string, number>>;
  },
): number | undefined {
  if (of === "itself") return taken.own;
  if (of === "limit") return taken.toLimit;
  return of === "best peer" ? taken.toBestPeer : taken.toNamed[of.system];
}

function isReached(
  { atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY }: Target,
  value: number,
): boolean {
  return value >= atLeast && value <= atMost;
}
