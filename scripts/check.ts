/**
 * `npm test`: runs every check, one after the other, each with its time; the last line counts the tests. It goes on
 * after a failure, so that one run shows all of them. `--long` asks for the long runs, `--long --whole` for long runs
 * without budgets, and `--plan` prints the steps without running them.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { environmentOf, formOf, type Step, stepsOf } from "./check-steps.ts";
import { findPortableTests } from "./portable-tests.ts";
import { RunCounts } from "./run-counts.ts";

interface Count {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

const NONE: Count = { passed: 0, failed: 0, skipped: 0 };

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const scratch = mkdtempSync(join(tmpdir(), "millrace-check-"));
const report = join(scratch, "vitest.json");
const portable = findPortableTests(join(root, "test"));
const form = formOf(process.argv);
const steps = stepsOf({ form, report, portable: portable.files });

if (process.argv.includes("--plan")) {
  for (const { name, ...step } of steps) console.log(`${name}: ${long(step.form) ? "long" : "short"}`);
} else await runAll();
rmSync(scratch, { recursive: true, force: true });

async function runAll(): Promise<void> {
  const began = performance.now();
  const total = { passed: 0, failed: portable.problems.length, skipped: 0 };
  const broken: string[] = portable.problems.length > 0 ? ["which tests run on Deno and Bun"] : [];
  const counts = new RunCounts();
  for (const problem of portable.problems) console.error(problem);
  for (const step of steps) {
    console.log(`\n── ${step.name}${long(step.form) ? ` (${step.form} form)` : ""}`);
    const started = performance.now();
    const { code, output } = await run(step);
    const count = countOf(step, output) ?? NONE;
    counts.add(output);
    total.passed += count.passed;
    // A step that fails without naming a test counts as one.
    total.failed += code === 0 ? count.failed : Math.max(count.failed, 1);
    total.skipped += count.skipped;
    if (code !== 0) broken.push(step.name);
    console.log(`── ${step.name}: ${code === 0 ? "ok" : `FAILED (exit ${code})`}, ${seconds(started)} s`);
  }
  console.log(`\ncounted in ${seconds(began)} s (${form} form):`);
  for (const line of counts.lines()) console.log(line);
  // The budgets of a long run are of time, so that its counts depend on the machine; those of the short form do not.
  const excesses = counts.excessesOf(readFileSync(join(root, "README.md"), "utf8"));
  for (const excess of excesses) console.log(excess);
  if (form === "short" && excesses.length > 0 && total.failed === 0) {
    total.failed += 1;
    broken.push("numbers of README.md");
  }
  if (total.skipped > 0) console.log(`${total.skipped} skipped, each with its reason above or in its title`);
  if (broken.length > 0) console.log(`failed: ${broken.join("; ")}`);
  console.log(`${total.passed} passed, ${total.failed} failed`);
  process.exitCode = total.failed > 0 ? 1 : 0;
}

function long(of: Step["form"]): boolean {
  return of !== "short";
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1000).toFixed(1);
}

/** Runs a command from `node_modules/.bin`, showing its output as it comes. */
function run({ command: [program, ...args], form: of }: Step): Promise<{ code: number; output: string }> {
  const bin = join(root, "node_modules", ".bin");
  const env = environmentOf(of, process.env, process.stdout.isTTY);
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

/** How many tests passed and failed. Undefined when the step ended before it could say; its exit code says so too. */
function countOf({ counts }: Step, output: string): Count | undefined {
  if (counts === "vitest") return vitestCount();
  const counted = counts === "plain" && output.match(/(\d+) passed, (\d+) failed\s*$/);
  return counted ? { passed: Number(counted[1]), failed: Number(counted[2]), skipped: 0 } : undefined;
}

function vitestCount(): Count | undefined {
  let text: string;
  try {
    text = readFileSync(report, "utf8");
  } catch {
    return undefined;
  }
  const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(text);
  return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests };
}
