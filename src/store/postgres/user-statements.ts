/**
 * Statements on the user's tables, inside of the transaction of a commit. A statement that the database refuses rolls
 * the transaction back, and its commit alone is rejected. SPEC: U90-U94.
 *
 * The writer of a kernel waits for the statement, so waiting for a lock and running are bounded. Both are set for this
 * transaction only, after the store's own locks were taken.
 */
import { type Rejection, rejected } from "../rejection.ts";
import { rowsMoved, type SqlStatement, sqlRefused, sqlText } from "../sql-statement.ts";
import { databaseError } from "./database-error.ts";
import type { DatabaseLink } from "./link.ts";

const LOCK_WAIT_MS = 2_000;
const STATEMENT_MS = 10_000;
/** The lock was not free in time; the statement took too long. */
const OUT_OF_TIME: ReadonlySet<string> = new Set(["55P03", "57014"]);

/** Rolls the transaction back. */
class StatementRefused extends Error {
  override readonly name = "StatementRefused";
  readonly rejection: Rejection;

  constructor(rejection: Rejection) {
    super(rejection.message);
    this.rejection = rejection;
  }
}

export async function runStatements(link: DatabaseLink, statements: readonly SqlStatement[]): Promise<void> {
  await link.query(
    "SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)",
    [String(LOCK_WAIT_MS), String(STATEMENT_MS)],
    "millrace statement limits",
  );
  for (const statement of statements) {
    const refusal = rowsMoved(statement, await run(link, statement));
    if (refusal !== undefined) throw new StatementRefused(refusal);
  }
}

async function run(link: DatabaseLink, statement: SqlStatement): Promise<number> {
  try {
    return await link.execute(
      sqlText(statement, (at) => `$${at}`),
      statement.values,
    );
  } catch (thrown) {
    const error = databaseError(thrown);
    if (OUT_OF_TIME.has(error.code ?? "")) {
      const why = `${error.message}; other transactions hold the rows, or the statement is slow`;
      throw new StatementRefused(rejected("failed", "store-busy", sqlRefused(statement, why).message));
    }
    if (error.kind !== "wrong") throw error;
    throw new StatementRefused(sqlRefused(statement, error.message));
  }
}

/** Why a commit is rejected, if a statement of its own was refused. */
export function statementRejection(error: unknown): Rejection | undefined {
  return error instanceof StatementRefused ? error.rejection : undefined;
}
