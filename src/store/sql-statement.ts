/**
 * Statements on the user's own tables that run with a commit, in its transaction. SPEC: U90-U94.
 *
 * The text is checked, not parsed: one statement that reads or changes rows, and no table of the store as its target.
 * Values are always bound. Backends without tables refuse a request with statements.
 */
import { SQL_STATEMENT_BYTES_MAX } from "../limits.ts";
import { type Rejection, rejected } from "./rejection.ts";

/** A value of a statement, as both backends bind it. Objects and arrays are JSON text by now. */
export type SqlBound = string | number | boolean | null;

export interface SqlStatement {
  /** The text between the values. One part: the text has the placeholders of the database. */
  readonly parts: readonly string[];
  readonly values: readonly SqlBound[];
  /** How many rows it must change; undefined: any number. */
  rows: number | undefined;
}

/** The first words of statements that read or change rows. */
const VERBS: ReadonlySet<string> = new Set(["insert", "update", "delete", "replace", "merge", "with", "select"]);
/** Spaces, comments, quoted texts, quoted names, texts between dollar signs, names, and single characters. */
const TOKEN =
  /\s+|--[^\n]*|\/\*[\s\S]*?\*\/|[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$([A-Za-z_]\w*)?\$[\s\S]*?\$\1\$|[A-Za-z_][\w$.]*|[\s\S]/g;
/** Words between `update` or `into` and the name of the table. */
const BETWEEN: ReadonlySet<string> = new Set(["or", "replace", "ignore", "abort", "fail", "rollback", "only"]);

/** Why the text cannot run with a commit; undefined if it can. `isOwn`: whether it names a table of the store. */
export function sqlProblem(parts: readonly string[], isOwn: (name: string) => boolean): string | undefined {
  const text = parts.join("?");
  if (text.length > SQL_STATEMENT_BYTES_MAX) return `a statement has at most ${SQL_STATEMENT_BYTES_MAX} characters`;
  const tokens = wordsOf(text);
  const verb = tokens[0] ?? "";
  if (!VERBS.has(verb))
    return `a statement begins with ${[...VERBS].join(", ")}; got ${verb === "" ? "nothing" : verb}`;
  const end = tokens.indexOf(";");
  if (end >= 0 && end < tokens.length - 1) return "there are several statements; run each by a call of its own";
  const own = targetsOf(tokens).find(isOwn);
  return own === undefined ? undefined : `${own} is a table of the store; write to it by the other members of tx`;
}

/** Names, keywords and single characters in lower case, without comments and quoted texts. */
function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const [token] of text.matchAll(TOKEN)) {
    if (/^(?:\s|--|\/\*)/.test(token)) continue;
    words.push(token.startsWith('"') ? token.slice(1, -1).toLowerCase() : token.toLowerCase());
  }
  return words;
}

/** The tables that a statement writes to. */
function targetsOf(words: readonly string[]): string[] {
  const targets: string[] = [];
  for (const [at, word] of words.entries()) {
    const isTarget = word === "into" || word === "update" || (word === "from" && words[at - 1] === "delete");
    if (!isTarget) continue;
    let name = at + 1;
    while (BETWEEN.has(words[name] ?? "")) name++;
    const target = words[name];
    // `do update set` and `for update` name no table.
    if (target !== undefined && target !== "set" && words[at - 1] !== "for") targets.push(target);
  }
  return targets;
}

/** The text with the placeholders of the database. */
export function sqlText({ parts }: SqlStatement, placeholder: (at: number) => string): string {
  return parts.reduce((text, part, at) => text + placeholder(at) + part);
}

/** A statement that changed another number of rows: the commit is run again, on what the rows are now. */
export function rowsMoved(statement: SqlStatement, changed: number): Rejection | undefined {
  if (statement.rows === undefined || statement.rows === changed) return undefined;
  const what = `"${shown(statement)}" changed ${changed} rows instead of ${statement.rows}`;
  return rejected("stale", "rows-moved", `${what}; run it again`);
}

/** A statement that the database refused. Its values are not part of the text. */
export function sqlRefused(statement: SqlStatement, why: string): Rejection {
  return rejected("refused", "sql-refused", `the database refused "${shown(statement)}": ${why}`);
}

function shown(statement: SqlStatement): string {
  const text = sqlText(statement, () => "?")
    .replaceAll(/\s+/g, " ")
    .trim();
  return text.length <= 200 ? text : `${text.slice(0, 200)}…`;
}
