/** The repository is written in plain words: counts of vague words, lengths of sentences, widths of comments. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { filesUnder, type Plainness, type Prose, plainnessOf, proseOf, vagueIn } from "../../scripts/plain-words.ts";
import { ROOT } from "./program.ts";

const RATE_MAX = 5;
const SENTENCE_WORDS_MAX = 18;
const COLUMNS_MAX = 120;
/** Rows of tables and diagrams, and addresses. */
const DRAWN = /^\s*\* +\||[─│]|https?:|biome-ignore|@ts-expect-error/;

const PAGES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"];
const CODE = ["src", "test", "scripts", "bench", "examples"];
const FOLDERS = ["src", "docs"].flatMap((top) => [...foldersOf(top)]);

function foldersOf(top: string): Set<string> {
  return new Set(filesUnder(ROOT, [top]).map((file) => folderOf(file)));
}

/** `src/bus`, or `src` for its own files. */
function folderOf(file: string): string {
  return file.split("/").slice(0, -1).slice(0, 2).join("/");
}

function proseUnder(paths: readonly string[], kinds: readonly Prose["kind"][]): Prose[] {
  return filesUnder(ROOT, paths).flatMap((file) =>
    proseOf(file, readFileSync(join(ROOT, file), "utf8")).filter(({ kind }) => kinds.includes(kind)),
  );
}

function ofFolder(folder: string): string[] {
  return filesUnder(ROOT, [folder]).filter((file) => folderOf(file) === folder);
}

function expectPlain({ rate, median }: Plainness, rateMax: number): void {
  expect(median).toBeLessThanOrEqual(SENTENCE_WORDS_MAX);
  expect(rate, "run `node scripts/plain-words.ts FOLDER` to see the sentences").toBeLessThanOrEqual(rateMax);
}

describe("plain words", () => {
  test.for([...FOLDERS])("[K174] %s: comments, texts and pages have few vague words and short sentences", (folder) => {
    const prose = proseUnder(ofFolder(folder), ["comment", "text", "markdown"]);
    expectPlain(plainnessOf(prose), RATE_MAX);
  });

  test.for(PAGES)("[K174] %s has few vague words and short sentences", (page) => {
    expectPlain(plainnessOf(proseUnder([page], ["markdown"])), RATE_MAX);
  });

  test.for(CODE)("[K174] %s: comments have few vague words and short sentences", (top) => {
    expectPlain(plainnessOf(proseUnder([top], ["comment"])), RATE_MAX);
  });

  test.for([...foldersOf("test")])("[K174] %s: test titles have few vague words", (folder) => {
    expectPlain(plainnessOf(proseUnder(ofFolder(folder), ["title"])), RATE_MAX);
  });

  test.for(CODE.flatMap((top) => [...foldersOf(top)]))("[K422] %s: a comment has at most 120 columns", (folder) => {
    const wide = ofFolder(folder).flatMap((file) => {
      const rows = readFileSync(join(ROOT, file), "utf8").split("\n");
      const isWide = (row: string) => row.length > COLUMNS_MAX && /^\s*(?:\/\/|\/?\*)/.test(row) && !DRAWN.test(row);
      return rows.flatMap((row, index) => (isWide(row) ? [`${file}:${index + 1}`] : []));
    });
    expect(wide.length, wide.slice(0, 5).join(" ")).toBe(0);
  });

  test("[K422] pages have at most 120 columns outside of tables and code", () => {
    const pages = filesUnder(ROOT, ["docs", ...PAGES]).filter((file) => file.endsWith(".md"));
    const wide = pages.flatMap((page) => {
      const text = readFileSync(join(ROOT, page), "utf8").replaceAll(/^ *```[\s\S]*?^ *```/gm, "");
      return text
        .split("\n")
        .flatMap((row) => (row.length > COLUMNS_MAX && !/^\s*\|/.test(row) ? [`${page}: ${row}`] : []));
    });
    expect(wide).toEqual([]);
  });

  test("[K174] comments, texts, titles and pages are read as they are written", () => {
    const code =
      'test("[K1] nobody knows", () => {}); // of what\nthrow new Error("nothing is left here"); key("what");';
    expect(proseOf("a.ts", code).map(({ kind, line }) => [kind, line])).toEqual([
      ["comment", 1],
      ["title", 1],
      ["text", 2],
    ]);
    const page = "# Who\n\nOne `what` here\ngoes on.\n\n```ts\nnobody\n```\n\n| such | b |\n";
    expect(proseOf("a.md", page).map(({ text }) => text)).toEqual(["# Who", "One `what` here goes on.", "such", "b"]);
    expect(vagueIn("`what` lies in [it](who.md), whoever asks")).toBe(1);
  });
});
