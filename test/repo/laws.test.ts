/** Laws of the house that a compiler does not check: where time and chance come from, and where links lead. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { describe, expect, test } from "vitest";
import { ROOT } from "./program.ts";

const CLOCKS_AND_DICE =
  /\b(?:Date\.now|Math\.random|performance\.now|setTimeout|setInterval|setImmediate|queueMicrotask|nextTick|hrtime|randomUUID|getRandomValues)\b|new Date\(\)/;

/** Comments may name functions that code may not call. */
function codeOf(text: string): string {
  return text.replaceAll(/\/\*.*?\*\//gs, "").replaceAll(/(^|\s)\/\/.*$/gm, "");
}

function filesUnder(folder: string, ending: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name));
}

function brokenLinks(page: string, text: string): string[] {
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(
    ([, target]) => (target as string).split("#")[0] as string,
  );
  const local = targets.filter((target) => target !== "" && !/^[a-z]+:/.test(target));
  return local.filter((target) => !existsSync(join(ROOT, dirname(page), target))).map((target) => `${page}: ${target}`);
}

/** ``Router.route` in `loop/router.ts``: a function of a class, and its file. */
const NAMED_FUNCTION = /`([A-Z]\w+)\.(#?\w+)` (?:in|of) `([\w/-]+\.ts)`/g;

function missingFunctions(page: string): string[] {
  return [...page.matchAll(NAMED_FUNCTION)].flatMap(([text, owner, name, file]) => {
    const path = join(ROOT, "src", file as string);
    const code = existsSync(path) ? readFileSync(path, "utf8") : "";
    const hasOwner = new RegExp(`\\b(?:class|interface) ${owner}\\b`).test(code);
    return hasOwner && new RegExp(`^ +(?:readonly |async |static )*${name}\\b`, "m").test(code) ? [] : [text];
  });
}

describe("laws", () => {
  test("[K2] time and chance come from the host alone", () => {
    const sources = filesUnder("src", ".ts").filter((file) => !file.startsWith(join("src", "host") + sep));
    expect(sources.length).toBeGreaterThan(50);
    const found = sources.flatMap((file) => {
      const use = codeOf(readFileSync(join(ROOT, file), "utf8")).match(CLOCKS_AND_DICE);
      return use ? [`${file}: ${use[0]}`] : [];
    });
    expect(found).toEqual([]);
    expect(codeOf("x(); // Date.now\n/** Math.random */ host.now(); setTimeout(f)").match(CLOCKS_AND_DICE)?.[0]).toBe(
      "setTimeout",
    );
  });

  test("[K2] texts of thrown values are made in one place", () => {
    const spelled = /(\w+) instanceof Error \? \1\.message\b[^:]*: String\(\1\)/;
    const sources = filesUnder("src", ".ts").filter((file) =>
      spelled.test(codeOf(readFileSync(join(ROOT, file), "utf8"))),
    );
    // `thrownText` of `message/error-data.ts` also takes errors without a message, and values that throw when they are read.
    expect(sources).toEqual([]);
    expect(spelled.test("const why = error instanceof Error ? error.message : String(error);")).toBe(true);
  });

  test("[K9] functions that ARCHITECTURE.md names exist in the named files", () => {
    const page = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8").replaceAll(/\s+/g, " ");
    expect([...page.matchAll(NAMED_FUNCTION)].length).toBeGreaterThan(15);
    expect(missingFunctions(page)).toEqual([]);
    expect(missingFunctions("`Router.route` in `loop/router.ts`, `Router.gone` in `loop/router.ts`")).toHaveLength(1);
  });

  test("[K9] links between pages lead somewhere", () => {
    const pages = [...readdirSync(ROOT).filter((name) => name.endsWith(".md")), ...filesUnder("docs", ".md")];
    expect(pages.flatMap((page) => brokenLinks(page, readFileSync(join(ROOT, page), "utf8")))).toEqual([]);
    expect(brokenLinks("README.md", "[a](nowhere.md) [b](docs/SPEC.md#promises) [c](https://example.org)")).toEqual([
      "README.md: nowhere.md",
    ]);
  });
});
