/**
 * The package as npm gives it to users: packed, installed in an empty project without a network, run, and looked at by
 * the usual tools.
 */
import { copyFileSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { join } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { COMPILER_OPTIONS, TSC, UserProject } from "../examples/user-project.ts";
import { KernelProcess } from "../kernel/kernel-process.ts";
import { ROOT, runProgram, scratchFolder } from "../repo/program.ts";

/**
 * Resolutions that an ESM-only package does not serve: `require` of old Nodes, and `exports` that are not read at all.
 */
const NOT_SERVED: ReadonlySet<string> = new Set(["node10", "node16-cjs"]);

/** Uses each entry point that an app's program needs. */
const USER_PROGRAM = `import { app, index, on, open, type } from "millrace";
import { connect } from "millrace/client";
import { httpApp } from "millrace/http";
import { testKernel } from "millrace/testing";

export const shop = app("shop", ({ cell, collection, event }) => {
  const prices = cell<number[]>("prices", []);
  const tasks = collection("tasks", type<{ due: string }>(), { indexes: [index("by_due", (task) => [task.due])] });
  const placed = event("Order.Placed", type<{ price: number }>());
  return {
    commands: {
      "Shop.Order": (order: { price: number }, tx) => {
        tx.update(prices, (all) => [...all, order.price]);
        tx.emit(placed, order);
        return { orders: tx.get(prices).length };
      },
    },
    queries: { "Shop.Due": () => tasks.page({ index: "by_due" }).elements.length },
    on: { mail: on(placed, ({ price }) => console.log(price), { retry: 5 }) },
  };
});

await using kernel = await open(shop, { file: "shop.db" });
export const { orders }: { orders: number } = await kernel.command("Shop.Order", { price: 30 });
// @ts-expect-error A query is no command.
await kernel.command("Shop.Due");
export const routes = httpApp(kernel.kernel);
await using client = await connect<typeof shop>({ path: "kernel.sock" });
export const due: number = await client.query("Shop.Due");
await using simulated = await testKernel(shop);
await simulated.advance("5 min");
`;

let project: UserProject;
let tarball: string;
beforeAll(async () => {
  project = await UserProject.build();
  copyFileSync(join(ROOT, "CHANGELOG.md"), join(project.packageFolder, "CHANGELOG.md"));
  tarball = await pack(project.packageFolder, project.folder);
});
afterAll(() => project?.[Symbol.dispose]());

/** Packs a folder as it stands; resolves with the file. */
async function pack(folder: string, into: string): Promise<string> {
  // The build that `prepack` makes was made by the project already, elsewhere than in the clone.
  const args = ["pack", "--ignore-scripts", "--json", "--pack-destination", into];
  const { code, stdout, stderr } = await runProgram("npm", args, { cwd: folder });
  if (code !== 0) throw new Error(`npm pack ended with ${code}: ${stderr}`);
  const [{ filename }] = JSON.parse(stdout);
  return join(into, filename);
}

/** An empty project with the tarball in it, and its dependencies from where this repository has them. */
async function installed(): Promise<string> {
  const folder = scratchFolder();
  const { dependencies = {} } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const names = Object.keys(dependencies);
  const packed = await Promise.all(names.map((name) => pack(join(ROOT, "node_modules", name), folder)));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "empty", private: true, type: "module" }));
  const args = ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", tarball, ...packed];
  const { code, stderr } = await runProgram("npm", args, { cwd: folder });
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  expect(
    readdirSync(join(folder, "node_modules"))
      .filter((name) => !name.startsWith("."))
      .sort(),
  ).toEqual([...new Set(["millrace", ...names.map((name) => name.split("/")[0] as string)])].sort());
  return folder;
}

describe("the packed package", () => {
  test("[K48] the package installs in an empty project with only its dependencies, and its command creates and runs an app", async () => {
    const folder = await installed();
    const command = join(folder, "node_modules", "millrace", "bin", "millrace.mjs");
    const made = await runProgram(process.execPath, [command, "init", "app"], { cwd: folder });
    expect(made).toMatchObject({ code: 0, stderr: "" });
    const kernel = await KernelProcess.start(folder, join("app", "app.ts"), command);
    await using client = await kernel.connect();
    expect(await client.command("Greeter.Hello", { name: "Ada" })).toEqual({ text: "Hello Ada" });
    expect(await client.query("Greeter.Summary", null)).toBe("1 greeted");
    const doctor = await runProgram(process.execPath, [command, "doctor"], { cwd: folder });
    expect(doctor).toMatchObject({ code: 0, stderr: "" });
    expect(await kernel.stop()).toBe(0);
  });

  test("[K48] types of the installed tarball compile in a user's project without skipLibCheck", async () => {
    const folder = await installed();
    for (const name of ["@types", "undici-types"])
      symlinkSync(join(ROOT, "node_modules", name), join(folder, "node_modules", name));
    const compilerOptions = { ...COMPILER_OPTIONS, skipLibCheck: false };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["user.ts"] }));
    writeFileSync(join(folder, "user.ts"), USER_PROGRAM);
    expect(await runProgram(TSC, ["-p", "tsconfig.json"], { cwd: folder })).toMatchObject({ code: 0, stdout: "" });
  });

  test("[K48] the package has no syntax that only the newest engines know", () => {
    const folder = join(project.packageFolder, "dist");
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".js"));
    expect(files.length).toBeGreaterThan(7);
    // `init` has programs in template texts.
    const codeOf = (file: string) => readFileSync(join(folder, file), "utf8").replaceAll(/`[^`]*`/g, "");
    const tooNew = files.filter((file) => /^\s*(?:await )?using \w+ =/m.test(codeOf(file)));
    expect(tooNew).toEqual([]);
  });

  test.each([
    ...["index.js", "testing.js", "signals.js", "worker.js", "bus/index.js", "loop/index.js", "message/index.js"],
    "store/index.js",
  ])("[K150] %s and all that it imports know no Node", (entry) => {
    const met = new Set<string>();
    const visit = (file: string): void => {
      if (met.has(file)) return;
      met.add(file);
      const text = readFileSync(file, "utf8");
      for (const [, name = ""] of text.matchAll(/^(?:import|export)\b[^;]*?from "([^"]+)";/gm)) {
        expect(`${file} imports ${name}`).not.toContain("imports node:");
        if (name.startsWith(".")) visit(join(file, "..", name));
      }
    };
    visit(join(project.packageFolder, "dist", entry));
    expect(met.size).toBeGreaterThan(5);
  });

  test("[K150] types of the entry points without Node compile without Node's types, with the language of a year ago", async () => {
    const compilerOptions = {
      ...{ target: "es2024", lib: ["es2024", "dom"], module: "nodenext", types: [], strict: true, noEmit: true },
    };
    project.write("tsconfig.browser.json", JSON.stringify({ compilerOptions, files: ["browser.ts"] }));
    project.write(
      "browser.ts",
      'import { memoryStore } from "millrace/store";\nimport { simulatedHost } from "millrace/testing";\n' +
        "export const store: AsyncDisposable = memoryStore({ host: simulatedHost(1) });\n",
    );
    const compiled = await runProgram(TSC, ["-p", "tsconfig.browser.json"], { cwd: project.folder });
    expect(compiled).toMatchObject({ code: 0, stdout: "" });
  });

  test("[K61] its maps lead from a field that was made plain to the line of the sources that has it", () => {
    const folder = join(project.packageFolder, "dist", "chunks");
    let fields = 0;
    for (const file of readdirSync(folder).filter((name) => name.endsWith(".js"))) {
      const code = readFileSync(join(folder, file), "utf8");
      // The bundler's own helpers have no source, and no map.
      if (!code.includes("//# sourceMappingURL=")) continue;
      const content = JSON.parse(readFileSync(join(folder, `${file}.map`), "utf8"));
      const map = new SourceMap(content);
      for (const [at, text] of code.split("\n").entries()) {
        const found = /this\.\$[A-Za-z]+_(\w+)/.exec(text);
        if (found === null) continue;
        const entry = map.findEntry(at, found.index + "this.".length);
        if (!("originalSource" in entry)) throw new Error(`${file}:${at + 1} leads nowhere`);
        const source: string = content.sourcesContent[content.sources.indexOf(entry.originalSource)];
        expect([text, source.split("\n")[entry.originalLine]]).toEqual([text, expect.stringContaining(`#${found[1]}`)]);
        fields++;
      }
    }
    expect(fields).toBeGreaterThan(1000);
  });

  test("[K48] the package has the build, the command and the papers, and no other files", async () => {
    const files = createPackageFromTarballData(readFileSync(tarball)).listFiles();
    const outside = files.filter((file) => !/^\/node_modules\/millrace\/(?:dist|bin)\//.test(file));
    expect(outside.map((file) => file.split("/").at(-1)).sort()).toEqual([
      "CHANGELOG.md",
      "LICENSE",
      "README.md",
      "package.json",
    ]);
    expect(files.filter((file) => /\.(?:test|tsbuildinfo)/.test(file))).toEqual([]);
  });

  test("[K48] publint reports no problem", async () => {
    const data = readFileSync(tarball);
    const tarballData = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength) as ArrayBuffer;
    const { messages, pkg } = await publint({ pack: { tarball: tarballData }, strict: true });
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
  });

  test("[K48] attw reports no problem for importers of an ESM package", async () => {
    const result = await checkPackage(createPackageFromTarballData(readFileSync(tarball)));
    if (!result.types) throw new Error("attw sees no types in the package");
    const { entrypoints, problems } = result;
    const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    expect(Object.keys(entrypoints).sort()).toEqual(Object.keys(exports).sort());
    const served = problems.filter(
      (problem) => !("resolutionKind" in problem) || !NOT_SERVED.has(problem.resolutionKind),
    );
    expect(served).toEqual([]);
  });
});
