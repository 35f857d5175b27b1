/**
 * The order service of `examples/`, as a user of the built package would run it: in one process, called from another.
 */
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { shop } from "../../examples/order-service/app.ts";
import { type Connected, connect } from "../../src/client/index.ts";
import { KernelProcess } from "../kernel/kernel-process.ts";
import { ROOT, runProgram, scratchFolder } from "../repo/program.ts";
import { codeBlocks } from "./code-block.ts";
import { UserProject } from "./user-project.ts";

/** Lines without blanks and comments. */
function lineCount(code: string): number {
  return code.split("\n").filter((line) => !/^\s*(?:\/\/.*)?$/.test(line)).length;
}

const source = (name: string) => readFileSync(join(ROOT, "examples", "order-service", name), "utf8");

describe("lengths", () => {
  test("[K7] the order service takes at most 50 lines, its client at most 28", () => {
    expect(lineCount(source("app.ts"))).toBeLessThanOrEqual(50);
    expect(lineCount(source("client.ts"))).toBeLessThanOrEqual(28);
    expect(lineCount("a\n\n  // b\nc // d\n")).toBe(2);
  });

  test("[K7] the first program of the README takes at most 23 lines", () => {
    const [first] = codeBlocks("README.md", readFileSync(join(ROOT, "README.md"), "utf8"));
    expect(first?.use.kind).toBe("program");
    expect(lineCount(first?.code ?? "")).toBeLessThanOrEqual(23);
  });
});

describe("the order service", () => {
  let project: UserProject;
  beforeAll(async () => {
    project = await UserProject.build();
    cpSync(join(ROOT, "examples", "order-service"), join(project.folder, "order-service"), { recursive: true });
    project.write("check.ts", 'import "./order-service/app.ts";\nimport "./order-service/client.ts";\n');
  });
  afterAll(() => project?.[Symbol.dispose]());

  test("[K7] compiles against the built package", async () => {
    expect(await project.check()).toEqual({ code: 0, stdout: "", stderr: "" });
  });

  test("[K7] [A18] [A31] takes orders from another process, pays, and makes up for a payment that fails", async () => {
    const cwd = scratchFolder();
    const main = join(project.packageFolder, "bin", "millrace.mjs");
    const kernel = await KernelProcess.start(cwd, join(project.folder, "order-service", "app.ts"), main);
    const client = await runProgram(process.execPath, [join(project.folder, "order-service", "client.ts")], { cwd });
    expect(client).toEqual({
      code: 0,
      stderr: "",
      stdout: [
        ...["ordered a lamp, 1 left", "ordered a desk, 0 left", "ordered a lamp, 0 left", "sold out: lamp"],
        ...["paid 2, income 42", "the first order: lamp", ""],
      ].join("\n"),
    });
    const shopOf: Connected<typeof shop> = await connect({ path: kernel.socketPath });
    // The desk is back in stock once its payment has failed for the last time.
    for await (const stock of shopOf.live("Shop.Stock")) if (stock["desk"] === 1) break;
    expect(await shopOf.query("Shop.Totals")).toEqual({ orders: 3, paid: 2, income: 42 });
    await shopOf.close();
  });
});
