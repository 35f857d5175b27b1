/**
 * Statements on the user's tables in the same file, inside of the transaction of a commit. A savepoint takes them back
 * if one is refused, so that the other commits of the batch are not run again. SPEC: U90-U94.
 */
import { thrownText } from "../../message/error-data.ts";
import type { CommitOutcome } from "../commit.ts";
import { rowsMoved, type SqlBound, type SqlStatement, sqlRefused, sqlText } from "../sql-statement.ts";
import type { UserTables } from "../store.ts";
import type { SqliteConnection } from "./connection.ts";
import { SCHEMA } from "./schema.ts";
import { engineTrouble } from "./sqlite-error.ts";

const OWN: ReadonlySet<string> = new Set([...SCHEMA.matchAll(/CREATE (?:TABLE|VIEW) (\w+)/g)].map(([, name]) => name!));

export const USER_TABLES: UserTables = {
  isReserved: (table) => OWN.has(table.startsWith("main.") ? table.slice("main.".length) : table),
};

/** Runs the statements, then `write`. All is undone if one of them is refused. */
export function runWithStatements(
  connection: SqliteConnection,
  statements: readonly SqlStatement[],
  write: () => CommitOutcome,
): CommitOutcome {
  connection.exec("SAVEPOINT user_statements");
  const outcome = runAll(connection, statements) ?? write();
  connection.exec(
    outcome.kind === "committed" ? "RELEASE user_statements" : "ROLLBACK TO user_statements; RELEASE user_statements",
  );
  return outcome;
}

function runAll(connection: SqliteConnection, statements: readonly SqlStatement[]): CommitOutcome | undefined {
  for (const statement of statements) {
    let changed: number;
    try {
      changed = connection.runOnce(
        sqlText(statement, () => "?"),
        statement.values.map(value),
      );
    } catch (error) {
      // A full disk or a lock concerns the batch.
      if (engineTrouble(error) !== undefined) throw error;
      return sqlRefused(statement, thrownText(error));
    }
    const moved = rowsMoved(statement, changed);
    if (moved !== undefined) return moved;
  }
  return undefined;
}

/** Whole numbers are bound as integers: the driver makes floating-point values of numbers. */
function value(bound: SqlBound): string | number | bigint | null {
  if (typeof bound === "boolean" || Number.isSafeInteger(bound)) return BigInt(bound as boolean | number);
  return bound as Exclude<SqlBound, boolean>;
}
