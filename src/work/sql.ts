/** `tx.sql`: statements on the user's own tables, which run with the handler's commit. SPEC: U90-U94. */
import { SQL_STATEMENT_BYTES_MAX, TX_STATEMENTS_MAX } from "../limits.ts";
import type { Json } from "../message/json.ts";
import { cloneData } from "../message/json-copy.ts";
import { problemText, show, within } from "../message/problem.ts";
import { type SqlBound, type SqlStatement, sqlProblem } from "../store/sql-statement.ts";
import type { Attempt } from "./attempt.ts";
import { WorkError } from "./work-error.ts";

/** A value of a statement. Objects and arrays are bound as JSON text, a `Date` as ISO 8601. */
export type SqlValue = Json | bigint | Date;

/** A statement that will run with the commit. */
export interface SqlRun {
  /** It must change so many rows (or return them); otherwise the handler runs again. */
  affects(rows: number): void;
}

/**
 * Runs a statement on tables of your own, in the transaction of the handler's commit. It returns no rows: it has not
 * run yet. As a template, each value is bound; as a text, it has the database's placeholders.
 */
export interface Sql {
  (text: TemplateStringsArray, ...values: readonly SqlValue[]): SqlRun;
  (text: string, values?: readonly SqlValue[]): SqlRun;
}

export function sqlOf(attempt: Attempt): Sql {
  return (text: TemplateStringsArray | string, ...rest: readonly unknown[]): SqlRun => {
    attempt.requireOpen();
    const { userTables } = attempt.replica;
    if (userTables === undefined)
      throw misuse("this store is in memory and has no tables; open the kernel on a file or a postgres:// URL");
    const given = typeof text === "string" ? ((rest[0] ?? []) as readonly unknown[]) : rest;
    const parts = typeof text === "string" ? [text] : [...text];
    const problem = sqlProblem(parts, (name) => userTables.isReserved(name));
    if (problem !== undefined) throw misuse(problem);
    const statement: SqlStatement = { parts, values: given.map(bound), rows: undefined };
    const { statements } = attempt.transaction;
    if (statements.length >= TX_STATEMENTS_MAX)
      throw misuse(`a transaction runs at most ${TX_STATEMENTS_MAX} statements; send a command to itself for the rest`);
    const bytes = JSON.stringify(statement).length;
    if (bytes > SQL_STATEMENT_BYTES_MAX)
      throw misuse(`a statement with its values has at most ${SQL_STATEMENT_BYTES_MAX} characters, got ${bytes}`);
    statements.push(statement);
    return {
      affects: (rows) => {
        attempt.requireOpen();
        if (!Number.isSafeInteger(rows) || rows < 0) throw misuse(`affects: needs a number of rows, got ${show(rows)}`);
        statement.rows = rows;
      },
    };
  };
}

function bound(value: unknown, at: number): SqlBound {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      if (Number.isFinite(value)) return value;
      break;
    case "bigint":
      return String(value);
    case "object":
      if (value === null) return null;
      if (value instanceof Date && !Number.isNaN(value.getTime())) return value.toISOString();
      return jsonOf(value, at);
  }
  throw misuse(`value ${at + 1} of a statement is text, a number, a boolean, null, JSON or a Date; got ${show(value)}`);
}

function jsonOf(value: object, at: number): string {
  const copy = cloneData(value);
  if (copy.kind === "impure") throw misuse(problemText(within(`value ${at + 1}`, copy.problem)));
  return JSON.stringify(copy.value);
}

function misuse(message: string): WorkError {
  return new WorkError("WORK_MISUSE", `tx.sql: ${message}`);
}
