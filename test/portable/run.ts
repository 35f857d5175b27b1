/**
 * Runs the core's tests on a runtime that is not Node: `deno run -A test/portable/run.ts` or `bun
 * test/portable/run.ts`. Takes the files to run as arguments, prints each failure and a last line `N passed, N failed`;
 * the exit code says the same.
 */
import process from "node:process";
import { pathToFileURL } from "node:url";
import { collected } from "./portable.ts";

/** As under Vitest: it only ends tests that hang. */
const TEST_LIMIT_MS = 600_000;

const files = process.argv.slice(2);
for (const file of files) await import(pathToFileURL(file).href);

let passed = 0;
let failed = 0;
for (const { name, body } of collected) {
  try {
    await withinLimit(body);
    passed++;
  } catch (error) {
    failed++;
    console.error(`✗ ${name}\n${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  }
}
if (collected.length === 0) console.error("no tests were found in the files given");
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);

async function withinLimit(body: () => unknown): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const overrun = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`still running after ${TEST_LIMIT_MS} ms`)), TEST_LIMIT_MS);
  });
  try {
    await Promise.race([body(), overrun]);
  } finally {
    clearTimeout(timer);
  }
}
