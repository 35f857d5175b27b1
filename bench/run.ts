/**
 * `npm run bench`: selects benchmarks, runs them one after the other and prints a table for each. How we measure, and
 * why so: `docs/decisions/0004-benchmarks.md`. A benchmark that crashes does not stop the others; it only decides the
 * exit code.
 */

import { dirname } from "node:path";
import { setFlagsFromString } from "node:v8";
import { AGAINST, BENCHMARKS, benchmarkOf } from "./benchmarks.ts";
import { type Builds, type Comparison, measureAgainst, renderComparison, whyNoBuild } from "./harness/against.ts";
import { measureApart } from "./harness/apart.ts";
import { caveat, machine, machineText } from "./harness/machine.ts";
import { measure, type Plan } from "./harness/measure.ts";
import { type Options, parseOptions, USAGE } from "./harness/options.ts";
import { leaveOutPeers } from "./harness/peers.ts";
import { Progress } from "./harness/progress.ts";
import { type Report, report } from "./harness/report.ts";
import { renderReport } from "./harness/table.ts";

// The exit handler removes the data of the runs; an interrupt alone would not call it.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

const request = parseOptions(process.argv.slice(2), Object.keys(BENCHMARKS), AGAINST);
switch (request.kind) {
  case "help":
    console.log(USAGE);
    break;
  case "list":
    for (const [name, load] of Object.entries(BENCHMARKS)) console.log(`${name.padEnd(10)} ${(await load()).what}`);
    break;
  case "misuse":
    console.error(`bench: ${request.message}\nTry: npm run bench -- --help`);
    process.exitCode = 2;
    break;
  case "run":
    process.exitCode = await (request.options.against === undefined
      ? runAll(request.options)
      : compareAll(request.options, { ours: dirname(import.meta.dirname), theirs: request.options.against }));
}

/** Two builds beside each other, instead of limits and peers. */
async function compareAll(options: Options, builds: Builds): Promise<number> {
  const { names, json, scale, rounds, only } = options;
  const why = whyNoBuild(builds.theirs) ?? whyNoBuild(builds.ours);
  if (why !== undefined) {
    console.error(`bench: ${why}`);
    return 2;
  }
  const on = machine();
  if (!json) console.log(`${machineText(on)} · ${scale}, ${rounds} rounds\n`);
  const busy = caveat(on);
  if (busy !== undefined) console.error(`bench: ${busy}`);
  const comparisons: Comparison[] = [];
  for (const name of names.length > 0 ? names : AGAINST) {
    const progress = new Progress();
    const plan: Plan = { scale, rounds, onProgress: (step) => progress.step(`${name} · ${step}`) };
    const benchmark = await benchmarkOf(name, only);
    const comparison = await measureAgainst(benchmark, plan, { name, only, scale, peers: false }, builds);
    progress.clear();
    comparisons.push(comparison);
    if (!json) console.log(`${renderComparison(comparison, builds)}\n`);
  }
  if (json) console.log(JSON.stringify({ machine: on, ...options, comparisons }, null, 2));
  return comparisons.some(({ failures }) => failures.length > 0) ? 1 : 0;
}

async function runAll(options: Options): Promise<number> {
  setFlagsFromString("--expose-gc");
  if (!options.peers) leaveOutPeers();
  const on = machine();
  if (!options.json) console.log(`${machineText(on)} · ${options.scale}, ${options.rounds} rounds\n`);
  const busy = caveat(on);
  if (busy !== undefined) console.error(`bench: ${busy}`);
  const reports: Report[] = [];
  let crashed = false;
  for (const name of options.names.length > 0 ? options.names : Object.keys(BENCHMARKS)) {
    const done = await runOne(name, options);
    crashed ||= done === undefined || done.crashes.length > 0;
    if (done) reports.push(done);
    if (done && !options.json) console.log(`${renderReport(done)}\n`);
  }
  if (options.json) console.log(JSON.stringify({ machine: on, ...options, reports }, errorsAsText, 2));
  return crashed ? 1 : 0;
}

/** Undefined when the benchmark crashed as a whole. */
async function runOne(name: string, { scale, rounds, only, peers }: Options): Promise<Report | undefined> {
  const progress = new Progress();
  const plan: Plan = { scale, rounds, onProgress: (step) => progress.step(`${name} · ${step}`) };
  try {
    const benchmark = await benchmarkOf(name, only);
    if (benchmark.workloads.length === 0) console.error(`bench: no workload of ${name} contains "${only}"`);
    const measured = benchmark.apart
      ? await measureApart(benchmark, plan, { name, only, scale, peers })
      : await measure(benchmark, plan);
    return report(measured);
  } catch (error) {
    console.error(`bench: ${name} crashed:`, error);
    return undefined;
  } finally {
    progress.clear();
  }
}

function errorsAsText(_key: string, value: unknown): unknown {
  return value instanceof Error ? value.message : value;
}
