/** Each entry point by itself: its size, and the modules that a program that uses it gets. */
import { readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { gzipSync } from "node:zlib";
import { build, type OutputChunk } from "rolldown";
import { describe, expect, test } from "vitest";
import * as cloudevents from "../../src/cloudevents.ts";
import * as index from "../../src/index.ts";
import * as message from "../../src/message/index.ts";
import { ROOT, runProgram, scratchFolder } from "../repo/program.ts";

/**
 * The most that an entry point may take, in KB: minified, and compressed by gzip. Parts that are loaded on use do not
 * count.
 */
const SIZES: Readonly<Record<string, readonly [minified: number, gzip: number]>> = {
  ".": [137, 48],
  "./bus": [175, 58],
  "./client": [40, 16],
  "./cloudevents": [20, 8],
  "./extensions": [24, 9],
  "./http": [90, 33],
  "./kernel": [620, 200],
  "./loop": [225, 74],
  "./message": [38, 15],
  "./node": [765, 245],
  "./postgres": [160, 52],
  "./react": [2, 1.5],
  "./signals": [310, 102],
  "./sqlite": [175, 58],
  "./store": [120, 40],
  "./testing": [345, 114],
  "./worker": [43, 16],
};

/** The same of entry points that have a file of their own for browsers. */
const BROWSER_SIZES: Readonly<Record<string, readonly [minified: number, gzip: number]>> = { "./client": [24, 9] };

const { exports, dependencies, peerDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const entriesOf = (condition: "browser" | "default") =>
  Object.entries<{ browser?: string; default?: string }>(exports).flatMap(([path, { [condition]: file }]) =>
    file === undefined ? [] : [[path, file.replace("./dist/", "src/").replace(/js$/, "ts")] as const],
  );
const ENTRIES = entriesOf("default");
const BROWSER_ENTRIES = entriesOf("browser");

/** The entry chunk, and those that it imports before it runs. */
async function bundled(input: string, platform: "browser" | "node", file?: string): Promise<readonly OutputChunk[]> {
  // A program that is written to a file has its dependencies in it.
  const external = [/^node:/, ...(file === undefined ? Object.keys({ ...dependencies, ...peerDependencies }) : [])];
  const { output } = await build({
    ...{ input, cwd: ROOT, platform, external, logLevel: "silent", write: file !== undefined },
    output: { minify: true, ...(file === undefined ? {} : { file }) },
  });
  const chunks = output.filter((one): one is OutputChunk => one.type === "chunk");
  const byName = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
  const needed = new Set(chunks.filter(({ isEntry }) => isEntry));
  for (const { imports } of needed)
    for (const name of imports) {
      const chunk = byName.get(name);
      if (chunk !== undefined) needed.add(chunk);
    }
  return [...needed];
}

function checkSize(path: string, chunks: readonly OutputChunk[], max: readonly [number, number] = [0, 0]): void {
  const code = chunks.map((chunk) => chunk.code).join("\n");
  expect(code.length / 1_000, `minified size of ${path}`).toBeLessThanOrEqual(max[0]);
  expect(gzipSync(code).length / 1_000, `gzip size of ${path}`).toBeLessThanOrEqual(max[1]);
}

describe("entry points", () => {
  test.each(ENTRIES)("[K143] %s stays within its size", async (path, file) => {
    checkSize(path, await bundled(file, "node"), SIZES[path]);
  });

  test.each(BROWSER_ENTRIES)("[K143] %s in a browser stays within its size, and knows no Node", async (path, file) => {
    const chunks = await bundled(file, "browser");
    checkSize(path, chunks, BROWSER_SIZES[path]);
    expect(chunks.flatMap(({ imports }) => imports)).toEqual([]);
  });

  test("[K144] a browser program with signals has no bus, loop or journal in it, and runs", async () => {
    const folder = scratchFolder();
    const program = join(folder, "program.ts");
    writeFileSync(
      program,
      `import { documentStore, Space } from ${JSON.stringify(join(ROOT, "src", "signals.ts"))};
const space = await Space.open({ store: documentStore(), name: "page" });
const price = space.cell("price", 3);
const double = space.computed("double", () => price.get() * 2);
space.effect(() => double.get(), (value) => console.log(value));
await space.settled();
price.set(21);
await space.settled();
await space.close();
`,
    );
    const file = join(folder, "bundle.mjs");
    const chunks = await bundled(program, "browser", file);
    const modules = chunks.flatMap((chunk) =>
      Object.entries(chunk.modules)
        .filter(([, { renderedLength }]) => renderedLength > 0)
        .map(([module]) => relative(join(ROOT, "src"), module)),
    );
    expect(modules).toContain(join("cells", "space.ts"));
    const rooms = /^(?:adapters|app|bus|cli|client|extensions|kernel|loop)\b/;
    const tables = /^store.(?:sqlite|memory.(?:journal|due|lease|consumer))/;
    expect(modules.filter((module) => rooms.test(module) || tables.test(module))).toEqual([]);
    expect(chunks.flatMap(({ imports }) => imports)).toEqual([]);
    const { code, stdout, stderr } = await runProgram(process.execPath, [file], { cwd: folder });
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "6\n42\n", stderr: "" });
  });

  test("[K173] the index exports the everyday API alone: its values", () => {
    expect(Object.keys(index).sort()).toEqual([
      ...["BootError", "Failure", "MillraceError", "app", "command", "cron"],
      ...["index", "isFailure", "on", "open", "query", "type", "worker"],
    ]);
  });

  test("[K145] CloudEvents are in millrace/cloudevents alone", () => {
    expect(Object.keys(cloudevents).sort()).toEqual(["fromCloudEvent", "toCloudEvent"]);
    const others = [...Object.keys(index), ...Object.keys(message)];
    expect(others.filter((name) => name.includes("CloudEvent"))).toEqual([]);
  });
});
