/**
 * The runner of the tests: the form of a run, the environment of its steps, its counts. The steps themselves are not
 * run here.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { environmentOf, formOf, MUTANTS_MINUTES, stepsOf } from "../../scripts/check-steps.ts";
import { RunCounts } from "../../scripts/run-counts.ts";
import { type LongPart, Rounds, rounds, roundsMax } from "../portable/long-run.ts";
import { ROOT, runProgram } from "./program.ts";

const CHECK = "scripts/check.ts";

async function planOf(args: readonly string[], env: Readonly<Record<string, string>>): Promise<string[]> {
  const { code, stdout } = await runProgram(process.execPath, [CHECK, "--plan", ...args], { cwd: ROOT, env });
  expect(code).toBe(0);
  return stdout.trimEnd().split("\n");
}

function testFiles(): readonly string[] {
  const names = readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(".test.ts")).map((name) => join(ROOT, "test", name));
}

describe("the form of a run", () => {
  test.for(["1", "", "0"])("[K111] npm test is short where its environment has TEST_LONG=%j", async (inherited) => {
    const plan = await planOf([], { TEST_LONG: inherited, TEST_WHOLE: inherited });
    expect(plan.filter((step) => !step.endsWith(": short"))).toEqual([]);
    expect(plan).toContain("tests on Node: short");
    const { TEST_LONG, TEST_WHOLE } = environmentOf("short", { TEST_LONG: inherited, TEST_WHOLE: inherited }, false);
    expect([TEST_LONG, TEST_WHOLE]).toEqual([undefined, undefined]);
  });

  test("[K110] test:long runs the tests on Node in the long form, and all else in the short one", async () => {
    const plan = await planOf(["--long"], {});
    expect(plan.filter((step) => step.endsWith(": long"))).toEqual(["tests on Node: long"]);
    expect(environmentOf("long", {}, false)).toMatchObject({ TEST_LONG: "1" });
    expect(environmentOf("long", { TEST_WHOLE: "1" }, false)["TEST_WHOLE"]).toBeUndefined();
  });

  test("[K110] budgets are removed by --whole beside --long; alone it makes no part long", () => {
    expect([formOf([]), formOf(["--whole"]), formOf(["--long"]), formOf(["--long", "--whole"])]).toEqual([
      "short",
      "short",
      "long",
      "whole",
    ]);
    expect(environmentOf("whole", {}, false)).toMatchObject({ TEST_LONG: "1", TEST_WHOLE: "1" });
  });
});

describe("the budget of a long run", () => {
  test("[K110] all budgets together end a long run within 50 minutes on two cores", () => {
    const parts = testFiles().flatMap((path) => [
      ...readFileSync(path, "utf8").matchAll(/const [A-Z]+: LongPart = \{.* minutes: ([\d.]+) \}/g),
    ]);
    const minutes = parts.map(([, text]) => Number(text));
    expect(minutes.length).toBeGreaterThan(20);
    // Vitest runs two files at a time. The short form of all other tests and the other steps take 10 minutes.
    const onNode = minutes.reduce((sum, part) => sum + part, 0) / 2;
    expect(onNode + MUTANTS_MINUTES + 10).toBeLessThanOrEqual(50);
  });

  test("[K110] planted bugs have a budget in the long form alone", () => {
    const commandOf = (form: "long" | "whole") =>
      stepsOf({ form, report: "report.json", portable: [] }).find(({ name }) => name === "planted bugs")?.command;
    expect(commandOf("long")).toEqual(["node", "test/mutants/run.ts", "--minutes", String(MUTANTS_MINUTES)]);
    expect(commandOf("whole")).toEqual(["node", "test/mutants/run.ts"]);
  });
});

describe("the budget of a long part", () => {
  const part: LongPart = { name: "sample", short: 3, long: 10, minutes: 1 };

  test("[K110] a part makes all rounds of its form if there is time", () => {
    expect([...rounds(part)].length).toBe(roundsMax(part));
  });

  test("[K110] a long part ends with its minutes, and never before the rounds of the short form", async () => {
    const program = `
      import { Rounds } from ${JSON.stringify(`${ROOT}/test/portable/long-run.ts`)};
      const part = ${JSON.stringify(part)};
      const made = (msPerRound) => {
        let now = 0;
        let done = 0;
        const budget = new Rounds(part, () => now);
        for (; budget.goesOn(done); done++) now += msPerRound;
        return done;
      };
      console.log(JSON.stringify([made(1), made(10_000), made(60_000)]));`;
    const made = async (env: Readonly<Record<string, string>>) => {
      const { stdout } = await runProgram(process.execPath, ["--input-type=module", "-e", program], { env });
      return JSON.parse(stdout.trimEnd().split("\n").at(-1) as string);
    };
    expect(await made({ TEST_LONG: "1", TEST_WHOLE: "0" })).toEqual([10, 6, 3]);
    expect(await made({ TEST_LONG: "1", TEST_WHOLE: "1" })).toEqual([10, 10, 10]);
    expect(await made({ TEST_LONG: "" })).toEqual([3, 3, 3]);
  });

  test("[K110] a part knows how many rounds it has made", () => {
    const budget = new Rounds(part);
    budget.goesOn(2);
    expect(budget.done).toBe(2);
  });
});

describe("the counts of a run", () => {
  test("[K112] counts of one name are added up over all steps, with and without colours", () => {
    const counts = new RunCounts();
    counts.add("counted: 20 kills of a clone\nnoise\ncounted: 5000 disks rebuilt\n");
    counts.add("\u001b[90mcounted: 5 kills of a clone\u001b[39m\n");
    expect(counts.lines()).toEqual(["     5,000 disks rebuilt", "        25 kills of a clone"]);
  });

  test("[K113] a number of README.md that the run has not reached is named", () => {
    const counts = new RunCounts();
    counts.add("counted: 5100 disks rebuilt\ncounted: 25 kills of a clone\n");
    expect(counts.excessesOf("5,000 disks rebuilt, 25 kills of a clone, 9 lives")).toEqual([]);
    expect(counts.excessesOf("| 6,180 disks rebuilt | 26 kills of a clone |")).toEqual([
      "README.md says 6,180 disks rebuilt; this run counted 5,100",
      "README.md says 26 kills of a clone; this run counted 25",
    ]);
  });
});
