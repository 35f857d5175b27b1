/**
 * `npm run mutants`: plants one bug at a time and says which of them no test noticed. `npm run mutants -- NAME ...` runs those with a name that
 * contains a word, `--list` lists them, `--jobs N` runs N beside each other. Ends with 1 if one survived or does not run.
 */
import { MUTANTS } from "./list.ts";
import type { Mutant } from "./mutant.ts";
import { failingBefore, runMutant, type Verdict } from "./mutant-run.ts";

const JOBS = 2;

const args = process.argv.slice(2);
const at = args.indexOf("--jobs");
const jobs = at < 0 ? JOBS : Number(args[at + 1]);
const words = args.filter((arg, index) => !arg.startsWith("--") && (at < 0 || index !== at + 1));
const chosen = MUTANTS.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));

if (!Number.isInteger(jobs) || jobs < 1) fail("--jobs takes a number of 1 or more");
else if (chosen.length === 0) fail(`no mutant's name contains ${words.join(" or ")}; --list lists them`);
else if (args.includes("--list")) for (const { name, breaks, file } of chosen) console.log(`${breaks} ${name} ${file}`);
else await runAll(chosen);

async function runAll(mutants: readonly Mutant[]): Promise<void> {
  const failing = await healthOf(mutants);
  const open = [...mutants];
  const missed: string[] = [];
  let done = 0;
  const work = async (): Promise<void> => {
    for (let mutant = open.shift(); mutant !== undefined; mutant = open.shift()) {
      const verdict = await verdictOn(mutant, failing);
      if (verdict.kind !== "caught") missed.push(mutant.name);
      console.log(
        `${String(++done).padStart(3)} of ${mutants.length}  ${mutant.breaks} ${mutant.name}: ${text(verdict)}`,
      );
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  console.log(`counted: ${mutants.length - missed.length} planted bugs caught`);
  if (missed.length > 0) fail(`not caught: ${missed.join(", ")}`);
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
