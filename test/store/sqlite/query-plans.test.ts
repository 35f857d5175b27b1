/** The plans of the journal's statements: the work of a claim does not depend on the rows that it does not take. */
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { SqliteConnection, type Statement } from "../../../src/store/sqlite/connection.ts";
import { journalStatements } from "../../../src/store/sqlite/journal-statements.ts";
import { SCHEMA } from "../../../src/store/sqlite/schema.ts";

class ListedConnection extends SqliteConnection {
  readonly texts = new Map<Statement, string>();

  override prepare(sql: string): Statement {
    const statement = super.prepare(sql);
    this.texts.set(statement, sql);
    return statement;
  }
}

const database = new DatabaseSync(":memory:");
database.exec(SCHEMA);
const connection = new ListedConnection(database);
const plans = new Map(
  Object.entries(journalStatements(connection)).map(([name, statement]) => {
    const rows = database.prepare(`EXPLAIN QUERY PLAN ${connection.texts.get(statement)}`).all();
    return [name, rows.map(({ detail }) => String(detail))];
  }),
);

/** Runs once, after a person has emptied the engine's table of counters. */
const MAY_READ_ALL = ["findHead"];

describe("the journal's statements", () => {
  test.each([
    ["claimable", "event_journal USING INDEX idx_ej_status_created (status=? AND next_attempt_at=? AND kind=?)"],
    ["suspects", "event_journal USING INDEX idx_ej_status_created (status=? AND next_attempt_at=? AND kind=?)"],
    ["awaited", "d USING COVERING INDEX delivery_awaits (awaits=?)"],
    ["unpark", "event_journal USING INTEGER PRIMARY KEY (rowid=?)"],
    ["releaseRetries", "event_journal USING INDEX idx_ej_status_created (status=? AND next_attempt_at<?)"],
    ["abandon", "event_journal USING INDEX idx_ej_processing (status=? AND lease=?)"],
  ])("[S86] %s finds its rows by an index", (name, search) => {
    expect(plans.get(name)?.[0]).toBe(`SEARCH ${search}`);
  });

  test("[S86] no statement reads a whole table of rows, and none sorts", () => {
    expect(plans.size).toBeGreaterThan(30);
    const readsAll = [...plans].filter(
      ([name, plan]) =>
        !MAY_READ_ALL.includes(name) &&
        plan.some((detail) => /^SCAN (event_journal|delivery|d|j)\b|TEMP B-TREE/.test(detail)),
    );
    expect(readsAll).toEqual([]);
  });
});
