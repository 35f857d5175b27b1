/**
 * Prints pages of the reference from the source: `node scripts/reference.ts api` lists what each entry point exports with the first
 * sentence of its comment, `node scripts/reference.ts command` the help of every verb. Redirect it into `docs/reference/`.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const read = (file: string) => readFileSync(join(root, file), "utf8");

const COMMENT = /\/\*\*[\s\S]*?\*\//;
const PAGES: Readonly<Record<string, () => string>> = { api: apiPage, command: commandPage };
const page = PAGES[process.argv[2] ?? ""];
if (page) console.log(page().trimEnd());
else {
  console.error("name a page: api or command");
  process.exitCode = 2;
}

// What is exported -----------------------------------------------------------------------------------------------------------

function apiPage(): string {
  const { exports } = JSON.parse(read("package.json"));
  const lines = [
    "# Exports",
    "",
    "Every entry point and what it exports. Types of arguments and results are in the package, and an editor shows them. Made by",
    "`node scripts/reference.ts api`.",
  ];
  for (const [entry, target] of Object.entries<{ default?: string }>(exports)) {
    if (target.default === undefined) continue;
    const file = target.default.replace(/^\.\/dist/, "src").replace(/js$/, "ts");
    const text = read(file);
    lines.push("", `## \`${join("millrace", entry)}\``, "", introduction(text), "");
    lines.push("| name | is | what it is for |", "| --- | --- | --- |");
    for (const { name, original, from } of exported(text)) {
      const { kind, about } = declaration(read(join(dirname(file), from)), original);
      lines.push(`| \`${name}\` | ${kind} | ${about.replaceAll("|", "\\|")} |`);
    }
  }
  return lines.join("\n");
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

/** What a declaration is and says; where it has no comment of its own, what its file is about. */
function declaration(text: string, name: string): { kind: string; about: string } {
  const found = text.match(
    new RegExp(`(/\\*\\*(?:(?!\\*/)[\\s\\S])*\\*/\\n)?export (?:async )?(?:abstract )?(\\w+)\\*? ${name}\\b`),
  );
  const word = found?.[2] ?? "const";
  const about = found?.[1] ?? text.match(COMMENT)?.[0] ?? "";
  return { kind: word === "const" ? "value" : word, about: firstSentence(about) };
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

function introduction(text: string): string {
  const sentence = textOf(text.match(COMMENT)?.[0] ?? "").replace(/^`[^`]+`: /, "");
  return `${sentence[0]?.toUpperCase()}${sentence.slice(1)}`;
}

// What the command says ------------------------------------------------------------------------------------------------------

function commandPage(): string {
  const help = (...args: string[]) =>
    execFileSync(process.execPath, [join(root, "src", "cli", "main.ts"), ...args, "--help"], { encoding: "utf8" });
  const verbs = [...help().matchAll(/^ {2}([a-z]+) {2}/gm)].map(([, verb]) => verb as string);
  const lines = [
    "# The command",
    "",
    "`npx millrace <verb>`. Files are in `.millrace/`, or where `MILLRACE_DIR` says; verbs that look take `MILLRACE_FILE`, the file of a program that opens its own store. Reading verbs take `--json` and print one value a line;",
    "`NO_COLOR` is honoured. Exit codes: 0 it worked, 1 it failed, 2 it was called wrongly, 3 the kernel could not be reached, 130 it was ended at once by a second signal. Verbs that look",
    "also work on the file of a stopped kernel, with what that knows. Made by `node scripts/reference.ts command`.",
  ];
  for (const verb of verbs) {
    const [head = "", example = ""] = help(verb).split("\nexample:\n");
    const [usage = "", summary = "", ...options] = head.trimEnd().split("\n");
    const sentence = summary.trim();
    lines.push("", `## \`millrace ${verb}\``, "", `${sentence[0]?.toUpperCase()}${sentence.slice(1)}.`, "");
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
