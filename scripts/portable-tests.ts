/**
 * The tests that also run on Deno and Bun: a file, or a suite that it calls, takes `describe`, `expect` and `test` from
 * `#test`, and imports neither Vitest nor Node. So there is no list to maintain.
 *
 * Two mistakes are errors: a file that imports `#test` and reaches Vitest or Node, and a test of a core room that does
 * not say why it runs on Node alone.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

/** Folders of `test/` with tests of the core, which runs on every JavaScript engine. */
const CORE_ROOMS = ["message", "host", "store/core", "scheduler", "cells", "bus", "loop"];

/** Tests of the core that only Node can run, with the reason. */
const NODE_ONLY: Readonly<Record<string, string>> = {
  "host/process-end.test.ts": "starts whole Node processes",
};

export interface PortableTests {
  /** Absolute paths. */
  readonly files: readonly string[];
  /** One sentence for each file that is neither one thing nor the other. */
  readonly problems: readonly string[];
}

export function findPortableTests(testFolder: string): PortableTests {
  const files: string[] = [];
  const problems: string[] = [];
  for (const path of testFiles(testFolder)) {
    const name = relative(testFolder, path).split(sep).join("/");
    const reached = reach(path);
    const own = importsOf(path);
    if (reached.portable && reached.nodeOnly === undefined) files.push(path);
    else if (own.includes("#test")) problems.push(`test/${name} imports "#test", but reaches ${reached.nodeOnly}`);
    else if (isCore(name) && !(name in NODE_ONLY)) {
      problems.push(`test/${name} is a test of the core: import from "#test", or name it in scripts/portable-tests.ts`);
    }
  }
  return { files, problems };
}

interface Reach {
  /** Whether `#test` is reached. */
  readonly portable: boolean;
  /** The first import of Node or Vitest: `"node:fs" in test/crash/shim.ts`. */
  readonly nodeOnly: string | undefined;
}

/** Follows imports within the repository, those of packages no further. */
function reach(start: string): Reach {
  const seen = new Set([start]);
  let portable = false;
  let nodeOnly: string | undefined;
  for (const path of seen) {
    for (const specifier of importsOf(path)) {
      if (/^\.\.?\/.*\.ts$/.test(specifier)) seen.add(join(dirname(path), specifier));
      else if (specifier === "#test") portable = true;
      else if (specifier === "vitest" || specifier.startsWith("node:")) {
        nodeOnly ??= `"${specifier}" in ${relative(process.cwd(), path)}`;
      }
    }
  }
  return { portable, nodeOnly };
}

/** Imports of types are erased. The type check reports missing files. */
function importsOf(path: string): string[] {
  if (!existsSync(path)) return [];
  const text = readFileSync(path, "utf8").replaceAll(/^(?:import|export) type .*?;$/gms, "");
  return [...text.matchAll(/^(?:import|export)\b[^"';]*"([^"]+)"/gm)].map(([, specifier]) => specifier as string);
}

function isCore(name: string): boolean {
  return CORE_ROOMS.some((room) => name.startsWith(`${room}/`));
}

function testFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".test.ts"))
    .sort()
    .map((file) => join(folder, file));
}
