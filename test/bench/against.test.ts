/** Two builds beside each other: which code a round loads, how rounds become ratios, and the command line. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { AGAINST, BENCHMARKS, ourShare } from "../../bench/benchmarks.ts";
import { compare, environmentFor, renderComparison, whyNoBuild } from "../../bench/harness/against.ts";
import type { RoundCells } from "../../bench/harness/apart.ts";
import type { Benchmark } from "../../bench/harness/benchmark.ts";
import type { Cell } from "../../bench/harness/measure.ts";
import { parseOptions, USAGE } from "../../bench/harness/options.ts";
import { ROOT, runProgram, scratchFolder } from "../repo/program.ts";

/** A folder that looks like a build; its entry point tells its name. */
function buildIn(name: string): string {
  const folder = scratchFolder();
  const files = {
    "package.json": JSON.stringify({ name: "millrace", type: "module", exports: { ".": "./dist/index.js" } }),
    "dist/index.js": `export const build = ${JSON.stringify(name)};`,
    "src/limits.ts": `export const build: string = ${JSON.stringify(`${name}, its sources`)};`,
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

const BENCHMARK: Benchmark = {
  name: "sample",
  what: "a sample",
  systems: [
    { name: "bare", role: "limit" },
    { name: "millrace", role: "ours" },
  ],
  workloads: [
    {
      group: "all",
      name: "work",
      metrics: [{ name: "per second", better: "higher" }],
      runs: { millrace: async () => ({ "per second": 1 }) },
    },
    { group: "all", name: "of others", metrics: [{ name: "ms", better: "lower" }], runs: {} },
  ],
};

function rounds(...values: readonly (number | Cell)[]): (readonly RoundCells[])[] {
  return values.map((value) => {
    const cell: Cell = typeof value === "number" ? { kind: "measured", samples: [{ "per second": value }] } : value;
    return [new Map([["millrace", cell]]), new Map()];
  });
}

describe("the code of a round", () => {
  const program = `
    import { build } from "millrace";
    import { build as sources } from ${JSON.stringify(`${ROOT}/src/limits.ts`)};
    import { Worker } from "node:worker_threads";
    import { spawnSync } from "node:child_process";
    const inner = 'import("millrace").then(({ build }) => console.log(build))';
    const child = spawnSync(process.execPath, ["--input-type=module", "-e", inner], { encoding: "utf8" }).stdout.trim();
    const worker = await new Promise((resolve, reject) => {
      const text = 'import { build } from "millrace"; import { parentPort } from "node:worker_threads"; parentPort.postMessage(build);';
      const url = new URL("data:text/javascript," + encodeURIComponent(text));
      new Worker(url).once("message", resolve).once("error", reject);
    });
    console.log(JSON.stringify({ build, sources: sources ?? "ours", child, worker }));`;

  test("[K119] the package and its sources come from the build that is named, in child processes and threads too", async () => {
    const args = ["--input-type=module", "-e", program];
    for (const name of ["one", "two"]) {
      const env = environmentFor(buildIn(name)) as Record<string, string>;
      const { stdout, stderr } = await runProgram(process.execPath, args, { cwd: join(ROOT, "bench"), env });
      expect({ stderr, ...JSON.parse(stdout || "{}") }).toEqual({
        ...{ stderr: "", build: name, sources: `${name}, its sources`, child: name, worker: name },
      });
    }
  });

  test("[K119] a folder without a build is refused with a remedy", () => {
    const empty = scratchFolder();
    expect(whyNoBuild(empty)).toMatch(/has no package.json; name the root of a clone/);
    writeFileSync(join(empty, "package.json"), '{ "name": "other" }');
    expect(whyNoBuild(empty)).toMatch(/is the package other/);
    writeFileSync(join(empty, "package.json"), '{ "name": "millrace" }');
    expect(whyNoBuild(empty)).toMatch(/has no dist\/; run "npm run build" there first/);
    expect(whyNoBuild(buildIn("one"))).toBeUndefined();
  });
});

describe("ratios of two builds", () => {
  test("[K119] a ratio is that of the medians, with the least and the greatest of the rounds", () => {
    const { lines, failures } = compare(BENCHMARK, rounds(10, 30, 20), rounds(10, 10, 40));
    expect(failures).toEqual([]);
    expect(lines).toEqual([
      {
        ...{ group: "all", workload: "work", metric: "per second", better: "higher" },
        ...{ ours: 20, theirs: 10, ratio: 2, least: 0.5, greatest: 3 },
      },
    ]);
    const comparison = { name: "sample", rounds: 3, tookMs: 1_000, lines, failures };
    expect(renderComparison(comparison, { ours: ".", theirs: "../old" })).toMatch(
      /beside \.\.\/old, 3 rounds each[\s\S]*work {2,}per second {2,}20 {2,}10 {2,}2\.00x {2,}0\.50x to 3\.00x {2,}higher/,
    );
  });

  test("[K119] a workload that one of them cannot run is named with its reason, and has no ratio", () => {
    const crashed: Cell = { kind: "crashed", error: new Error("no such export") };
    const { lines, failures } = compare(BENCHMARK, rounds(10), rounds(crashed));
    expect(lines).toEqual([]);
    expect(failures).toEqual(["all · work: the other build: no such export"]);
  });

  test("[K119] only our own system takes part", () => {
    expect(ourShare(BENCHMARK).systems.map(({ name }) => name)).toEqual(["millrace"]);
  });
});

describe("the command line of a comparison", () => {
  const parse = (...args: string[]) => parseOptions(args, Object.keys(BENCHMARKS), AGAINST);

  test("[K119] --against takes a folder, beside --rounds and names", () => {
    expect(parse("loop", "--against", "../old", "--rounds", "7")).toMatchObject({
      kind: "run",
      options: { names: ["loop"], against: "../old", rounds: 7 },
    });
    expect(parse("loop")).toMatchObject({ options: { against: undefined } });
    expect(USAGE).toContain("--against DIR");
  });

  test("[K119] a comparison covers loop, bus, streams, kernel and reactive, and refuses others", () => {
    expect([...AGAINST].sort()).toEqual(["bus", "kernel", "loop", "reactive", "streams"]);
    expect(parse("store", "--against", "../old")).toEqual({
      kind: "misuse",
      message: "--against does not compare store; it compares: loop, bus, streams, kernel, reactive",
    });
  });
});
