/**
 * A YAML text as a tree whose values know their places. A reader asks each value for a type; a mismatch is added to
 * one list with line and column, and reading goes on, so that an author sees all problems at once. SPEC: X2.
 *
 * It holds no schema: `manifest.ts` and the kernel's settings know the contents of their files. Aliases are followed,
 * tags of other schemas and expansions without end are refused.
 */

import { createRequire } from "node:module";
import type * as Yaml from "yaml";
import { thrownText } from "../message/error-data.ts";
import { findImpurity, isJsonObject, type Json, type JsonObject } from "../message/json.ts";
import { notKnown } from "../message/near-word.ts";
import { problemText, show } from "../message/problem.ts";
import { ExtensionError } from "./extension-error.ts";

/**
 * Loaded with the first text that is read: it has a fifth of all modules of a kernel, and most kernels read none.
 * Bundlers do not see that it is needed; `import()`, which they would see, is no way, since a kernel on simulated time
 * must not wait for real files.
 */
let loaded: typeof Yaml | undefined;
const require = createRequire(import.meta.url);

function yaml(): typeof Yaml {
  loaded ??= loadYaml();
  return loaded;
}

function loadYaml(): typeof Yaml {
  try {
    return require("yaml") as typeof Yaml;
  } catch (cause) {
    const advice = "where this program was bundled, install yaml beside the bundle (npm install yaml)";
    throw new ExtensionError("EXTENSION_MANIFEST", `the package yaml cannot be loaded; ${advice}`, { cause });
  }
}

/** A problem at a place of a YAML file. */
export interface FileProblem {
  readonly line: number;
  readonly column: number;
  /** `events.publishes[0].topic`; empty for the file as a whole. */
  readonly path: string;
  readonly problem: string;
}

/** A problem as one line: its place and its text. */
export function fileProblemText({ line, column, path, problem }: FileProblem): string {
  return `${line}:${column}: ${path === "" ? "" : `${path}: `}${problem}`;
}

/** How often aliases may be expanded in one value; more is a text that unfolds without bound. */
const ALIASES_MAX = 100;

export class YamlFile {
  readonly root: YamlValue;
  readonly #problems: FileProblem[] = [];
  readonly #lines = new (yaml().LineCounter)();
  readonly #document;

  constructor(text: string) {
    const options = { lineCounter: this.#lines, prettyErrors: false, schema: "core", stringKeys: true } as const;
    this.#document = yaml().parseDocument(text, options);
    const { errors, warnings } = this.#document;
    for (const { pos, message } of [...errors, ...warnings]) this.report(pos[0], "", message);
    this.root = new YamlValue(this, this.#document.contents, { path: "", offset: 0 });
  }

  /** In the order of the text, each place and problem once. */
  get problems(): readonly FileProblem[] {
    return this.#problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
  }

  report(offset: number, path: string, problem: string): void {
    this.#problems.push({ ...this.placeOf(offset), path, problem });
  }

  placeOf(offset: number): { readonly line: number; readonly column: number } {
    const { line, col } = this.#lines.linePos(offset);
    // An empty text has no lines.
    return { line: Math.max(1, line), column: Math.max(1, col) };
  }

  resolve(node: unknown): unknown {
    return yaml().isAlias(node) ? node.resolve(this.#document) : node;
  }

  toJson(node: Yaml.Node): unknown {
    return node.toJS(this.#document, { maxAliasCount: ALIASES_MAX });
  }
}

interface Place {
  readonly path: string;
  /** Where a problem is reported when the value itself has no place, for example a key without a value. */
  readonly offset: number;
}

export class YamlValue {
  readonly path: string;
  readonly #file: YamlFile;
  readonly #node: unknown;
  readonly #offset: number;

  constructor(file: YamlFile, node: unknown, { path, offset }: Place) {
    this.#file = file;
    this.#node = file.resolve(node);
    this.path = path;
    this.#offset = rangeStart(node) ?? offset;
  }

  get line(): number {
    return this.#file.placeOf(this.#offset).line;
  }

  get column(): number {
    return this.#file.placeOf(this.#offset).column;
  }

  /** Reports its problem. */
  wrong(problem: string): undefined {
    this.#file.report(this.#offset, this.path, problem);
    return undefined;
  }

  text(): string | undefined {
    const value = this.#scalar();
    if (typeof value === "string") return value.trim() === "" ? this.wrong("must not be empty") : value;
    const hint = typeof value === "number" || typeof value === "boolean" ? `; write it in quotes: "${value}"` : "";
    return this.wrong(`must be a text, got ${this.#shown()}${hint}`);
  }

  flag(): boolean | undefined {
    const value = this.#scalar();
    return typeof value === "boolean" ? value : this.wrong(`must be true or false, got ${this.#shown()}`);
  }

  wholeNumber({ min, max }: { readonly min: number; readonly max: number }): number | undefined {
    const value = this.#scalar();
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max) return value;
    return this.wrong(`must be ${wholeNumberText({ min, max })}, got ${this.#shown()}`);
  }

  /** The values by key; keys other than `known` are reported. Empty when it is no mapping, which is reported too. */
  fields(known: readonly string[]): ReadonlyMap<string, YamlValue> {
    const fields = new Map<string, YamlValue>();
    if (!yaml().isMap(this.#node)) {
      this.wrong(`must be a mapping with ${known.join(", ")}, got ${this.#shown()}`);
      return fields;
    }
    for (const { key, value } of this.#node.items) {
      const name = yaml().isScalar(key) ? String(key.value) : String(key);
      const offset = rangeStart(key) ?? this.#offset;
      const field = new YamlValue(this.#file, value, {
        path: this.path === "" ? name : `${this.path}.${name}`,
        offset,
      });
      if (known.includes(name)) fields.set(name, field);
      else this.#file.report(offset, field.path, notKnown(name, known));
    }
    return fields;
  }

  items(): readonly YamlValue[] {
    if (!yaml().isSeq(this.#node)) {
      this.wrong(`must be a list, got ${this.#shown()}`);
      return [];
    }
    return this.#node.items.map(
      (item, index) => new YamlValue(this.#file, item, { path: `${this.path}[${index}]`, offset: this.#offset }),
    );
  }

  /** A mapping of any JSON. */
  object(): JsonObject | undefined {
    if (!yaml().isMap(this.#node)) return this.wrong(`must be a mapping, got ${this.#shown()}`);
    try {
      const value = this.#file.toJson(this.#node) as Json;
      const impurity = findImpurity(value);
      if (impurity) return this.wrong(problemText(impurity));
      return isJsonObject(value) ? value : this.wrong("must be a mapping");
    } catch (thrown) {
      // The one thing that it throws for: aliases that unfold without end.
      return this.wrong(thrownText(thrown));
    }
  }

  #scalar(): unknown {
    return yaml().isScalar(this.#node) ? this.#node.value : undefined;
  }

  #shown(): string {
    if (yaml().isScalar(this.#node)) return show(this.#node.value);
    if (yaml().isMap(this.#node)) return "a mapping";
    return yaml().isSeq(this.#node) ? "a list" : "nothing";
  }
}

function rangeStart(node: unknown): number | undefined {
  const range = typeof node === "object" && node !== null && "range" in node ? node.range : undefined;
  return Array.isArray(range) && typeof range[0] === "number" ? range[0] : undefined;
}

/** Which whole numbers are meant, for people. */
export function wholeNumberText({ min, max }: { readonly min: number; readonly max: number }): string {
  return max === Number.MAX_SAFE_INTEGER ? `a whole number of at least ${min}` : `a whole number from ${min} to ${max}`;
}
