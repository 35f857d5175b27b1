/** Laws of the house that a compiler does not check: where time and chance come from, and where links lead. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import { describe, expect, test } from "vitest";
import { ROOT } from "./program.ts";

const DECISION_WORDS_MAX = 850;
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

/**
 * ``Router.route` in `loop/router.ts``, ``refusalOf` in `loop/admission.ts``; in a table with a comma instead of "in".
 */
const NAMED_FUNCTION = /`(?:([A-Z]\w+)\.)?(#?\w+)`(?: in| of|,) `([\w/-]+\/[\w-]+\.ts)`/g;

function missingFunctions(page: string): string[] {
  return [...page.matchAll(NAMED_FUNCTION)].flatMap(([text, owner, name, file]) => {
    const path = join(ROOT, "src", file as string);
    const code = existsSync(path) ? readFileSync(path, "utf8") : "";
    return owner === undefined
      ? declares(code, name as string)
        ? []
        : [text]
      : hasMember(code, owner, name as string)
        ? []
        : [text];
  });
}

function declares(code: string, name: string): boolean {
  return new RegExp(`^export (?:async )?(?:class|function|const|type|interface) ${name}\\b`, "m").test(code);
}

function hasMember(code: string, owner: string, name: string): boolean {
  const member = new RegExp(`^ +(?:readonly |async |static )*${name}\\b`, "m");
  return new RegExp(`\\b(?:class|interface) ${owner}\\b`).test(code) && member.test(code);
}

/** The text between the heading of a section and the next one of its level. */
function section(page: string, heading: string): string {
  return page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
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
    // `thrownText` of `message/error-data.ts` also takes errors without a message, and values that throw when they are
    // read.
    expect(sources).toEqual([]);
    expect(spelled.test("const why = error instanceof Error ? error.message : String(error);")).toBe(true);
  });

  test("[K9] functions that ARCHITECTURE.md and CONTRIBUTING.md name exist in the named files", () => {
    const pages = ["ARCHITECTURE.md", "CONTRIBUTING.md"].map((name) => readFileSync(join(ROOT, name), "utf8"));
    for (const page of pages) {
      const text = page.replaceAll(/\s+/g, " ");
      expect([...text.matchAll(NAMED_FUNCTION)].length).toBeGreaterThan(7);
      expect(missingFunctions(text)).toEqual([]);
    }
    const [good, gone] = ["`Router.route` in `loop/router.ts`", "`Router.gone` in `loop/router.ts`"];
    expect(missingFunctions(`${good}, ${gone}, \`laneOf\` in \`loop/inbound.ts\`, \`x\`, \`loop/lanes.ts\``)).toEqual([
      gone,
      "`x`, `loop/lanes.ts`",
    ]);
  });

  test("[K9] files that ARCHITECTURE.md names exist, and each room has its row and where to start", () => {
    const page = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
    const named = [...page.matchAll(/`((?:[\w-]+\/)+[\w-]+\.ts)`/g)].map(([, file]) => file as string);
    expect(named.length).toBeGreaterThan(20);
    const isThere = (file: string) => ["src", "."].some((folder) => existsSync(join(ROOT, folder, file)));
    expect(named.filter((file) => !isThere(file))).toEqual([]);
    const [, owned = "", starts = ""] = section(page, "Rooms").split("Where to start reading:");
    const rows = [...starts.matchAll(/^- `(\w+)`: (.*)$/gm)].map(([, room, files]) => [room, files] as const);
    expect(rows.map(([room]) => room)).toEqual([...owned.matchAll(/^\| `(\w+)` /gm)].map(([, room]) => room));
    const starting = rows.flatMap(([room, files]) =>
      [...(files as string).matchAll(/`([\w-]+\.ts)`/g)].map(([, file]) => join("src", room as string, file as string)),
    );
    expect(starting.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });

  test("[K9] the life of a command has at most 12 steps and that of an event at most 11, each with a function", () => {
    const page = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
    for (const [life, max] of [
      ["Life of a command", 12],
      ["Life of an event", 11],
    ] as const) {
      const steps = section(page, life)
        .split(/^\d+\. /m)
        .slice(1);
      expect(steps.length).toBeGreaterThan(5);
      expect(steps.length).toBeLessThanOrEqual(max);
      for (const step of steps) expect(step).toMatch(/^\*\*\w+\*\*:.*`[\w/-]+\.ts`/s);
    }
  });

  test.for(filesUnder(join("docs", "decisions"), ".md"))(
    "[K177] %s has the four sections in at most 850 words",
    (file) => {
      const page = readFileSync(join(ROOT, file), "utf8");
      const sections = [...page.matchAll(/^## (.*)$/gm)].map(([, title]) => title);
      expect(sections).toEqual(["Context", "Choice", "Rejected", "Cost"]);
      expect(page).toMatch(new RegExp(`^# ${basename(file).slice(0, 4)}: \\w`));
      expect(page.trim().split(/\s+/).length).toBeLessThanOrEqual(DECISION_WORDS_MAX);
    },
  );

  test("[K9] CHANGELOG.md has the form of Keep a Changelog", () => {
    const [, ...versions] = readFileSync(join(ROOT, "CHANGELOG.md"), "utf8").split(/^## /m);
    expect(versions.length).toBeGreaterThan(1);
    const kinds = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];
    for (const version of versions) {
      const [head = "", ...sections] = version.split(/^### /m);
      expect(head.trim()).toMatch(/^\[\d+\.\d+\.\d+\] - (?:unreleased|\d{4}-\d{2}-\d{2})$/);
      const names = sections.map((section) => section.split("\n")[0] as string);
      expect(names).toEqual(kinds.filter((kind) => names.includes(kind)));
      for (const section of sections) expect(section.split("\n").slice(1).join("\n").trim()).toMatch(/^- /);
      // A correction of an error belongs under Fixed.
      expect(version).not.toMatch(/^- Fixed:/m);
    }
  });

  test("[K9] links between pages lead somewhere", () => {
    const pages = [...readdirSync(ROOT).filter((name) => name.endsWith(".md")), ...filesUnder("docs", ".md")];
    expect(pages.flatMap((page) => brokenLinks(page, readFileSync(join(ROOT, page), "utf8")))).toEqual([]);
    expect(brokenLinks("README.md", "[a](nowhere.md) [b](docs/SPEC.md#promises) [c](https://example.org)")).toEqual([
      "README.md: nowhere.md",
    ]);
  });
});
