/**
 * Makes pages of the reference from the source. `node scripts/reference.ts api` writes `docs/reference/api/`, a page
 * for each entry point with the declaration of each export. Text below a declaration (errors, examples) is written by
 * hand and stays. An export without an example of its own gets a link to one that imports it. `node
 * scripts/reference.ts command` prints the help of every verb: redirect it into `docs/reference/command.md`.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const read = (file: string) => readFileSync(join(root, file), "utf8");

/** A block of code that the tests run or check. */
const EXAMPLE = /^```ts(?: \S+\.ts)?$/m;
const USED_IN = "Used in the example of";
const COMMENT = /\/\*\*[\s\S]*?\*\//;
const PAGES: Readonly<Record<string, () => void>> = {
  api: writeApiPages,
  command: () => console.log(commandPage().trimEnd()),
};
const make = PAGES[process.argv[2] ?? ""];
if (make) make();
else {
  console.error("name a page: api or command");
  process.exitCode = 2;
}

// The pages of the API
// ---------------------------------------------------------------------------------------------------------

interface EntryPoint {
  readonly name: string;
  readonly page: string;
  /** Text of its file. */
  readonly text: string;
  readonly exports: readonly (Exported & { readonly file: string })[];
  /** The text below each declaration of its page today, by the name of the export. */
  readonly byHand: ReadonlyMap<string, string>;
}

function writeApiPages(): void {
  const folder = join(root, "docs", "reference", "api");
  const types = mkdtempSync(join(tmpdir(), "millrace-types-"));
  execFileSync(join(root, "node_modules", ".bin", "tsc"), ["-p", "tsconfig.build.json", "--outDir", types], {
    cwd: root,
  });
  const entries = entryPoints(folder);
  const examples = examplesOf(entries);
  /** Where each export has its section: on the page of the first entry point that has it. */
  const homes = new Map<string, string>();
  const index = ["# Entry points", "", "| entry point | contains |", "| --- | --- |"];
  for (const { name: entry, page, text, exports, byHand } of entries) {
    const table: string[] = [];
    const sections: string[] = [];
    const anchors = new Map<string, number>();
    for (const { name, original, file } of exports) {
      const declared = declarations(
        readFileSync(join(types, relative("src", file).replace(/ts$/, "d.ts")), "utf8"),
        original,
      );
      const id = `${file} ${original}`;
      const count = anchors.get(name.toLowerCase()) ?? 0;
      const own = `#${name.toLowerCase()}${count === 0 ? "" : `-${count}`}`;
      const home = homes.get(id);
      table.push(`| [\`${name}\`](${home ?? own}) | ${declared.kind} | ${declared.about.replaceAll("|", "\\|")} |`);
      if (home !== undefined) continue;
      anchors.set(name.toLowerCase(), count + 1);
      homes.set(id, `${page}${own}`);
      sections.push("", `## \`${name}\``, "", "```typescript", declared.code, "```", byHand.get(name) ?? "");
      const example = examples.get(id);
      if (!EXAMPLE.test(byHand.get(name) ?? "") && example !== undefined)
        sections.push("", `${USED_IN} ${example.replace(`](${page}#`, "](#")}.`);
    }
    const lines = [
      `# \`${entry}\``,
      "",
      paragraph(introduction(text)),
      "",
      "| export | kind | purpose |",
      "| --- | --- | --- |",
    ];
    writeFileSync(join(folder, page), `${[...lines, ...table, ...sections].join("\n").trimEnd()}\n`);
    index.push(`| [\`${entry}\`](${page}) | ${introduction(text)} |`);
  }
  writeFileSync(join(folder, "README.md"), `${index.join("\n")}\n`);
  rmSync(types, { recursive: true });
}

function entryPoints(folder: string): readonly EntryPoint[] {
  const { exports } = JSON.parse(read("package.json"));
  return Object.entries<{ default?: string }>(exports).flatMap(([entry, target]) => {
    if (target.default === undefined) return [];
    const name = join("millrace", entry);
    const page = `${name.split("/").at(-1)}.md`;
    const source = target.default.replace(/^\.\/dist/, "src").replace(/js$/, "ts");
    const text = read(source);
    const path = join(folder, page);
    const byHand = handwritten(existsSync(path) ? readFileSync(path, "utf8") : "");
    const listed = exported(text).map((one) => ({ ...one, file: join(dirname(source), one.from) }));
    return [{ name, page, text, exports: listed, byHand }];
  });
}

/** For each export, a link to the first example that imports it. */
function examplesOf(entries: readonly EntryPoint[]): Map<string, string> {
  const found = new Map<string, string>();
  const exportsOf = new Map(entries.map(({ name, exports }) => [name, exports]));
  for (const { page, byHand } of entries) {
    for (const [section, text] of byHand) {
      for (const [, code] of text.matchAll(/^```ts(?: \S+\.ts)?\n([\s\S]*?)^```$/gm)) {
        for (const [, list, entry] of (code as string).matchAll(
          /^import (?:type )?\{([^}]*)\} from "(millrace[^"]*)"/gm,
        )) {
          const names = new Set((list as string).split(",").map((name) => name.trim().replace(/^type | as .*$/g, "")));
          for (const { name, original, file } of exportsOf.get(entry as string) ?? []) {
            const id = `${file} ${original}`;
            if (names.has(name) && !found.has(id)) found.set(id, `[\`${section}\`](${page}#${section.toLowerCase()})`);
          }
        }
      }
    }
  }
  return found;
}

/** The text below each declaration of a page, by the name of the export. */
function handwritten(page: string): Map<string, string> {
  const sections = page.matchAll(/^## `([^`]+)`\n\n```typescript\n[\s\S]*?^```\n([\s\S]*?)(?=^## `|$(?![\s\S]))/gm);
  const kept = (text: string) => text.replaceAll(new RegExp(`^${USED_IN} .*$`, "gm"), "").trimEnd();
  return new Map([...sections].map(([, name, text]) => [name as string, kept(text as string)]));
}

/** The declarations of a name, overloads together, as the compiler writes them, without private members. */
function declarations(text: string, name: string): { kind: string; about: string; code: string } {
  const starts = new RegExp(
    `(/\\*\\*(?:(?!\\*/)[\\s\\S])*\\*/\\n)?export (?:declare )?(?:abstract )?(class|interface|type|function|const) ${name}\\b`,
    "g",
  );
  const found = [...text.matchAll(starts)];
  const word = found[0]?.[2] ?? "const";
  const parts = found.map((match) => {
    const from = match.index + (match[1]?.length ?? 0);
    const isBlock = match[2] === "class" || match[2] === "interface";
    return `${match[1] ?? ""}${text.slice(from, endOf(text, from, isBlock))}`;
  });
  const code = parts
    .join("\n")
    .replaceAll(/^ *(?:#private;|(?:protected|private) [^\n]*;|\[INSPECT\][^\n]*;)\n/gm, "")
    .replaceAll(/^export (?:declare )?/gm, "")
    .replaceAll("    ", "  ");
  return { kind: word === "const" ? "value" : word, about: firstSentence(found[0]?.[1] ?? ""), code };
}

/** Where a declaration ends: at its closing brace, or at the semicolon outside of all brackets. */
function endOf(text: string, from: number, isBlock: boolean): number {
  const tokens = /\/\*[\s\S]*?\*\/|\/\/.*|"(?:[^"\\]|\\.)*"|`[^`]*`|[{}();[\]]/g;
  tokens.lastIndex = from;
  let depth = 0;
  for (let token = tokens.exec(text); token; token = tokens.exec(text)) {
    if ("{([".includes(token[0])) depth += 1;
    if ("})]".includes(token[0])) depth -= 1;
    if (depth === 0 && token[0] === (isBlock ? "}" : ";")) return tokens.lastIndex;
  }
  return text.length;
}

interface Exported {
  readonly name: string;
  readonly original: string;
  readonly from: string;
}

function exported(text: string): Exported[] {
  return [...text.matchAll(/export (?:type )?\{([^}]*)\} from "([^"]+)"/g)]
    .flatMap(([, list, from]) =>
      (list as string)
        .split(",")
        .map((item) => item.trim().replace(/^type /, ""))
        .filter((item) => item !== "")
        .map((item) => {
          const [original = "", name = original] = item.split(" as ");
          return { name, original, from: from as string };
        }),
    )
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** A comment's text on one line. */
function textOf(comment: string): string {
  return comment
    .replaceAll(/^\s*\/?\*+\/?|\*\/\s*$/gm, "")
    .replaceAll(/\s+/g, " ")
    .trim();
}

function firstSentence(comment: string): string {
  const text = textOf(comment);
  return text.match(/^.*?[.](?= |$)/)?.[0] ?? text;
}

/** One sentence a row, at most 120 columns. */
function paragraph(text: string): string {
  return text
    .split(/(?<=\.) (?=[A-Z`])/)
    .map((sentence) => sentence.replaceAll(/(.{1,120})(?: |$)/g, "$1\n").trimEnd())
    .join("\n");
}

function introduction(text: string): string {
  const sentence = textOf(text.match(COMMENT)?.[0] ?? "").replace(/^`[^`]+`: /, "");
  return `${sentence[0]?.toUpperCase()}${sentence.slice(1)}`;
}

// The page of the command
// --------------------------------------------------------------------------------------------------

function commandPage(): string {
  const help = (...args: string[]) =>
    execFileSync(process.execPath, [join(root, "src", "cli", "main.ts"), ...args, "--help"], { encoding: "utf8" });
  const verbs = [...help().matchAll(/^ {2}([a-z]+) {2}/gm)].map(([, verb]) => verb as string);
  const lines = [
    "# The command",
    "",
    paragraph(
      "`npx millrace <verb>`. Files are in `.millrace/`, or in `MILLRACE_DIR`. Reading verbs also take `MILLRACE_FILE`, " +
        "the file of a program that opens its own store, or `MILLRACE_STORE`, the URL of a Postgres database. They work on " +
        "the file of a stopped kernel too, with less to show. `--json` prints one value a line; `NO_COLOR` is honoured. " +
        "Exit codes: 0 success, 1 failure, 2 wrong call, 3 kernel not reachable, 130 ended at once by a second signal. " +
        "Made by `node scripts/reference.ts command`.",
    ),
  ];
  for (const verb of verbs) {
    const [head = "", example = ""] = help(verb).split("\nexample:\n");
    const [usage = "", summary = "", ...options] = head.trimEnd().split("\n");
    const sentence = summary.trim();
    lines.push("", `## \`millrace ${verb}\``, "", paragraph(`${sentence[0]?.toUpperCase()}${sentence.slice(1)}.`), "");
    const examples = example
      .trimEnd()
      .split("\n")
      .map((line) => line.trim());
    lines.push(
      "```text",
      usage,
      ...options.filter((line) => line !== "options:" && line !== ""),
      "",
      ...examples,
      "```",
    );
  }
  return lines.join("\n");
}
