/**
 * The steps of `npm test` and `npm run test:long`, and the environment of each. `scripts/check.ts` runs them.
 *
 * The form of a run comes from the command line alone. A `TEST_LONG` in the environment is removed, because the long
 * run starts `npm test` in a clone, and that one must be short. SPEC: K110, K111.
 */
import { join } from "node:path";

/** `whole` is the long form without budgets: it takes hours. */
export type Form = "short" | "long" | "whole";

/** Planted bugs of the long form. The tests on Node have budgets of their own (`test/portable/long-run.ts`). */
export const MUTANTS_MINUTES = 16;

export interface Step {
  readonly name: string;
  readonly command: readonly string[];
  /**
   * The form of the tests in this step. Deno and Bun always run the short form: the long one is about time, not about
   * runtimes.
   */
  readonly form: Form;
  /** How the step reports its tests, if it runs any. */
  readonly counts?: "vitest" | "plain";
}

export interface StepsSetting {
  readonly form: Form;
  /** Where Vitest writes its report. */
  readonly report: string;
  /** Tests that run on Deno and Bun too. */
  readonly portable: readonly string[];
}

export function formOf(args: readonly string[]): Form {
  if (!args.includes("--long")) return "short";
  return args.includes("--whole") ? "whole" : "long";
}

export function stepsOf({ form, report, portable }: StepsSetting): readonly Step[] {
  const vitest = ["vitest", "run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const runner = join("test", "portable", "run.ts");
  const checks: readonly Step[] = [
    { name: "types", command: ["tsc", "-p", "tsconfig.json"], form: "short" },
    { name: "types of the core, without Node", command: ["tsc", "-p", "tsconfig.core.json"], form: "short" },
    { name: "lint and format", command: ["biome", "check", "--error-on-warnings", "."], form: "short" },
    { name: "build: types", command: ["tsc", "-p", "tsconfig.build.json"], form: "short" },
    { name: "build: bundles", command: ["node", "scripts/bundle.ts"], form: "short" },
    { name: "tests on Node", command: vitest, form, counts: "vitest" },
    {
      name: "core tests on Deno",
      command: ["deno", "run", "-A", runner, ...portable],
      form: "short",
      counts: "plain",
    },
    { name: "core tests on Bun", command: ["bun", runner, ...portable], form: "short", counts: "plain" },
  ];
  if (form === "short") return checks;
  const budget = form === "long" ? ["--minutes", String(MUTANTS_MINUTES)] : [];
  return [...checks, { name: "planted bugs", command: ["node", "test/mutants/run.ts", ...budget], form: "short" }];
}

/** The steps write to a pipe, so they are told whether the reader of this run wants colours. */
export function environmentOf(
  form: Form,
  inherited: Readonly<NodeJS.ProcessEnv>,
  isTerminal: boolean,
): NodeJS.ProcessEnv {
  const { NO_COLOR, FORCE_COLOR, TEST_LONG, TEST_WHOLE, ...rest } = inherited;
  const hasColours = FORCE_COLOR !== undefined || (isTerminal && !NO_COLOR);
  return {
    ...rest,
    ...(form === "short" ? {} : { TEST_LONG: "1" }),
    ...(form === "whole" ? { TEST_WHOLE: "1" } : {}),
    ...(hasColours ? { FORCE_COLOR: FORCE_COLOR ?? "1" } : { NO_COLOR: "1" }),
  };
}
