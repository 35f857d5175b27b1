/** `tx.sql` on the tables of a user in the kernel's own file, and its refusal where a store has no tables. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { type AppTx, app } from "../../src/index.ts";
import { scratchFolder } from "../repo/program.ts";
import { openOn } from "./app-setup.ts";
import { describeUserTables, type UserDatabase } from "./describe-user-tables.ts";

async function userDatabase(): Promise<UserDatabase> {
  const file = join(scratchFolder(), "app.db");
  // The kernel makes its tables first: a file of another program is refused.
  await (
    await openOn(
      "sqlite",
      app("none", () => ({})),
      { file },
    )
  ).close();
  const database = new DatabaseSync(file, { timeout: 60_000 });
  return {
    options: { file },
    sql: async (text) =>
      database
        .prepare(text)
        .all()
        .map((row) => ({ ...row })),
    [Symbol.asyncDispose]: async () => database.close(),
  };
}

describeUserTables("SQLite", userDatabase, (count) => Array.from({ length: count }, () => "?").join(", "));

test("[U94] a store in memory has no tables, and says so", async () => {
  const kernel = await openOn(
    "memory",
    app("shop", () => ({ commands: { "Shop.Run": (_: null, tx: AppTx) => void tx.sql`SELECT 1` } })),
  );
  const answer = await kernel.safeCommand("Shop.Run");
  expect(answer.ok ? "taken" : answer.failure.message).toContain("no tables");
});

test("[U92] a deferred constraint of the user fails the commit, and the store goes on", async () => {
  const database = await userDatabase();
  await database.sql("CREATE TABLE child (id text, parent text REFERENCES child (id) DEFERRABLE INITIALLY DEFERRED)");
  await database.sql("CREATE UNIQUE INDEX child_id ON child (id)");
  const orphans = app("orphans", ({ cell }) => {
    const made = cell<number>("made", 0);
    return {
      commands: {
        "Child.Make": ({ parent }: { parent: string }, tx: AppTx) => {
          tx.update(made, (n) => n + 1);
          tx.sql`INSERT INTO child VALUES ('a', ${parent})`;
          return null;
        },
      },
      queries: { "Child.Made": () => made.get() },
    };
  });
  const kernel = await openOn("sqlite", orphans, database.options);
  expect(await kernel.safeCommand("Child.Make", { parent: "nobody" })).toMatchObject({ ok: false });
  await kernel.command("Child.Make", { parent: "a" });
  expect(await kernel.query("Child.Made")).toBe(1);
  await database[Symbol.asyncDispose]();
});
