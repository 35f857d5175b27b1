/**
 * `npm test`: every check there is, one after the other, each with its time, and a last line that counts the tests.
 * Goes on after a failure, so that one run tells everything. `--long` asks for the long runs.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findPortableTests } from "./portable-tests.ts";

interface Step {
  readonly name: string;
  readonly command: readonly string[];
  /** Reads how many tests passed and failed, from the output or from a report. Undefined when it did not get that far. */
  readonly count?: (output: string) => Count | undefined;
}

interface Count {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const scratch = mkdtempSync(join(tmpdir(), "millrace-check-"));
const report = join(scratch, "vitest.json");
const env = environment();
const portable = findPortableTests(join(root, "test"));

const steps: readonly Step[] = [
  { name: "types", command: ["tsc", "-p", "tsconfig.json"] },
  { name: "types of the core, without Node", command: ["tsc", "-p", "tsconfig.core.json"] },
  { name: "lint and format", command: ["biome", "check", "--error-on-warnings", "."] },
  { name: "build: types", command: ["tsc", "-p", "tsconfig.build.json"] },
  { name: "build: bundles", command: ["node", "scripts/bundle.ts"] },
  {
    name: "tests on Node",
    command: ["vitest", "run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`],
    count: vitestCount,
  },
  {
    name: "core tests on Deno",
    command: ["deno", "run", "-A", "test/portable/run.ts", ...portable.files],
    count: plainCount,
  },
  { name: "core tests on Bun", command: ["bun", "test/portable/run.ts", ...portable.files], count: plainCount },
];

const total = { passed: 0, failed: portable.problems.length, skipped: 0 };
const broken: string[] = portable.problems.length > 0 ? ["which tests run on Deno and Bun"] : [];
for (const problem of portable.problems) console.error(problem);
for (const step of steps) {
  console.log(`\n── ${step.name}`);
  const started = performance.now();
  const { code, output } = await run(step.command);
  const count = step.count?.(output) ?? { passed: 0, failed: 0, skipped: 0 };
  total.passed += count.passed;
  // A step that fails without naming a test counts as one.
  total.failed += code === 0 ? count.failed : Math.max(count.failed, 1);
  total.skipped += count.skipped;
  if (code !== 0) broken.push(step.name);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`── ${step.name}: ${code === 0 ? "ok" : `FAILED (exit ${code})`}, ${seconds} s`);
}
rmSync(scratch, { recursive: true, force: true });

console.log("");
if (total.skipped > 0) console.log(`${total.skipped} skipped, each with its reason above or in its title`);
if (broken.length > 0) console.log(`failed: ${broken.join("; ")}`);
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed > 0 ? 1 : 0;

/** The steps write to a pipe, so they are told whether colours are wanted where this is read. */
function environment(): NodeJS.ProcessEnv {
  const { NO_COLOR, FORCE_COLOR, ...inherited } = process.env;
  const colours = FORCE_COLOR !== undefined || (process.stdout.isTTY && !NO_COLOR);
  const long = process.argv.includes("--long") ? { TEST_LONG: "1" } : {};
  return { ...inherited, ...long, ...(colours ? { FORCE_COLOR: FORCE_COLOR ?? "1" } : { NO_COLOR: "1" }) };
}

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
    child.on("error", (error) => {
      console.error(error.message);
      resolve({ code: 1, output });
    });
    child.on("close", (code) => resolve({ code: code ?? 1, output }));
  });
}

function vitestCount(): Count | undefined {
  let text: string;
  try {
    text = readFileSync(report, "utf8");
  } catch {
    return undefined; // Vitest ended before it wrote its report; its exit code says so too.
  }
  const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(text);
  return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests };
}

function plainCount(output: string): Count | undefined {
  const counted = output.match(/(\d+) passed, (\d+) failed\s*$/);
  return counted ? { passed: Number(counted[1]), failed: Number(counted[2]), skipped: 0 } : undefined;
}
