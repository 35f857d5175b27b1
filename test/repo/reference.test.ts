/** The reference names exactly the error codes, exports, verbs and built-in types of the source. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemHost } from "../../src/host/system-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { COMPILE_CACHE, MAIN } from "../kernel/kernel-process.ts";
import { ROOT, runProgram } from "./program.ts";

function page(name: string): string {
  return readFileSync(join(ROOT, "docs", "reference", name), "utf8");
}

/** The first cells of the tables of a page, without their quotes. */
function named(text: string): string[] {
  return [...text.matchAll(/^\| \[?`([^`]+)`/gm)].map(([, name]) => name as string);
}

function sources(): string[] {
  return readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(join(ROOT, "src", name), "utf8"));
}

/**
 * Codes as the source declares them: in unions named `…ErrorCode` and `RejectionReason`, of a class with one code, and
 * those of answers.
 */
function codesIn(source: string): string[] {
  const text = source.replaceAll(/\/\*.*?\*\//gs, "").replaceAll(/\/\/.*$/gm, "");
  const unions = text.matchAll(/type (?:\w*ErrorCode|RejectionReason) =([^;]*);/g);
  const fields = text.matchAll(/extends MillraceError<("[^>]*)>/g);
  const words = [...unions, ...fields].flatMap(([, union]) => [...(union as string).matchAll(/"([^"]+)"/g)]);
  const [, meanings = ""] = text.match(/ERROR_MEANINGS = \{([^}]*)\}/) ?? [];
  const [, reasons = ""] = text.match(/KERNEL_REASONS = \{([^}]*)\}/) ?? [];
  const answers = [...(meanings.match(/\d{3}(?=:)/g) ?? []), ...(reasons.match(/[A-Z_]+(?=:)/g) ?? [])];
  return [...words.map(([, code]) => code as string), ...answers];
}

/** Names that an entry point lists, types as well as values. */
function exportsOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  const names = [...text.matchAll(/export (?:type )?\{([^}]*)\}/g)]
    .flatMap(([, list]) => (list as string).split(","))
    .map(
      (name) =>
        name
          .trim()
          .replace(/^type /, "")
          .split(" as ")
          .at(-1) as string,
    );
  return [...new Set(names.filter((name) => name !== ""))].sort();
}

describe("the reference", () => {
  test("[K50] names every error code, and none that is not there", () => {
    const inSource = new Set(sources().flatMap(codesIn));
    expect(inSource.size).toBeGreaterThan(60);
    expect(named(page("errors.md")).sort()).toEqual([...inSource].sort());
  });

  const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const entries = Object.entries<{ default?: string }>(exports).flatMap(([entry, { default: target }]) =>
    target === undefined
      ? []
      : [{ name: join("millrace", entry), file: target.replace(/^\.\/dist/, "src").replace(/js$/, "ts") }],
  );
  const pageOf = (name: string) => page(join("api", `${name.split("/").at(-1)}.md`));

  test("[K50] has a page for each entry point that names its exports (node scripts/reference.ts api)", () => {
    expect(named(page(join("api", "README.md")))).toEqual(entries.map(({ name }) => name));
    for (const { name, file } of entries) {
      // Below the table are declarations, which have tables of their own.
      const [table = ""] = pageOf(name).split(/^## /m);
      expect(named(table).sort(), name).toEqual(exportsOf(file));
      const rows = table.split("\n").filter((row) => row.startsWith("| [`"));
      const withoutPurpose = rows.filter((row) => /\|\s*\|$/.test(row));
      expect(withoutPurpose, "write a sentence above the export in the source").toEqual([]);
    }
  });

  /** The sections of a page, by the name of the export. */
  const sectionsOf = (text: string) =>
    new Map(
      text
        .split(/^## /m)
        .slice(1)
        .map((section) => [section.match(/`([^`]+)`/)?.[1] as string, section] as const),
    );
  const examplesIn = (section: string) =>
    [...section.matchAll(/^```ts(?: \S+\.ts)?\n([\s\S]*?)^```$/gm)].map(([, code]) => code as string);

  test("[K50] each export has its declaration, and an example that runs and uses it (node scripts/reference.ts api)", () => {
    const pages = new Map(entries.map(({ name }) => [`${name.split("/").at(-1)}.md`, sectionsOf(pageOf(name))]));
    const sections = [...pages].flatMap(([page, all]) => [...all].map(([name, text]) => ({ page, name, text })));
    expect(sections.length).toBeGreaterThan(300);
    for (const { name, text } of sections) expect(text, name).toMatch(/```typescript\n[\s\S]*?\w[\s\S]*?\n```/);
    const all = entries.flatMap(({ name }) => named(pageOf(name).split(/^## /m)[0] as string));
    const names = new Set(sections.map(({ name }) => name));
    expect([...new Set(all)].filter((name) => !names.has(name))).toEqual([]);

    const withoutExample = sections.filter(({ page, name, text }) => {
      const [, other, to] = text.match(/^Used in the example of \[`([^`]+)`\]\(([^#)]*)#/m) ?? [];
      const linked = other === undefined ? "" : (pages.get(to === "" ? page : (to as string))?.get(other) ?? "");
      // Once in the import, and at least once more.
      return ![text, linked].flatMap(examplesIn).some((code) => code.split(new RegExp(`\\b${name}\\b`)).length > 2);
    });
    expect(withoutExample.map(({ page, name }) => `${page}: ${name}`)).toEqual([]);
  });

  test("[K302] each function and class has a sentence about its errors", () => {
    const silent = entries.flatMap(({ name }) =>
      [...sectionsOf(pageOf(name))].flatMap(([one, text]) => {
        const [, declaration = "", prose = ""] = text.match(/```typescript\n([\s\S]*?)^```$([\s\S]*)/m) ?? [];
        if (!/^(?:abstract )?(?:class|function) /m.test(declaration)) return [];
        const sentences = prose.replaceAll(/^```[\s\S]*?^```$/gm, "");
        return /^(?:Throws|Thrown|Rejects|Does not throw)\b/m.test(sentences) ? [] : [`${name}: ${one}`];
      }),
    );
    expect(silent).toEqual([]);
  });

  test("[K50] names every verb with its usage (node scripts/reference.ts command > docs/reference/command.md)", async () => {
    const help = async (...args: string[]) =>
      (await runProgram(process.execPath, [MAIN, ...args, "--help"], { env: COMPILE_CACHE })).stdout;
    const verbs = [...(await help()).matchAll(/^ {2}([a-z]+) {2}/gm)].map(([, verb]) => verb as string);
    const text = page("command.md");
    expect([...text.matchAll(/^## `millrace (\w+)`$/gm)].map(([, verb]) => verb)).toEqual(verbs);
    for (const verb of verbs) expect(text, verb).toContain(`\n${(await help(verb)).split("\n")[0]}\n`);
  });

  test("[K50] names every type that a kernel answers by itself", async () => {
    const host = systemHost();
    await using kernel = await Kernel.open({ host, store: memoryStore({ host }) });
    const { types } = (await kernel.query("Syscall.List", null)) as { types: string[] };
    expect(
      named(page("messages.md"))
        .filter((name) => !name.startsWith("Sys."))
        .sort(),
    ).toEqual(types);
  });

  test("[K50] codes are found as they are written", () => {
    const text =
      'type AErrorCode =\n  /** "X" */\n  | "A"\n  | "B"; // "C"\nclass E extends MillraceError<"D"> {\nKERNEL_REASONS = {\n  NO_WAY: 400,\n}';
    expect(codesIn(text)).toEqual(["A", "B", "D", "NO_WAY"]);
  });
});
