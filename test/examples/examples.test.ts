/**
 * All code that a reader may copy runs: `examples/`, and the TypeScript in README.md and `docs/`, against the built
 * package.
 */
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ROOT, runProgram } from "../repo/program.ts";
import { codeBlocks, saidOutput } from "./code-block.ts";
import { PAGES } from "./documentation.ts";
import { TSC, UserProject } from "./user-project.ts";

const examples = readdirSync(join(ROOT, "examples")).filter((name) => name.endsWith(".ts"));
const blocks = PAGES.flatMap((page) => codeBlocks(page, readFileSync(join(ROOT, page), "utf8")));
const programs = [
  ...examples.map((name) => ({ place: `examples/${name}`, code: readFileSync(join(ROOT, "examples", name), "utf8") })),
  ...blocks.filter(({ use }) => use.kind === "program"),
].map((program) => ({ ...program, file: fileOf(program.place) }));
/** Files of pages are run by `pages.test.ts`; here they are type-checked, those of a page beside each other. */
const files = blocks.flatMap(({ page, use, code }) =>
  use.kind === "file" && use.name.endsWith(".ts") ? [{ file: join("pages", page, use.name), code }] : [],
);

function fileOf(place: string): string {
  return `${place.replaceAll(/\W/g, "-")}.ts`;
}

let project: UserProject;
beforeAll(async () => {
  project = await UserProject.build();
  for (const { file, code } of [...programs, ...files]) project.write(file, code);
});
afterAll(() => project?.[Symbol.dispose]());

describe("examples", () => {
  test("[K7] there are some, in examples/ and in the README", () => {
    expect(examples.length).toBeGreaterThan(3);
    expect(programs.map(({ place }) => place)).toContainEqual(expect.stringMatching(/^README\.md:/));
  });

  test("[K7] all examples compile against the built package", async () => {
    expect(await project.check()).toEqual({ code: 0, stdout: "", stderr: "" });
  });

  test.for(programs)("[K7] $place runs and prints its last comment", async ({ place, file, code }) => {
    const ended = await project.run(file);
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    const said = saidOutput(code);
    if (place.startsWith("examples/")) expect(said, "ends with a comment // prints:").toBeDefined();
    if (said !== undefined) expect(ended.stdout).toBe(said);
  });

  test("[K7] the program of README.md prints the lines that the page names", async () => {
    const [, sentence] = readFileSync(join(ROOT, "README.md"), "utf8").match(/^It prints (.*)$/m) ?? [];
    const named = [...(sentence ?? "").matchAll(/`([^`]+)`/g)].map(([, line]) => line as string);
    expect(named.length).toBe(4);
    const { file } = programs.find(({ place }) => place.startsWith("README.md:")) as (typeof programs)[number];
    // Elsewhere than above, where a run has left its store.
    const folder = join(project.folder, "readme");
    mkdirSync(folder);
    const { stdout } = await runProgram(process.execPath, [join(project.folder, file)], { cwd: folder });
    expect(stdout.trimEnd().split("\n").sort()).toEqual(named.sort());
    expect(stdout.split("\n")[0]).toBe("sum is now 0");
  });

  /** Programs that need only the core run on every engine. `open` loads the kernel, which needs Node. */
  const portable = programs.filter(
    ({ code }) => !/from "(?:node:|millrace\/(?:client|extensions|kernel|node|sqlite))|\bawait open\(/.test(code),
  );
  test.for(portable)("[K7] [K8] $place prints the same on Deno and on Bun", async ({ file, code }) => {
    for (const runtime of ["deno", "bun"] as const) {
      const ended = await project.runOn(runtime, file);
      expect({ runtime, ...ended }).toEqual({ runtime, code: 0, stdout: saidOutput(code), stderr: "" });
    }
  });

  test("[K7] blocks and said output are found as they are written", () => {
    const text = "text\n```ts\nfoo();\n// prints:\n// a\n//\n//  b\n```\n```\nnot this\n```\n```ts app.ts\n```\n";
    const [block, other, file] = codeBlocks("page.md", text);
    expect([block, other, file].map((found) => found?.use)).toEqual([
      { kind: "program" },
      { kind: "text" },
      { kind: "file", name: "app.ts" },
    ]);
    expect(block?.place).toBe("page.md:2");
    expect(saidOutput(block!.code)).toBe("a\n\n b\n");
    expect(saidOutput("foo();\n")).toBeUndefined();
  });
});

describe("the package", () => {
  test("[K6] every exported path is there after a build, with its types", async () => {
    const { exports, bin } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const paths = [exports, bin].flatMap(pathsIn);
    expect(paths.length).toBeGreaterThan(6);
    for (const path of paths) expect(readFileSync(join(project.packageFolder, path)).length, path).toBeGreaterThan(0);
  });

  test("[K6] every entry point loads, and its exports are those of the source", async () => {
    const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    for (const [entry, target] of Object.entries<{ default: string }>(exports)) {
      if (entry === "./package.json") continue;
      const name = join("millrace", entry);
      project.write("load.mjs", `console.log(JSON.stringify(Object.keys(await import(${JSON.stringify(name)}))))`);
      const ended = await project.run("load.mjs");
      expect(ended, name).toMatchObject({ code: 0, stderr: "" });
      const source = target.default.replace(/^\.\/dist/, "src").replace(/js$/, "ts");
      expect(JSON.parse(ended.stdout)).toEqual(Object.keys(await import(join(ROOT, source))).sort());
    }
  });

  test("[K6] the installed command runs", async () => {
    const ended = await project.run(join("node_modules", "millrace", "bin", "millrace.mjs"), "--version");
    expect(ended).toEqual({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), stderr: "" });
  });

  test("[K46] the app that it makes compiles with its settings, its test passes, and a program that uses Node compiles", async () => {
    const made = await project.run(join("node_modules", "millrace", "bin", "millrace.mjs"), "init", "app");
    expect(made).toMatchObject({ code: 0, stderr: "" });
    project.write(join("app", "program.ts"), 'import { pid } from "node:process";\nconsole.log(pid, process.pid);\n');
    const { scripts, devDependencies } = JSON.parse(readFileSync(join(project.folder, "app", "package.json"), "utf8"));
    expect(scripts.types).toBe("tsc --noEmit");
    expect(Object.keys(devDependencies)).toEqual(["@types/node", "node", "typescript"]);
    const ended = await runProgram(TSC, ["--noEmit"], { cwd: join(project.folder, "app") });
    expect(ended).toEqual({ code: 0, stdout: "", stderr: "" });
    const tested = await runProgram(process.execPath, ["--test"], { cwd: join(project.folder, "app") });
    expect(tested.stderr + tested.stdout).toMatch(/pass 1\n/);
    expect(tested.code).toBe(0);
  });
});

function pathsIn(value: unknown): string[] {
  return typeof value === "string" ? [value] : Object.values(value as object).flatMap(pathsIn);
}
