/**
 * `npm test`: every check there is, one after the other, each with its time, and a last line that counts the tests.
 * Stops at the end, not at the first failure, so that one run tells everything. `--long` asks for the long runs.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Folders of `test/` whose tests import from `#test` and therefore run on every runtime. */
const PORTABLE = ["message", "host", "store/core", "store/memory", "scheduler", "cells", "bus", "loop"];

interface Step {
  readonly name: string;
  readonly command: readonly string[];
  /** Reads how many tests passed and failed, from the output or from a report. */
  readonly count?: (output: string) => Count;
}

interface Count {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const scratch = mkdtempSync(join(tmpdir(), "millrace-check-"));
const report = join(scratch, "vitest.json");
const env = { ...process.env, ...(process.argv.includes("--long") ? { MILLRACE_LONG: "1" } : {}) };
const portable = PORTABLE.flatMap(testFiles);

const steps: readonly Step[] = [
  { name: "types", command: ["tsc", "-p", "tsconfig.json"] },
  { name: "types of the core, without Node", command: ["tsc", "-p", "tsconfig.core.json"] },
  { name: "lint and format", command: ["biome", "check", "--error-on-warnings", "."] },
  { name: "build", command: ["tsc", "-p", "tsconfig.build.json"] },
  {
    name: "tests on Node",
    command: ["vitest", "run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`],
    count: vitestCount,
  },
  {
    name: "core tests on Deno",
    command: ["deno", "run", "-A", "test/portable/run.ts", ...portable],
    count: plainCount,
  },
  { name: "core tests on Bun", command: ["bun", "test/portable/run.ts", ...portable], count: plainCount },
];

const total = { passed: 0, failed: 0, skipped: 0 };
const broken: string[] = [];
for (const step of steps) {
  console.log(`\n── ${step.name}`);
  const started = performance.now();
  const { code, output } = await run(step.command);
  const count = step.count?.(output) ?? { passed: 0, failed: 0, skipped: 0 };
  total.passed += count.passed;
  total.failed += count.failed;
  total.skipped += count.skipped;
  if (code !== 0) broken.push(step.name);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`── ${step.name}: ${code === 0 ? "ok" : `FAILED (exit ${code})`}, ${seconds} s`);
}
rmSync(scratch, { recursive: true, force: true });

if (broken.length > 0) console.log(`\nfailed: ${broken.join("; ")}`);
const failures = Math.max(total.failed, broken.length > 0 ? 1 : 0);
console.log(`\n${total.passed} passed, ${failures} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ""}`);
process.exitCode = failures > 0 ? 1 : 0;

/** Runs a command from `node_modules/.bin`, showing its output as it comes. */
function run([program, ...args]: readonly string[]): Promise<{ code: number; output: string }> {
  const bin = join(root, "node_modules", ".bin");
  return new Promise((resolve) => {
    const child = spawn(join(bin, program as string), args, { cwd: root, env, stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk;
      process.stdout.write(chunk);
    });
    child.on("error", (error) => resolve({ code: 1, output: error.message }));
    child.on("close", (code) => resolve({ code: code ?? 1, output }));
  });
}

function testFiles(folder: string): string[] {
  const path = join(root, "test", folder);
  try {
    return readdirSync(path, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".test.ts"))
      .map((file) => join(path, file));
  } catch {
    return []; // A room that is not built yet has no tests.
  }
}

function vitestCount(): Count {
  const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, "utf8"));
  return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests };
}

function plainCount(output: string): Count {
  const [, passed = 0, failed = 0] = output.match(/(\d+) passed, (\d+) failed\s*$/) ?? [];
  return { passed: Number(passed), failed: Number(failed), skipped: 0 };
}
