/** The files of `src/`: a small file has several importers, a long one is divided, and a name is exported once. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./program.ts";

const SRC = join(ROOT, "src");
const SMALL_BELOW = 60;
const LONG_ABOVE = 400;

/**
 * Small files with one importer, and why they are files. Verbs of the command are files of their own (`cli/main.ts`).
 */
const SMALL: Readonly<Record<string, string>> = {
  "cells/effect-cleanup.ts": "its importer is long",
  "cells/element-cell.ts": "its importer would be long with it",
  "cells/pattern.ts": "exported by the entry point millrace/signals",
  "client/connect.ts": "exported by the entry point millrace/client on Node",
  "kernel/piped-kernel.ts": "cli may not import adapters",
  "kernel/watched-views.ts": "its importer is long",
  "open.ts": "exported by the entry point millrace",
  "store/parking.ts": "shared with the store over a wire in the tests",
  "store/postgres/upkeep.ts": "its importer is long",
  "store/sqlite/answer-turn.ts": "its importer is long",
  "store/sqlite/index.ts": "the entry point millrace/sqlite",
  "store/unseen-labels.ts": "its importer would be long with it",
  "test-kernel.ts": "exported by the entry point millrace/testing",
};

/** Long files. Divide one where its data have a seam, and remove it here. */
const LONG: readonly string[] = [
  "adapters/ndjson-connection.ts",
  "bus/event-bus.ts",
  "bus/publisher.ts",
  "cells/base-space.ts",
  "extensions/extension-loader.ts",
  "kernel/kernel.ts",
  "limits.ts",
  "loop/mailbox-actor.ts",
  "loop/transactional.ts",
  "scheduler/runner.ts",
  "scheduler/write-unit.ts",
  "store/memory/journal-table.ts",
  "store/memory/memory-store.ts",
  "store/memory/space-table.ts",
  "store/postgres/batch.ts",
  "store/postgres/schema.ts",
  "store/postgres/store.ts",
  "store/postgres/writer.ts",
  "store/replica-document.ts",
  "store/replica.ts",
  "store/sqlite/document-table.ts",
  "store/sqlite/group-commit.ts",
  "store/sqlite/store.ts",
  "store/store.ts",
  "store/transaction.ts",
  "work/attempt.ts",
];

interface Source {
  readonly file: string;
  readonly lines: number;
  readonly imports: readonly string[];
}

function sources(): Source[] {
  return readdirSync(SRC, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => {
      const text = readFileSync(join(SRC, file), "utf8");
      const imports = [...text.matchAll(/\b(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)];
      return {
        file,
        lines: text.split("\n").length - 1,
        imports: imports.map(([, target]) => join(dirname(file), target as string)),
      };
    });
}

/** Small files that only one file imports. */
function partsOf(all: readonly Source[]): string[] {
  return all
    .filter(({ lines }) => lines < SMALL_BELOW)
    .filter(({ file }) => {
      const importers = all.filter(({ imports }) => imports.includes(file)).map((one) => one.file);
      return importers.length === 1 && importers[0] !== "cli/main.ts";
    })
    .map(({ file }) => file);
}

test("[K178] a file of src/ below 60 lines that only one file imports has a reason", () => {
  expect(partsOf(sources()).sort()).toEqual(Object.keys(SMALL).sort());
  const part = { file: "a/part.ts", lines: SMALL_BELOW - 1, imports: [] };
  const whole = { file: "a/whole.ts", lines: 100, imports: ["a/part.ts"] };
  expect(partsOf([part, whole])).toEqual(["a/part.ts"]);
  expect(partsOf([part, whole, { ...whole, file: "b/other.ts" }])).toEqual([]);
});

test("[K179] a file of src/ has at most 400 lines, except for those listed here", () => {
  const long = sources().filter(({ lines }) => lines > LONG_ABOVE);
  expect(long.map(({ file }) => file).sort()).toEqual([...LONG].sort());
});

/** Verbs of the command, named as the user types them. */
const VERBS = /^export const (\w+): Verb\b/gm;
/** The store's backends implement the same parts: a name may be exported by each of them. */
const BACKEND = /^store\/(memory|sqlite|postgres)\//;
/** `millrace/client` has one file for Node and one for browsers. */
const CLIENTS = ["client/browser.ts", "client/connect.ts"];

/** Names that two files export, with the files. */
function repeatedNames(texts: ReadonlyMap<string, string>): string[] {
  const files = new Map<string, Set<string>>();
  for (const [file, text] of texts) {
    const declared = text.matchAll(
      /^export (?:async )?(?:abstract )?(?:function\*?|class|const|let|interface|type) ([\w$]+)/gm,
    );
    const verbs = new Set([...text.matchAll(VERBS)].map(([, verb]) => verb));
    for (const [, name] of declared) {
      if (verbs.has(name)) continue;
      const found = files.get(name as string) ?? new Set();
      files.set(name as string, found.add(file));
    }
  }
  const isRepeated = (among: readonly string[]) => {
    if (among.length < 2 || among.every((file) => CLIENTS.includes(file))) return false;
    const backends = among.map((file) => BACKEND.exec(file)?.[1]);
    return backends.includes(undefined) || new Set(backends).size < backends.length;
  };
  return [...files].flatMap(([name, among]) => (isRepeated([...among]) ? [`${name}: ${[...among].join(", ")}`] : []));
}

test("[K180] no two files of src/ export the same name", () => {
  const texts = new Map(sources().map(({ file }) => [file, readFileSync(join(SRC, file), "utf8")]));
  expect(repeatedNames(texts)).toEqual([]);
  const one = "export class One {}\n";
  expect(
    repeatedNames(
      new Map([
        ["a.ts", one],
        ["b.ts", one],
      ]),
    ),
  ).toEqual(["One: a.ts, b.ts"]);
  expect(
    repeatedNames(
      new Map([
        ["store/memory/a.ts", one],
        ["store/sqlite/b.ts", one],
      ]),
    ),
  ).toEqual([]);
  expect(
    repeatedNames(
      new Map([
        ["cli/one.ts", "export const one: Verb = {};"],
        ["b.ts", "export const one = 1;"],
      ]),
    ),
  ).toEqual([]);
});
