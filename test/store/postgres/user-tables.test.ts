/** `tx.sql` on the tables of a user in the kernels' database. */
import { describe, expect, test } from "vitest";
import { type AppTx, app, open } from "../../../src/index.ts";
import { describeUserTables, type UserDatabase } from "../../app/describe-user-tables.ts";
import { freshSchema, NO_POSTGRES, testServer, type UserClient, userClient } from "./server.ts";

const server = testServer();

/** A database of its own: the user's tables have fixed names. */
async function userDatabase(): Promise<UserDatabase & { readonly client: UserClient }> {
  const name = freshSchema();
  await using admin = await userClient(server.url);
  await admin.query(`CREATE DATABASE ${name}`);
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  const client = await userClient(url.href);
  return {
    options: { store: url.href },
    client,
    sql: async (text) => (await client.query(text)).rows.map((row) => ({ ...row })),
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  };
}

if (NO_POSTGRES === undefined) {
  describeUserTables("Postgres", userDatabase, (count) =>
    Array.from({ length: count }, (_, at) => `$${at + 1}`).join(", "),
  );
}

describe.skipIf(NO_POSTGRES !== undefined)("tx.sql beside other transactions", () => {
  test("[U92] a statement that waits for a row of another transaction is given up, and made when the row is free", async () => {
    await using database = await userDatabase();
    await database.sql("CREATE TABLE item (name text PRIMARY KEY, stock integer NOT NULL)");
    await database.sql("INSERT INTO item VALUES ('pen', 3)");
    const shop = app("shop", ({ cell }) => {
      const counted = cell<number>("counted", 0);
      return {
        commands: {
          "Shop.Take": (_: null, tx: AppTx) => void tx.sql`UPDATE item SET stock = stock - 1`.affects(1),
          "Shop.Count": (_: null, tx: AppTx) => {
            tx.update(counted, (n) => n + 1);
            return tx.get(counted);
          },
        },
      };
    });
    const kernel = await open(shop, database.options);
    await database.sql("BEGIN");
    await database.sql("UPDATE item SET stock = stock + 1");
    const taken = kernel.command("Shop.Take");
    // Other commands are answered while the row is held.
    const counts: number[] = [];
    for (let n = 0; n < 3; n++) counts.push(await kernel.command("Shop.Count"));
    expect(counts).toEqual([1, 2, 3]);
    await database.sql("COMMIT");
    await taken;
    expect(await database.sql("SELECT stock FROM item")).toEqual([{ stock: 3 }]);
    await kernel.close();
  });
});
