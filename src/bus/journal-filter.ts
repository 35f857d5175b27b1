/**
 * Filters of the journal as one line of text, the same in `Kernel.Journal`, in bulk actions and in the command:
 *
 *     type:Order.* status:failed,pending source:shop error~"time out" data.price>10 since:1h -kind:command
 *
 * A space is AND, a comma is OR, a minus negates. Terms that an index answers become a `JournalQuery`; all terms are
 * checked on each row. SPEC: W80.
 */
import { JOURNAL_FILTER_LENGTH_MAX, JOURNAL_FILTER_TERMS_MAX } from "../limits.ts";
import { Failure } from "../message/error-data.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import { nearWord } from "../message/near-word.ts";
import { isTopicPattern, isWildcard, matchesTopic } from "../message/topic-pattern.ts";
import type { JournalQuery, JournalRow } from "../store/journal.ts";

export interface JournalFilter {
  /** The part that an index of the journal answers. */
  readonly query: Pick<JournalQuery, "topic" | "status" | "correlation" | "causation" | "messageId">;
  /** Rows outside of these bounds do not match. */
  readonly bounds: JournalBounds;
  matches(row: JournalRow): boolean;
}

export interface JournalBounds {
  readonly fromId?: number;
  readonly toId?: number;
  readonly fromMs?: number;
  readonly beforeMs?: number;
}

type Operator = ":" | "~" | "=" | ">" | ">=" | "<" | "<=";
type Test = (row: JournalRow) => boolean;

interface Term {
  readonly text: string;
  readonly name: string;
  readonly operator: Operator;
  readonly values: readonly string[];
  readonly isNegated: boolean;
}

/** Text columns of a row. */
const FIELDS: Readonly<Record<string, (row: JournalRow) => string | undefined>> = {
  type: ({ message, topic }) => message?.type ?? topic,
  source: ({ source }) => source,
  kind: ({ message }) => message?.kind,
  corr: ({ message }) => message?.metadata.correlation,
  cause: ({ message }) => message?.metadata.causation ?? undefined,
  message: ({ message }) => message?.metadata.id,
  principal: ({ message }) => textOf(message?.metadata["principal"]),
  error: ({ error, reason }) => reason ?? error,
};
const STATUSES = ["pending", "processing", "done", "failed", "refused", "unheard", "cancelled", "discarded"];
const NAMES = [...Object.keys(FIELDS), "topic", "status", "subscriber", "attempts", "since", "before", "id", "data"];
const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads a filter; a `Failure` 422 names the term that cannot be read. An empty text matches every row. */
export function journalFilter(text: string, nowMs: number): JournalFilter {
  if (text.length > JOURNAL_FILTER_LENGTH_MAX)
    throw new Failure(422, `filter: takes at most ${JOURNAL_FILTER_LENGTH_MAX} characters`);
  const terms = termsOf(text);
  if (terms.length > JOURNAL_FILTER_TERMS_MAX)
    throw new Failure(422, `filter: takes at most ${JOURNAL_FILTER_TERMS_MAX} terms`);
  const tests = terms.map((term) => {
    const one = testOf(term, nowMs);
    return term.isNegated ? (row: JournalRow) => !one(row) : one;
  });
  return {
    query: queryOf(terms),
    bounds: boundsOf(terms, nowMs),
    matches: (row) => tests.every((test) => test(row)),
  };
}

// Reading -----------------------------------------------------------------------------------------------------------

const TERM =
  /\s*(-?)([A-Za-z][\w.$-]*)(>=|<=|[:~=<>])((?:"(?:[^"\\]|\\.)*"|[^\s,"]+)(?:,(?:"(?:[^"\\]|\\.)*"|[^\s,"]+))*)(?=\s|$)/y;
const VALUE = /"(?:[^"\\]|\\.)*"|[^\s,"]+/g;

function termsOf(text: string): Term[] {
  const terms: Term[] = [];
  for (let at = 0; text.slice(at).trim() !== ""; ) {
    TERM.lastIndex = at;
    const found = TERM.exec(text);
    if (found === null) {
      const rest = text.slice(at).trim().split(/\s/)[0];
      throw new Failure(422, `filter: "${rest}" is no term; a term is like type:Order.* or error~"time out"`);
    }
    const [whole, minus, name, operator, values] = found as unknown as [string, string, string, Operator, string];
    const given = [...values.matchAll(VALUE)].map(([value]) => unquoted(value));
    terms.push({ text: whole.trim(), name, operator, values: given, isNegated: minus === "-" });
    at = TERM.lastIndex;
  }
  return terms;
}

function unquoted(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replaceAll(/\\(.)/g, "$1") : value;
}

function problem({ text }: Term, remedy: string): Failure {
  return new Failure(422, `filter: ${text}: ${remedy}`);
}

// Tests -------------------------------------------------------------------------------------------------------------

function testOf(term: Term, nowMs: number): Test {
  const { name, operator, values } = term;
  if (name.startsWith("data.")) return dataTest(term, name.split(".").slice(1));
  const field = FIELDS[name];
  if (field !== undefined) {
    if (operator === "~") return (row) => values.some((value) => contains(field(row), value));
    requireColon(term);
    return (row) => values.some((value) => isLike(value, field(row)));
  }
  switch (name) {
    case "topic":
      requireColon(term);
      for (const value of values)
        if (!isTopicPattern(value)) throw problem(term, "takes topics, or patterns like mail.*");
      return ({ topic }) => values.some((value) => matchesTopic(value, topic));
    case "status":
      requireColon(term);
      for (const value of values) if (!STATUSES.includes(value)) throw problem(term, `takes ${STATUSES.join(", ")}`);
      return ({ status, outcome }) => values.some((value) => value === status || value === outcome);
    case "subscriber":
      requireColon(term);
      return ({ deliveries }) => values.some((value) => deliveries.some(({ subscriber }) => isLike(value, subscriber)));
    case "attempts":
      return numberTest(term, ({ attempts }) => attempts);
    case "since":
    case "before":
    case "id":
      return withinTest(boundsOf([{ ...term, isNegated: false }], nowMs));
    default: {
      const near = nearWord(name, NAMES);
      const meant = near === undefined ? `the names are ${NAMES.join(", ")}` : `did you mean ${near}?`;
      throw problem(term, `no rows have "${name}"; ${meant}`);
    }
  }
}

function requireColon(term: Term): void {
  if (term.operator !== ":" && term.operator !== "=") throw problem(term, `write ${term.name}:${term.values[0]}`);
}

/** A star at the end stands for the rest, as in `Order.*`. */
function isLike(pattern: string, text: string | undefined): boolean {
  if (text === undefined) return false;
  return pattern.endsWith("*") ? text.startsWith(pattern.slice(0, -1)) : text === pattern;
}

function contains(text: string | undefined, part: string): boolean {
  return text?.toLowerCase().includes(part.toLowerCase()) ?? false;
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function dataTest(term: Term, path: readonly string[]): Test {
  const { operator, values } = term;
  const at = (row: JournalRow) => valueAt(row.message?.data, path);
  if (operator === "~") return (row) => values.some((value) => contains(shown(at(row)), value));
  if (operator === ":" || operator === "=") return (row) => values.some((value) => isLike(value, shown(at(row))));
  return numberTest(term, (row) => {
    const value = at(row);
    return typeof value === "number" ? value : undefined;
  });
}

function valueAt(data: Json | undefined, path: readonly string[]): Json | undefined {
  let value = data;
  for (const key of path) {
    if (Array.isArray(value)) value = value[Number(key)];
    else if (value !== undefined && isJsonObject(value) && Object.hasOwn(value, key)) value = value[key];
    else return undefined;
  }
  return value;
}

function shown(value: Json | undefined): string | undefined {
  return value === undefined || typeof value === "string" ? value : JSON.stringify(value);
}

function numberTest(term: Term, read: (row: JournalRow) => number | undefined): Test {
  const { operator, values } = term;
  const bounds = values.map(Number);
  if (bounds.some(Number.isNaN)) throw problem(term, "takes a number");
  return (row) => {
    const value = read(row);
    return value !== undefined && bounds.some((bound) => compares(operator, value, bound));
  };
}

function compares(operator: Operator, value: number, bound: number): boolean {
  switch (operator) {
    case ">":
      return value > bound;
    case ">=":
      return value >= bound;
    case "<":
      return value < bound;
    case "<=":
      return value <= bound;
    case ":":
    case "=":
    case "~":
      return value === bound;
  }
}

// Bounds and indexes ------------------------------------------------------------------------------------------------

function boundsOf(terms: readonly Term[], nowMs: number): JournalBounds {
  let bounds: JournalBounds = {};
  for (const term of terms) {
    if (term.isNegated) continue;
    if (term.name === "since") bounds = narrower(bounds, { fromMs: timeOf(term, nowMs) });
    if (term.name === "before") bounds = narrower(bounds, { beforeMs: timeOf(term, nowMs) });
    if (term.name === "id") bounds = narrower(bounds, idsOf(term));
  }
  return bounds;
}

function narrower(one: JournalBounds, other: JournalBounds): JournalBounds {
  const least = (a: number | undefined, b: number | undefined) => (a === undefined ? b : Math.min(a, b ?? a));
  const most = (a: number | undefined, b: number | undefined) => (a === undefined ? b : Math.max(a, b ?? a));
  const all = {
    fromId: most(one.fromId, other.fromId),
    toId: least(one.toId, other.toId),
    fromMs: most(one.fromMs, other.fromMs),
    beforeMs: least(one.beforeMs, other.beforeMs),
  };
  return Object.fromEntries(Object.entries(all).filter(([, bound]) => bound !== undefined));
}

function withinTest({ fromId, toId, fromMs, beforeMs }: JournalBounds): Test {
  return ({ id, createdAtMs }) =>
    (fromId === undefined || id >= fromId) &&
    (toId === undefined || id <= toId) &&
    (fromMs === undefined || createdAtMs >= fromMs) &&
    (beforeMs === undefined || createdAtMs < beforeMs);
}

function timeOf(term: Term, nowMs: number): number {
  const [value = "", ...others] = term.values;
  requireColon(term);
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(value) ?? [];
  if (count !== undefined) return nowMs - Number(count) * (UNIT_MS[unit as string] as number);
  const at = /^\d{4}-\d{2}-\d{2}/.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(at) || others.length > 0)
    throw problem(term, "takes an age like 15m or 2h, or a time like 2026-11-19T12:00:00Z");
  return at;
}

function idsOf(term: Term): JournalBounds {
  const [value = "", ...others] = term.values;
  requireColon(term);
  const [, from, to] = /^(\d{0,15})\.\.(\d{0,15})$/.exec(value) ?? /^((\d{1,15}))$/.exec(value) ?? [];
  if ((from ?? "") + (to ?? "") === "" || others.length > 0)
    throw problem(term, "takes an id, or a range like 100..200");
  return { ...(from === "" ? {} : { fromId: Number(from) }), ...(to === "" ? {} : { toId: Number(to) }) };
}

function queryOf(terms: readonly Term[]): JournalFilter["query"] {
  const only = (name: string): string | undefined => {
    const term = terms.find((one) => one.name === name && !one.isNegated && one.operator !== "~");
    const [value] = term?.values ?? [];
    return term?.values.length === 1 && value !== undefined && !value.endsWith("*") ? value : undefined;
  };
  const topic = only("topic");
  const status = only("status");
  const given = {
    topic: topic !== undefined && isWildcard(topic) ? undefined : topic,
    // Most rows are done, and of other outcomes: an index would find no fewer rows.
    status: status === "failed" || status === "pending" || status === "processing" ? status : undefined,
    correlation: only("corr"),
    causation: only("cause"),
    messageId: only("message"),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
