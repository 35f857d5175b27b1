/**
 * The reactive core beside the signal libraries: the cost of a change until it has reached every effect. Ours is a
 * space on the memory store with transactions, causes and addresses, settled with `flush()`; the others have none of
 * these. Timing: `reactive/pace.ts`; ratios, rounds and interleaving: `docs/decisions/0004-benchmarks.md`.
 */
import type { Benchmark, Metric, Sample, Scene, Target, Workload } from "./harness/benchmark.ts";
import { type DeepWorkload, withDeepStack } from "./reactive/deep-stack.ts";
import { deepestChain } from "./reactive/deepest.ts";
import { chainOnFile, DURABLE, SHARE } from "./reactive/on-file.ts";
import { SHAPES } from "./reactive/shapes.ts";
import {
  DOCUMENT_SYSTEMS,
  FASTEST,
  GRAPH_SYSTEMS,
  OURS,
  openDocuments,
  openGraph,
  SYSTEMS,
  shapesFor,
  workloadsFor,
} from "./reactive/systems.ts";
import type { DocumentWorkload, GraphWorkload } from "./reactive/workloads.ts";

type Workloads = typeof import("./reactive/workloads.ts");
type Named<Kind> = { [Name in keyof Workloads]: Workloads[Name] extends Kind ? Name : never }[keyof Workloads];

const AHEAD: Target = { of: "best peer", atMost: 1 };
const AHEAD_OF_MOBX: Target = { of: { system: "mobx" }, atMost: 1 };
const CLOSE: readonly Target[] = [{ of: { system: FASTEST }, atMost: 3 }, AHEAD_OF_MOBX];

export const reactiveBenchmark: Benchmark = {
  name: "reactive",
  what: "one change until every effect has run; the fastest of many short batches, each round in a process of its own, median of rounds",
  systems: SYSTEMS,
  apart: true,
  workloads: [
    graph("(a) 10,000 computeds, 1 observed: one write", "oneOfManyObserved", [lower("us", CLOSE), exactly(1)]),
    graph("(b) register a dormant node", "dormant", [lower("us", atMost(1)), lower("bytes", atMost(600)), exactly(0)]),
    deepGraph("(c) chain of 1,000", "chain", [lower("ns per node", CLOSE), exactly(1000)]),
    deepGraph("(d) diamond grid of 495", "diamonds", [lower("ns per node", CLOSE), exactly(496)]),
    deepGraph("(e) chain of 10,000, first output unchanged", "unchangedFirst", [lower("us", AHEAD), exactly(1)]),
    documents("(f) 10,000 keys, a reader each: write one key", "oneKey", [lower("us", AHEAD), exactly(1)]),
    documents("(f2) replace it, one key differs", "replaced", [
      lower("us", AHEAD),
      { name: "us without making it", better: "lower" },
      exactly(1),
    ]),
    graph("(g) dynamic dependencies", "switching", [lower("ns per edge", CLOSE), exactly(100)]),
    graph("(h) keyed map of 10,000, insert one", "insertion", [lower("us", AHEAD_OF_MOBX), exactly(1)]),
    graph("(i) 1,000,000 writes in one transaction", "manyWrites", [lower("ms", CLOSE), exactly(1)]),
    chains(),
    graph("(l) read a computed that is up to date, as often as a cell", "cleanRead", [
      { name: "cell ns", better: "lower" },
      lower("observed / cell", atMost(1.5)),
      lower("unobserved / cell", atMost(1.5)),
      exactly(0),
    ]),
    ...Object.keys(SHAPES).map(shape),
    {
      group: "on a SQLite file (FULL)",
      name: "chain of 1,000, kept over a restart",
      metrics: [lower(SHARE, atMost(2)), { name: DURABLE, better: "lower" }],
      runs: { [OURS]: chainOnFile },
    },
  ],
};

function lower(name: string, target: Target | readonly Target[]): Metric {
  return { name, better: "lower", target };
}

function atMost(bound: number): Target {
  return { of: "itself", atMost: bound };
}

/** The least number of runs, and so the right one. */
function exactly(runs: number): Metric {
  return { name: "runs", better: "lower", target: { of: "itself", atLeast: runs, atMost: runs } };
}

function graph(name: string, workload: Named<GraphWorkload>, metrics: readonly Metric[]): Workload {
  return workloadOf(name, metrics, GRAPH_SYSTEMS, async (system, { scale }) => {
    const opened = await openGraph(system);
    const sample = await (await workloadsFor(system))[workload](opened, scale);
    await opened.close?.();
    return sample;
  });
}

function documents(name: string, workload: Named<DocumentWorkload>, metrics: readonly Metric[]): Workload {
  return workloadOf(name, metrics, DOCUMENT_SYSTEMS, async (system, { scale }) => {
    const opened = await openDocuments(system);
    const sample = await (await workloadsFor(system))[workload](opened, scale);
    await opened.close?.();
    return sample;
  });
}

function deepGraph(name: string, workload: DeepWorkload, metrics: readonly Metric[]): Workload {
  return workloadOf(name, metrics, GRAPH_SYSTEMS, (system, { scale }) => withDeepStack(system, workload, scale));
}

function chains(): Workload {
  const all: Target = { of: "itself", atLeast: 100_000 };
  const metrics: readonly Metric[] = [
    { name: "cold", better: "higher", target: all },
    { name: "hot", better: "higher", target: all },
  ];
  return workloadOf("(k) deepest chain, up to 100,000", metrics, GRAPH_SYSTEMS, async (system) => {
    return { cold: deepestChain(system, "cold"), hot: deepestChain(system, "hot") };
  });
}

function shape(name: string): Workload {
  const run = async (system: string, { scale }: Scene) => {
    const opened = await openGraph(system);
    const sample = await (await shapesFor(system)).timeShape(name, opened, scale);
    await opened.close?.();
    return sample;
  };
  return { ...workloadOf(name, [{ name: "us", better: "lower", target: CLOSE }], GRAPH_SYSTEMS, run), group: "shapes" };
}

function workloadOf(
  name: string,
  metrics: readonly Metric[],
  systems: readonly string[],
  run: (system: string, scene: Scene) => Promise<Sample>,
): Workload {
  const runs = Object.fromEntries(systems.map((system) => [system, (scene: Scene) => run(system, scene)]));
  return { group: `workloads (${OURS} beside its peers)`, name, metrics, runs };
}
