/**
 * How plainly the repository is written: vague words (see `VAGUE`) per 1,000 words, and the length of sentences, in
 * comments, Markdown, test titles, and texts of errors and help. Well-known libraries have 1 to 4.
 *
 *     node scripts/plain-words.ts [PATH...]      the rate of each folder, and the sentences to rewrite first
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync, Visitor } from "rolldown/utils";

/** Words that stand in place of a noun of the code or the field. */
const VAGUE =
  /\b(?:what|whatever|whichever|whoever|whom?|whose|(?:some|any|every)(?:body|one|thing)|nobody|nothing|such|thereof|thereby|upon|he|him|his|himself)\b/gi;
const TITLED = new Set(["test", "it", "describe"]);
/** Shorter literals are names, keys and formats. */
const TEXT_WORDS_MIN = 3;
const SENTENCE_WORDS_MIN = 3;

/** `text` is a string of code: an error, help or log text. */
export type ProseKind = "comment" | "markdown" | "title" | "text";

export interface Prose {
  readonly kind: ProseKind;
  readonly line: number;
  readonly text: string;
}

export interface Plainness {
  readonly words: number;
  readonly vague: number;
  /** Vague words per 1,000. */
  readonly rate: number;
  /** Words of the median sentence. */
  readonly median: number;
}

export function proseOf(file: string, text: string): Prose[] {
  return file.endsWith(".md") ? markdownOf(text) : proseOfCode(file, text);
}

/** A paragraph, list item or table cell of a page is one text. Blocks of code are left out. */
function markdownOf(text: string): Prose[] {
  const found: Prose[] = [];
  let isCode = false;
  let isOpen = false;
  for (const [index, row] of text.split("\n").entries()) {
    if (/^\s*```/.test(row)) isCode = !isCode;
    if (isCode || /^\s*(?:```|$)/.test(row)) {
      isOpen = false;
      continue;
    }
    const startsAnew = /^\s*(?:#|[-*] |\d+\. |\|)/.test(row);
    const last = found.at(-1);
    if (isOpen && !startsAnew && last !== undefined)
      found[found.length - 1] = { ...last, text: `${last.text} ${row.trim()}` };
    else for (const cell of row.split("|")) found.push({ kind: "markdown", line: index + 1, text: cell.trim() });
    isOpen = !/^\s*[#|]/.test(row);
  }
  return found.filter(({ text: one }) => /[a-z]/i.test(one));
}

function proseOfCode(file: string, code: string): Prose[] {
  const { program, comments, errors } = parseSync(file, code);
  if (errors.length > 0) throw new SyntaxError(errors[0]?.message);
  const found: Prose[] = comments.map(({ value, start }) => ({
    kind: "comment",
    line: lineAt(code, start),
    text: value.replaceAll(/^\s*\*+ ?/gm, "").replaceAll(/^```[\s\S]*?^```/gm, ""),
  }));
  const titles = new Set<number>();
  const add = (start: number, text: string) => {
    const kind = titles.has(start) ? "title" : "text";
    if (kind === "title" || wordsIn(text).length >= TEXT_WORDS_MIN)
      found.push({ kind, line: lineAt(code, start), text });
  };
  new Visitor({
    CallExpression({ callee, arguments: [first] }) {
      const source = code.slice(callee.start, callee.end);
      if (first !== undefined && TITLED.has(/^\w+/.exec(source)?.[0] ?? "")) titles.add(first.start);
    },
    Property({ key, value }) {
      if (key.type === "Identifier" && key.name === "title") titles.add(value.start);
    },
    Literal({ value, start }) {
      if (typeof value === "string") add(start, value);
    },
    TemplateLiteral({ quasis, start }) {
      add(start, quasis.map(({ value }) => value.raw).join("X"));
    },
  }).visit(program);
  return found;
}

function lineAt(code: string, start: number): number {
  return code.slice(0, start).split("\n").length;
}

/** Ids of rules, code, addresses and statements of SQL are no prose. */
function plainText(text: string): string {
  if (/^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|PRAGMA|VALUES|DO|ON CONFLICT)\b/.test(text)) return "";
  return text
    .replace(/^(?:\[[A-Z]\d+\] ?)+/, "")
    .replaceAll(/`[^`]*`/g, "X")
    .replaceAll(/\]\([^)]*\)/g, "]")
    .replaceAll(/\bON CONFLICT[^"]*\bNOTHING\b/g, "");
}

function wordsIn(text: string): string[] {
  return plainText(text).match(/[A-Za-z']+/g) ?? [];
}

export function vagueIn(text: string): number {
  return plainText(text).match(VAGUE)?.length ?? 0;
}

export function plainnessOf(texts: readonly Prose[]): Plainness {
  let words = 0;
  let vague = 0;
  const lengths: number[] = [];
  for (const { text } of texts) {
    words += wordsIn(text).length;
    vague += vagueIn(text);
    const sentences = plainText(text).split(/(?<=[.;:!?])\s+(?=[A-Z`"(]|\w)/);
    lengths.push(...sentences.map((one) => wordsIn(one).length).filter((length) => length >= SENTENCE_WORDS_MIN));
  }
  const median = lengths.sort((a, b) => a - b)[lengths.length >> 1] ?? 0;
  return { words, vague, rate: words === 0 ? 0 : (1_000 * vague) / words, median };
}

/** Tracked and new sources and pages below the paths. */
export function filesUnder(root: string, paths: readonly string[]): string[] {
  const listed = ["ls-files", "--cached", "--others", "--exclude-standard", "--", ...paths];
  const files = execFileSync("git", listed, { cwd: root, encoding: "utf8" }).split("\n");
  return files.filter((file) => /\.(?:ts|tsx|mts|md)$/.test(file) && existsSync(join(root, file)));
}

function print(root: string, paths: readonly string[]): void {
  const byFolder = new Map<string, Prose[]>();
  const worst: { readonly where: string; readonly text: string; readonly vague: number }[] = [];
  for (const file of filesUnder(root, paths)) {
    const folder = file
      .split("/")
      .slice(0, 2)
      .join("/")
      .replace(/\/[^/]*\.\w+$/, "");
    const texts = proseOf(file, readFileSync(join(root, file), "utf8"));
    byFolder.set(folder, [...(byFolder.get(folder) ?? []), ...texts]);
    for (const { line, text } of texts) worst.push({ where: `${file}:${line}`, text, vague: vagueIn(text) });
  }
  for (const [folder, texts] of byFolder) {
    const { words, rate, median } = plainnessOf(texts);
    console.log(
      `${rate.toFixed(1).padStart(6)} per 1,000   ${String(words).padStart(7)} words   median ${median}   ${folder}`,
    );
  }
  for (const { where, text } of worst.toSorted((a, b) => b.vague - a.vague).slice(0, 20))
    console.log(`  ${where}  ${text.replaceAll(/\s+/g, " ").slice(0, 150)}`);
}

if (import.meta.main) print(process.cwd(), process.argv.slice(2));
