/**
 * `npm run mutants`: plants one bug at a time and says which of them no test noticed. `npm run mutants -- NAME ...`
 * runs those with a name that contains a word, `--list` lists them, `--jobs N` runs N beside each other. `--minutes N`
 * starts no further bug after N minutes; it begins at a random place of the list and names the bugs that it left out.
 * Ends with 1 if one survived or does not run. SPEC: K115.
 */
import { parseArgs } from "node:util";
import { MUTANTS } from "./list.ts";
import type { Mutant } from "./mutant.ts";
import { failingBefore, runMutant, type Verdict } from "./mutant-run.ts";

const JOBS = 2;

const { values, positionals: words } = parseArgs({
  allowPositionals: true,
  options: { jobs: { type: "string" }, minutes: { type: "string" }, list: { type: "boolean", default: false } },
});
const jobs = Number(values.jobs ?? JOBS);
const minutes = Number(values.minutes ?? Number.POSITIVE_INFINITY);
const chosen = MUTANTS.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));

if (!Number.isInteger(jobs) || jobs < 1) fail("--jobs takes a number of 1 or more");
else if (!(minutes > 0)) fail("--minutes takes a number above 0");
else if (chosen.length === 0) fail(`no mutant's name contains ${words.join(" or ")}; --list lists them`);
else if (values.list) for (const { name, breaks, file } of chosen) console.log(`${breaks} ${name} ${file}`);
else await runAll(values.minutes === undefined ? chosen : rotated(chosen));

async function runAll(mutants: readonly Mutant[]): Promise<void> {
  const startMs = performance.now();
  const hasTime = () => performance.now() - startMs < minutes * 60_000;
  const failing = await healthOf(mutants);
  const open = [...mutants];
  const missed: string[] = [];
  let done = 0;
  const work = async (): Promise<void> => {
    while (hasTime()) {
      const mutant = open.shift();
      if (mutant === undefined) return;
      const verdict = await verdictOn(mutant, failing);
      if (verdict.kind !== "caught") missed.push(mutant.name);
      console.log(
        `${String(++done).padStart(3)} of ${mutants.length}  ${mutant.breaks} ${mutant.name}: ${text(verdict)}`,
      );
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  if (open.length > 0) {
    console.log(`${minutes} minutes are over; ${open.length} not run: ${open.map(({ name }) => name).join(", ")}`);
  }
  console.log(`counted: ${done - missed.length} planted bugs caught`);
  if (missed.length > 0) fail(`not caught: ${missed.join(", ")}`);
}

/** The list from a random place on, so that runs that end early do not leave out the same bugs. */
function rotated(mutants: readonly Mutant[]): readonly Mutant[] {
  const start = Math.floor(Math.random() * mutants.length);
  return [...mutants.slice(start), ...mutants.slice(0, start)];
}

/** Runs all tests of the bugs once without any, shared between the jobs. */
async function healthOf(mutants: readonly Mutant[]): Promise<ReadonlyMap<string, string>> {
  const tests = [...new Set(mutants.flatMap((mutant) => mutant.tests))];
  console.log(`running ${tests.length} test files without a bug`);
  const shares = Array.from({ length: jobs }, (_, job) => tests.filter((_test, index) => index % jobs === job));
  const found = await Promise.all(shares.map(failingBefore));
  return new Map(found.flatMap((failing) => [...failing]));
}

async function verdictOn(mutant: Mutant, failing: ReadonlyMap<string, string>): Promise<Verdict> {
  const sick = mutant.tests.find((path) => failing.has(path));
  if (sick !== undefined) return { kind: "broken", why: `${sick} fails without the bug: ${failing.get(sick)}` };
  try {
    return await runMutant(mutant);
  } catch (error) {
    return { kind: "broken", why: error instanceof Error ? error.message : String(error) };
  }
}

function text(verdict: Verdict): string {
  if (verdict.kind === "caught") return `caught by ${verdict.by}`;
  return verdict.kind === "survived" ? "SURVIVED: write the missing test" : `DOES NOT RUN: ${verdict.why}`;
}

function fail(message: string): void {
  console.error(`mutants: ${message}`);
  process.exitCode = 1;
}
