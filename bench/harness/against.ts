/**
 * Two builds of the package by turns in one run: this one, and that of another folder. Each round is a process for
 * either build (`apart.ts`), and the order changes from round to round. The ratio of a row is the quotient of the two
 * medians.
 */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type RoundCells, type RoundOrder, takeRound } from "./apart.ts";
import type { Benchmark, Metric } from "./benchmark.ts";
import type { Plan } from "./measure.ts";
import { median } from "./timing.ts";

const HOOKS = new URL("./build-hooks.mjs", import.meta.url);

export interface Builds {
  /** Folders with a `package.json` and a `dist/`. */
  readonly ours: string;
  readonly theirs: string;
}

export interface ComparedLine {
  readonly group: string;
  readonly workload: string;
  readonly metric: string;
  readonly better: Metric["better"];
  /** Medians over the rounds. */
  readonly ours: number;
  readonly theirs: number;
  /** Ours divided by theirs. */
  readonly ratio: number;
  /** The least and the greatest ratio of one round. */
  readonly least: number;
  readonly greatest: number;
}

export interface Comparison {
  readonly name: string;
  readonly rounds: number;
  readonly tookMs: number;
  readonly lines: readonly ComparedLine[];
  /** Workloads that one of the two could not run, with the reason. */
  readonly failures: readonly string[];
}

/** Why a folder cannot be compared with; undefined if it can. */
export function whyNoBuild(folder: string): string | undefined {
  const manifest = join(folder, "package.json");
  if (!existsSync(manifest)) return `${folder} has no package.json; name the root of a clone`;
  const { name } = JSON.parse(readFileSync(manifest, "utf8")) as { name?: string };
  if (name !== "millrace") return `${folder} is the package ${name}; name the root of a clone of millrace`;
  if (!existsSync(join(folder, "dist", "index.js"))) return `${folder} has no dist/; run "npm run build" there first`;
  return undefined;
}

export async function measureAgainst(
  benchmark: Benchmark,
  plan: Plan,
  order: RoundOrder,
  builds: Builds,
): Promise<Comparison> {
  const started = performance.now();
  const taken: Record<keyof Builds, (readonly RoundCells[])[]> = { ours: [], theirs: [] };
  for (let round = 1; round <= plan.rounds; round++) {
    const turns = round % 2 === 1 ? (["ours", "theirs"] as const) : (["theirs", "ours"] as const);
    for (const whose of turns) {
      const onStep = (step: string) => plan.onProgress(`round ${round} of ${plan.rounds} · ${whose} · ${step}`);
      taken[whose].push(await takeRound({ ...order, onlyOurs: true }, onStep, environmentFor(builds[whose])));
    }
  }
  const { lines, failures } = compare(benchmark, taken.ours, taken.theirs);
  return { name: benchmark.name, rounds: plan.rounds, tookMs: performance.now() - started, lines, failures };
}

/** Also for the servers and threads that a round starts. */
export function environmentFor(folder: string): NodeJS.ProcessEnv {
  const before = process.env["NODE_OPTIONS"];
  const options = `${before === undefined ? "" : `${before} `}--import=${HOOKS.href}`;
  return { NODE_OPTIONS: options, BENCH_BUILD: resolve(folder) };
}

/** One line for each metric that both builds have measured in every round. */
export function compare(
  benchmark: Benchmark,
  ours: readonly (readonly RoundCells[])[],
  theirs: readonly (readonly RoundCells[])[],
): Pick<Comparison, "lines" | "failures"> {
  const system = benchmark.systems.find(({ role }) => role === "ours")?.name ?? "";
  const lines: ComparedLine[] = [];
  const failures: string[] = [];
  for (const [at, { group, name, metrics }] of benchmark.workloads.entries()) {
    const cells = [ours, theirs].map((rounds) => rounds.map((rows) => rows[at]?.get(system)));
    // Not of this scale, or not ours.
    if (cells.every((rounds) => rounds.every((cell) => cell === undefined))) continue;
    const failed = cells.findIndex((rounds) => rounds.some((cell) => cell?.kind !== "measured"));
    if (failed >= 0) {
      const cell = cells[failed]?.find((one) => one?.kind !== "measured");
      const why = cell?.kind === "crashed" ? cell.error.message : "it did not run";
      failures.push(`${group} · ${name}: ${failed === 0 ? "this build" : "the other build"}: ${why}`);
      continue;
    }
    for (const metric of metrics) {
      const [mine, other] = cells.map((rounds) => numbers(rounds, metric.name)) as [number[], number[]];
      if (mine.length === 0 || other.length === 0) continue;
      const ratios = mine.map((value, round) => value / (other[round] as number));
      lines.push({
        ...{ group, workload: name, metric: metric.name, better: metric.better },
        ...{ ours: median(mine), theirs: median(other), ratio: median(mine) / median(other) },
        ...{ least: Math.min(...ratios), greatest: Math.max(...ratios) },
      });
    }
  }
  return { lines, failures };
}

function numbers(rounds: readonly (ReturnType<RoundCells["get"]> | undefined)[], metric: string): number[] {
  const samples = rounds.flatMap((cell) => (cell?.kind === "measured" ? cell.samples : []));
  return samples.map((sample) => sample[metric]).filter((value) => value !== undefined);
}

const HEADINGS = ["workload", "metric", "this", "other", "ratio", "of the rounds", "better"] as const;

export function renderComparison({ name, rounds, tookMs, lines, failures }: Comparison, { theirs }: Builds): string {
  const rows = lines.map((line) => [
    line.workload,
    line.metric,
    significant(line.ours),
    significant(line.theirs),
    times(line.ratio),
    `${times(line.least)} to ${times(line.greatest)}`,
    line.better,
  ]);
  const widths = HEADINGS.map((heading, at) => Math.max(heading.length, ...rows.map((row) => row[at]!.length)));
  const row = (texts: readonly string[]): string =>
    texts
      .map((text, at) => (at < 2 ? text.padEnd(widths[at]!) : text.padStart(widths[at]!)))
      .join("  ")
      .trimEnd();
  const out = [`${name}: this build beside ${theirs}, ${rounds} rounds each (${(tookMs / 1000).toFixed(0)} s)`, ""];
  out.push(row(HEADINGS), widths.map((width) => "─".repeat(width)).join("  "));
  for (const [at, line] of lines.entries()) {
    if (line.group !== lines[at - 1]?.group) out.push(line.group);
    out.push(row(rows[at]!));
  }
  for (const failure of failures) out.push(`not compared: ${failure}`);
  return out.join("\n");
}

/** Both may have counted zero. */
function times(ratio: number): string {
  return Number.isFinite(ratio) ? `${ratio.toFixed(2)}x` : "-";
}

function significant(value: number): string {
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(3)));
}
