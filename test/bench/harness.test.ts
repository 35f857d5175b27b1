/**
 * The benchmark harness: order of runs, ratios, verdicts and the command line. How we measure:
 * `docs/decisions/0004-benchmarks.md`.
 */
import { describe, expect, test } from "vitest";
import { joined } from "../../bench/harness/apart.ts";
import type { Benchmark, Metric, Sample, System } from "../../bench/harness/benchmark.ts";
import { type Cell, measure } from "../../bench/harness/measure.ts";
import { parseOptions } from "../../bench/harness/options.ts";
import { leaveOutPeers, whyPeerMissing } from "../../bench/harness/peers.ts";
import { report } from "../../bench/harness/report.ts";
import { renderReport } from "../../bench/harness/table.ts";

const LIMIT: System = { name: "bare", role: "limit" };
const OURS: System = { name: "ours", role: "ours" };
const PLAN = { scale: "quick", rounds: 3, onProgress: () => {} } as const;

/** A benchmark of one workload whose systems answer with the given numbers, round by round, the warm-up first. */
function setup(numbers: Readonly<Record<string, readonly number[]>>, metric: Metric, systems = [LIMIT, OURS]) {
  const order: string[] = [];
  const run = (name: string, values: readonly number[]) => {
    let round = 0;
    return async (): Promise<Sample> => {
      order.push(name);
      return { [metric.name]: values[round++]! };
    };
  };
  const runs = Object.fromEntries(Object.entries(numbers).map(([name, values]) => [name, run(name, values)]));
  const workload = { group: "all", name: "work", metrics: [metric], runs };
  const benchmark: Benchmark = { name: "sample", what: "a sample", systems, workloads: [workload] };
  return { benchmark, order };
}

const RATE: Metric = { name: "per second", better: "higher", target: { of: "limit", atLeast: 0.5 } };

describe("measuring", () => {
  test("systems take turns in every round, after a warm-up that is not counted", async () => {
    const { benchmark, order } = setup({ bare: [1, 10, 10, 10], ours: [1, 6, 6, 6] }, RATE);
    const { lines } = report(await measure(benchmark, PLAN));
    expect(order).toEqual(["bare", "ours", "bare", "ours", "bare", "ours", "bare", "ours"]);
    expect(lines[0]?.values).toEqual({ bare: 10, ours: 6 });
  });

  test("a ratio is the median of the ratios within the rounds, so that drift cancels out", async () => {
    const { benchmark } = setup({ bare: [0, 100, 10, 1], ours: [0, 60, 6, 0.6] }, RATE);
    expect(report(await measure(benchmark, PLAN)).lines[0]).toMatchObject({ toLimit: 0.6, verdict: "reached" });
  });

  test("the ratio of the round that is farthest from the target is told beside the median", async () => {
    const { benchmark } = setup({ bare: [0, 10, 10, 10], ours: [0, 6, 3, 9] }, RATE);
    const made = report(await measure(benchmark, PLAN));
    expect(made.lines[0]).toMatchObject({ toLimit: 0.6, worst: [0.3], verdict: "reached" });
    expect(renderReport(made)).toMatch(/worst round/);
  });

  test("a number on the wrong side of its target is missed", async () => {
    const { benchmark } = setup({ bare: [0, 10, 10, 10], ours: [0, 4, 4, 4] }, RATE);
    expect(report(await measure(benchmark, PLAN)).lines[0]?.verdict).toBe("missed");
    const lower: Metric = { name: "ms", better: "lower", target: { of: "itself", atMost: 3 } };
    const bounded = setup({ ours: [0, 4, 4, 4] }, lower);
    expect(report(await measure(bounded.benchmark, PLAN)).lines[0]?.verdict).toBe("missed");
  });

  test("the best peer is the one with the best median, higher or lower", async () => {
    const peers: System[] = [OURS, { name: "a", role: "peer" }, { name: "b", role: "peer" }];
    const numbers = { ours: [0, 8, 8, 8], a: [0, 2, 2, 2], b: [0, 4, 4, 4] };
    const higher = setup(numbers, { name: "n", better: "higher" }, peers);
    expect(report(await measure(higher.benchmark, PLAN)).lines[0]?.toBestPeer).toBe(2);
    const lower = setup(numbers, { name: "n", better: "lower" }, peers);
    expect(report(await measure(lower.benchmark, PLAN)).lines[0]?.toBestPeer).toBe(4);
  });

  test("a system that is not there is named with its reason, and the others run", async () => {
    const away: System = { name: "away", role: "peer", unavailable: async () => "needs a server" };
    const { benchmark } = setup({ ours: [0, 1, 1, 1], away: [] }, { name: "n", better: "higher" }, [OURS, away]);
    const made = report(await measure(benchmark, PLAN));
    expect(made.unavailable).toEqual({ away: "needs a server" });
    expect(made.lines[0]?.values).toEqual({ ours: 1 });
    expect(renderReport(made)).toContain("away unavailable: needs a server");
  });

  test("a run that throws is kept as a crash, and the others run", async () => {
    const { benchmark } = setup({ bare: [0, 10, 10, 10], ours: [0, 6, 6, 6] }, RATE);
    const workload = benchmark.workloads[0]!;
    const runs = { ...workload.runs, bare: async () => Promise.reject(new Error("no disk")) };
    const made = report(await measure({ ...benchmark, workloads: [{ ...workload, runs }] }, PLAN));
    expect(made.crashes).toMatchObject([{ system: "bare", error: { message: "no disk" } }]);
    expect(made.lines[0]?.values).toEqual({ ours: 6 });
  });
});

describe("rounds in processes of their own", () => {
  const cells = (ours: number, bare: Cell) => [
    new Map<string, Cell>([
      ["bare", bare],
      ["ours", { kind: "measured", samples: [{ "per second": ours }] }],
    ]),
  ];
  const measured = (value: number): Cell => ({ kind: "measured", samples: [{ "per second": value }] });

  test("each process is one sample, and a ratio is taken within it", () => {
    const { benchmark } = setup({ bare: [], ours: [] }, RATE);
    const rows = joined(benchmark, [cells(6, measured(10)), cells(60, measured(100)), cells(3, measured(10))]);
    const { lines } = report({ benchmark, rows, tookMs: 0 });
    expect(lines[0]).toMatchObject({ values: { ours: 6, bare: 10 }, toLimit: 0.6, worst: [0.3] });
  });

  test("a part that crashed in one of them counts as crashed", () => {
    const { benchmark } = setup({ bare: [], ours: [] }, RATE);
    const crashed: Cell = { kind: "crashed", error: new Error("no disk") };
    const rows = joined(benchmark, [cells(6, measured(10)), cells(6, crashed)]);
    expect(report({ benchmark, rows, tookMs: 0 }).crashes).toMatchObject([{ system: "bare", error: crashed.error }]);
  });

  test("a workload that none of them has run has no row", () => {
    const { benchmark } = setup({ bare: [], ours: [] }, RATE);
    expect(joined(benchmark, [[new Map()], [new Map()]])).toEqual([]);
  });
});

describe("the command line", () => {
  const parse = (...args: string[]) => parseOptions(args, ["store", "message"]);

  test("names, scale and rounds", () => {
    expect(parse("store", "--quick")).toMatchObject({
      kind: "run",
      options: { names: ["store"], scale: "quick", rounds: 3, json: false },
    });
    expect(parse("--long", "--rounds", "7")).toMatchObject({ kind: "run", options: { scale: "long", rounds: 7 } });
  });

  test("--no-peers leaves peers out, also those that are installed", () => {
    expect(parse("--no-peers")).toMatchObject({ kind: "run", options: { peers: false } });
    leaveOutPeers();
    // Any package that is there.
    expect(whyPeerMissing("vitest")).toBe("left out by --no-peers");
  });

  test("a wrong name is reported with the known ones", () => {
    expect(parse("stoer")).toEqual({
      kind: "misuse",
      message: 'there is no benchmark "stoer"; there are: store, message',
    });
    expect(parse("--fast").kind).toBe("misuse");
    expect(parse("--rounds", "0").kind).toBe("misuse");
    expect(parse("--quick", "--long").kind).toBe("misuse");
  });
});
