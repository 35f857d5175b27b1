/**
 * The pages of the spec and the tests hold together: a rule that a test names exists, and exists once. Rules that no
 * test names are listed with the run, so that they are seen; some are promises of rooms that are not built.
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

const RULE_WORDS_MAX = 60;

interface Rule {
  readonly id: string;
  readonly page: string;
}

/**
 * The rules of a page with their texts, in its order; a rule ends at the next one, a blank row, a heading or a table.
 */
function rulesIn(text: string): { readonly id: string; readonly text: string }[] {
  return text.split(/^- (?=\*\*[A-Z]\d+\*\*)/m).flatMap((part, index) => {
    const [, id, rest = ""] = part.match(/^\*\*([A-Z]\d+)\*\*([\s\S]*)$/) ?? [];
    return index === 0 || id === undefined ? [] : [{ id, text: rest.split(/\n(?=\n|#|\||\*\*|- )/)[0] as string }];
  });
}

/** Pairs of neighbours with one prefix, the greater number first. A heading begins a new order. */
function outOfOrder(text: string): string[] {
  return text.split(/^(?:#+ |\*\*[A-Z][a-z])/m).flatMap((section) => {
    const ids = definedIn(section);
    return ids.flatMap((id, at) => {
      const before = ids[at - 1];
      const isAfter = before === undefined || before[0] !== id[0] || Number(before.slice(1)) < Number(id.slice(1));
      return isAfter ? [] : [`${before} before ${id}`];
    });
  });
}

function pagesOfRules(): string[] {
  const pages = readdirSync(join(ROOT, "docs", "spec")).filter((name) => name.endsWith(".md"));
  return [...pages.map((name) => join("docs", "spec", name)), join("docs", "SPEC.md")];
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

/** `J200-J202` in the table of divided rules is three rules. */
function partsIn([, letter, from, to, one]: RegExpMatchArray): string[] {
  if (one !== undefined) return [one];
  return Array.from({ length: Number(to) - Number(from) + 1 }, (_, at) => `${letter}${Number(from) + at}`);
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
    const divided =
      readFileSync(join(ROOT, "docs", "SPEC.md"), "utf8").match(/^## Divided rules$[\s\S]*?(?=^## )/m)?.[0] ?? "";
    const parts = new Set([...divided.matchAll(/([A-Z])(\d+)-[A-Z](\d+)|([A-Z]\d+)/g)].flatMap(partsIn));
    const silent = rules().filter(({ id }) => !named.has(id) && !parts.has(id));
    // A list to read, not a gate: rules come before their tests.
    if (silent.length > 0) console.log(`rules without a test: ${silent.map(({ id }) => id).join(" ")}`);
    expect(named.size).toBeGreaterThan(50);
    // Except for the unit of work, with the cases of its suite as rules.
    expect(silent.filter(({ page }) => page.endsWith("work.md"))).toEqual([]);
  });

  test.for(pagesOfRules())("[K4] %s: a rule has at most 60 words, and its code is between backticks", (page) => {
    const rules = rulesIn(readFileSync(join(ROOT, page), "utf8")).map(({ id, text }) => {
      // The entry page adds the tests of each promise.
      const promise = text.split(/\n {2}Today: /)[0] as string;
      return { id, promise, prose: promise.replace(/`[^`]*`/g, "X") };
    });
    const wordsOf = (text: string) => text.trim().split(/\s+/).length;
    const long = rules.filter(({ promise }) => wordsOf(promise) > RULE_WORDS_MAX).map(({ id }) => id);
    const open = rules.filter(({ prose }) => prose.includes("`")).map(({ id }) => id);
    const bare = rules
      .filter(({ prose }) => /\b\w+\(\)|\b[a-z]+[A-Z]\w*\b(?<!JavaScript|kB)/.test(prose))
      .map(({ id }) => id);
    expect({ long, open, bare }).toEqual({ long: [], open: [], bare: [] });
  });

  test.for(pagesOfRules())("[K4] %s: rules of a section are in the order of their numbers", (page) => {
    expect(outOfOrder(readFileSync(join(ROOT, page), "utf8"))).toEqual([]);
  });

  test("[K4] a rule's text and order are read as they are written", () => {
    const text = "## One\n\n- **M3** text `a`\n  more\n- **M2** other\n\n**Two**\n\n- **M1** last\n\n| a |";
    expect(rulesIn(text).map(({ text: one }) => one.trim())).toEqual(["text `a`\n  more", "other", "last"]);
    expect(outOfOrder(text)).toEqual(["M3 before M2"]);
  });

  test("[K4] definitions and titles are read as they are written", () => {
    expect(definedIn("- **M3** text\n  - **M4** nested\n- **J1** text\ntext **M5** text")).toEqual(["M3", "J1"]);
    expect(citedIn('test("[K4] [K5] both"); test(`[K6] text`); a["[K1"]; // [M1]')).toEqual(["K4", "K5", "K6"]);
  });
});
