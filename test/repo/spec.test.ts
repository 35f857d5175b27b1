/**
 * The pages of the spec and the tests hold together: a rule that a test names exists, and exists once. Rules that no test
 * names are listed with the run, so that they are seen; some are promises of rooms that are not built.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");

/** `- **M3** text` on a page of the spec. */
const DEFINITION = /^- \*\*([A-Z]\d+)\*\*/gm;
/** The ids that begin a string: `"[K4] [K5] sentence"`. */
const TITLE = /["`]((?:\[[A-Z]\d+\] ?)+)/g;
const ID = /[A-Z]\d+/g;

interface Rule {
  readonly id: string;
  readonly page: string;
}

function definedIn(text: string): string[] {
  return [...text.matchAll(DEFINITION)].map(([, id]) => id as string);
}

function citedIn(text: string): string[] {
  return [...text.matchAll(TITLE)].flatMap(([, ids]) => (ids as string).match(ID) ?? []);
}

/** Pages by rooms; the entry page repeats the promises that run through several of them. */
function rules(): Rule[] {
  const pages = readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => /^spec[/\\-].*\.md$/i.test(name))
    .map((name) => join("docs", name));
  return pages.flatMap((page) => definedIn(readFileSync(join(ROOT, page), "utf8")).map((id) => ({ id, page })));
}

function promises(): string[] {
  return definedIn(readFileSync(join(ROOT, "docs", "SPEC.md"), "utf8"));
}

function cited(): Map<string, string> {
  const found = new Map<string, string>();
  for (const name of readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".ts")) continue;
    for (const id of citedIn(readFileSync(join(ROOT, "test", name), "utf8"))) found.set(id, join("test", name));
  }
  return found;
}

describe("the spec and its tests", () => {
  test("[K4] every rule that a test names is defined", () => {
    const defined = new Set([...rules().map(({ id }) => id), ...promises()]);
    const undefinedRules = [...cited()].filter(([id]) => !defined.has(id)).map(([id, file]) => `${id} in ${file}`);
    expect(undefinedRules).toEqual([]);
  });

  test("[K4] no rule is defined twice", () => {
    const seen = new Map<string, string>();
    const twice: string[] = [];
    for (const { id, page } of rules()) {
      if (seen.has(id)) twice.push(`${id} in ${seen.get(id)} and ${page}`);
      seen.set(id, page);
    }
    expect(twice).toEqual([]);
  });

  test("[K4] every promise of the entry page names tests that name it, or says that it is not built", () => {
    const page = readFileSync(join(ROOT, "docs", "SPEC.md"), "utf8");
    const entries = page.split(/^- (?=\*\*[A-Z])/m).slice(1);
    const standings = entries.map((entry) => entry.match(/^\*\*(\w+)\*\*.*^ {2}Today: (.*)/ms) ?? []);
    expect(standings.map(([, id]) => id)).toEqual(promises());
    const wrong = standings.flatMap(([, id, standing]) => {
      const files = [...(standing as string).matchAll(/`(test\/[^`]+)`/g)].map(([, file]) => file as string);
      if (files.length === 0) return (standing as string).startsWith("not built") ? [] : [`${id}: no tests are named`];
      const silent = files.filter((file) => !citedIn(readFileSync(join(ROOT, file), "utf8")).includes(id as string));
      return silent.map((file) => `${id}: ${file} does not name it`);
    });
    expect(wrong).toEqual([]);
  });

  test("[K4] rules that no test names are seen", () => {
    const named = cited();
    const silent = rules().filter(({ id }) => !named.has(id));
    // A list to read, not a gate: rules come before their tests.
    if (silent.length > 0) console.log(`rules without a test: ${silent.map(({ id }) => id).join(" ")}`);
    expect(named.size).toBeGreaterThan(50);
    // Except for the unit of work, whose rules are the cases of its suite.
    expect(silent.filter(({ page }) => page.endsWith("work.md"))).toEqual([]);
  });

  test("[K4] definitions and titles are read as they are written", () => {
    expect(definedIn("- **M3** text\n  - **M4** nested\n- **J1** text\ntext **M5** text")).toEqual(["M3", "J1"]);
    expect(citedIn('test("[K4] [K5] both"); test(`[K6] text`); a["[K1"]; // [M1]')).toEqual(["K4", "K5", "K6"]);
  });
});
