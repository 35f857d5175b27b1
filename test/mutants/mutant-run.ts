/**
 * Runs the tests of one mutant in its planted tree. The verdicts:
 *
 * - `caught`: at least one test failed.
 * - `survived`: all tests passed; a test is missing.
 * - `broken`: the bug does not run: no test was found, a file could not be loaded, or a process spun until its
 * processor time was over.
 *   The list is to be mended.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutant } from "./mutant.ts";
import { healthyTree, plantedTree, removeTree } from "./planted-tree.ts";

export type Verdict =
  | { readonly kind: "caught"; readonly by: string }
  | { readonly kind: "survived" }
  | { readonly kind: "broken"; readonly why: string };

/** A test that waits for an event which the bug prevents is ended after this time. */
const TEST_LIMIT_MS = 300_000;
/**
 * A bug that makes a process spin ends it: no healthy process takes a fifth of this. Time of the processor, since that
 * does not depend on the load.
 */
const PROCESS_CPU_SECONDS_MAX = 300;

export async function runMutant(mutant: Mutant, cpuSecondsMax = PROCESS_CPU_SECONDS_MAX): Promise<Verdict> {
  const tree = plantedTree(mutant);
  try {
    return verdictOf(join(tree, "report.json"), await runTests(tree, mutant.tests, cpuSecondsMax));
  } finally {
    removeTree(tree);
  }
}

/** The tests that fail without a bug, by the file or folder that was named. Their failure does not count as a catch. */
export async function failingBefore(tests: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const failing = new Map<string, string>();
  if (await areAllHealthy(tests)) return failing;
  for (const path of tests) {
    const tree = healthyTree();
    try {
      const verdict = verdictOf(join(tree, "report.json"), await runTests(tree, [path], PROCESS_CPU_SECONDS_MAX));
      if (verdict.kind !== "survived") failing.set(path, verdict.kind === "caught" ? verdict.by : verdict.why);
    } finally {
      removeTree(tree);
    }
  }
  return failing;
}

/** Whether all tests pass in one run, which costs far less than one run for each, and each name has tests in it. */
async function areAllHealthy(tests: readonly string[]): Promise<boolean> {
  const tree = healthyTree();
  try {
    const path = join(tree, "report.json");
    const end = await runTests(tree, tests, tests.length * PROCESS_CPU_SECONDS_MAX);
    if (verdictOf(path, end).kind !== "survived") return false;
    const { testResults } = JSON.parse(readFileSync(path, "utf8")) as TestReport;
    return tests.every((named) => testResults.some(({ name }) => name.startsWith(join(tree, named))));
  } finally {
    removeTree(tree);
  }
}

interface RunEnd {
  readonly code: number | null;
  /** The end of its output. */
  readonly output: string;
}

interface TestReport {
  readonly numTotalTests: number;
  readonly testResults: readonly {
    /** The path of its file. */
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

function verdictOf(path: string, { code, output }: RunEnd): Verdict {
  let report: TestReport;
  try {
    report = JSON.parse(readFileSync(path, "utf8")) as TestReport;
  } catch {
    return { kind: "broken", why: `the tests left no report: ${output.trim().slice(-500)}` };
  }
  const failed = report.testResults.flatMap((file) => file.assertionResults).find(({ status }) => status === "failed");
  if (failed) return { kind: "caught", by: failed.fullName };
  const unloaded = report.testResults.find(({ status }) => status === "failed");
  if (unloaded) return { kind: "broken", why: unloaded.message.slice(0, 500) };
  if (report.numTotalTests === 0) return { kind: "broken", why: "its test files have no tests" };
  // A worker that was ended reports no failed test.
  if (code !== 0) return { kind: "broken", why: `the run ended with ${code}: ${output.trim().slice(-500)}` };
  return { kind: "survived" };
}

function runTests(tree: string, tests: readonly string[], cpuSecondsMax: number): Promise<RunEnd> {
  const report = join(tree, "report.json");
  const limits = [`--testTimeout=${TEST_LIMIT_MS}`, `--hookTimeout=${TEST_LIMIT_MS}`, "--maxWorkers=1", "--bail=1"];
  const args = ["run", ...tests, ...limits, "--reporter=json", `--outputFile.json=${report}`];
  const { TEST_LONG, TEST_WHOLE, ...env } = process.env;
  return new Promise((resolve, reject) => {
    const vitest = join(tree, "node_modules", ".bin", "vitest");
    // The limit is inherited by all processes of the run, and counts for each.
    const limited = ["-c", `ulimit -t ${cpuSecondsMax} && exec "$0" "$@"`, vitest, ...args];
    const child = spawn("sh", limited, { cwd: tree, env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    const take = (chunk: Buffer) => {
      // The end says why it failed.
      output = (output + chunk).slice(-10_000);
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, output }));
  });
}
