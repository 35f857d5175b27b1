/** `tx.sql`: one suite for every store that has tables of the user. */
import { describe, expect, test } from "vitest";
import { type AppTx, app, type Json, on, open, type } from "../../src/index.ts";
import type { OpenOptions } from "../../src/kernel/open-app.ts";

export interface UserDatabase extends AsyncDisposable {
  readonly options: OpenOptions;
  /** Runs a statement on a connection of the user's own, without values. */
  sql(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
}

const TABLES = [
  "CREATE TABLE item (name text PRIMARY KEY, stock integer NOT NULL)",
  "CREATE TABLE sale (id text PRIMARY KEY, item text NOT NULL, note text)",
  "INSERT INTO item VALUES ('pen', 3), ('ink', 100)",
];

interface Order {
  readonly item: string;
  readonly id: string;
}

function shopOf() {
  const runs: string[] = [];
  let before: () => Promise<void> = async () => {};
  const shop = app("shop", ({ cell, event }) => {
    const sold = cell<string[]>("sold", []);
    const shipped = cell<string[]>("shipped", []);
    const placed = event("Order.Placed", type<Order>());
    return {
      commands: {
        "Shop.Order": async ({ item, id }: Order, tx: AppTx) => {
          runs.push(id);
          tx.update(sold, (all) => [...all, id]);
          tx.sql`INSERT INTO sale (id, item) VALUES (${id}, ${item})`;
          tx.sql`UPDATE item SET stock = stock - 1 WHERE name = ${item} AND stock > 0`.affects(1);
          tx.emit(placed, { item, id });
          await before();
          if (id === "refused") return tx.refuse("NO");
          if (id === "thrown") throw new Error("no");
          return { sold: tx.get(sold).length };
        },
        "Shop.Run": ({ text, values }: { text: string; values?: Json[] }, tx: AppTx) => {
          tx.sql(text, values);
          return null;
        },
      },
      queries: { "Shop.Sold": () => sold.get(), "Shop.Shipped": () => shipped.get() },
      on: {
        ship: on(placed, ({ id }, tx) => {
          tx.update(shipped, (all) => [...all, id]);
          tx.sql`UPDATE sale SET note = ${{ shipped: true }} WHERE id = ${id}`.affects(1);
        }),
      },
    };
  });
  return { shop, runs, beforeCommit: (work: () => Promise<void>) => (before = work) };
}

export function describeUserTables(
  store: string,
  make: () => Promise<UserDatabase>,
  values: (n: number) => string,
): void {
  const opened = async () => {
    const database = await make();
    for (const text of TABLES) await database.sql(text);
    const parts = shopOf();
    const kernel = await open(parts.shop, database.options);
    return {
      ...parts,
      kernel,
      sql: database.sql,
      [Symbol.asyncDispose]: async () => {
        await kernel.close({ graceMs: 0 });
        await database[Symbol.asyncDispose]();
      },
    };
  };

  describe(`tx.sql on ${store}`, () => {
    test("[U90] statements commit with the handler's writes and events, or not at all", async () => {
      await using at = await opened();
      expect(await at.kernel.command("Shop.Order", { item: "pen", id: "a" })).toEqual({ sold: 1 });
      for (const id of ["refused", "thrown"]) {
        expect(await at.kernel.safeCommand("Shop.Order", { item: "pen", id })).toMatchObject({ ok: false });
      }
      expect(await at.sql("SELECT id, item FROM sale")).toEqual([{ id: "a", item: "pen" }]);
      expect(await at.sql("SELECT stock FROM item WHERE name = 'pen'")).toEqual([{ stock: 2 }]);
      expect(await at.kernel.query("Shop.Sold")).toEqual(["a"]);
      await at.kernel.kernel.idle();
      expect(await at.kernel.query("Shop.Shipped")).toEqual(["a"]);
      expect(await at.sql("SELECT note FROM sale")).toEqual([{ note: '{"shipped":true}' }]);
    });

    test("[U90] a repeated command runs its statements once", async () => {
      await using at = await opened();
      const order = () => at.kernel.command("Shop.Order", { item: "pen", id: "a" }, { id: "one" });
      const answers = [await order(), await order(), await order()];
      expect(answers).toEqual(answers.map(() => ({ sold: 1 })));
      expect(await at.sql("SELECT stock FROM item WHERE name = 'pen'")).toEqual([{ stock: 2 }]);
    });

    test("[U91] where a statement changes another number of rows than it must, the handler runs again", async () => {
      await using at = await opened();
      await at.sql("UPDATE item SET stock = 0 WHERE name = 'pen'");
      at.beforeCommit(async () => {
        // Restocked once the first attempt has failed.
        if (at.runs.length === 2) await at.sql("UPDATE item SET stock = 1 WHERE name = 'pen'");
      });
      expect(await at.kernel.command("Shop.Order", { item: "pen", id: "a" })).toEqual({ sold: 1 });
      expect(at.runs.length).toBeGreaterThanOrEqual(2);
      expect(await at.sql("SELECT stock FROM item WHERE name = 'pen'")).toEqual([{ stock: 0 }]);
      expect(await at.sql("SELECT id FROM sale")).toEqual([{ id: "a" }]);
    });

    test("[U92] a statement that the database refuses fails its handler alone, and the others of the batch commit", async () => {
      await using at = await opened();
      await at.sql("INSERT INTO sale VALUES ('7', 'ink', NULL)");
      const ids = Array.from({ length: 12 }, (_, n) => String(n));
      const answers = await Promise.all(ids.map((id) => at.kernel.safeCommand("Shop.Order", { item: "ink", id })));
      const failed = answers.flatMap((answer, n) => (answer.ok ? [] : [[n, answer.failure.message]]));
      expect(failed).toEqual([[7, expect.stringContaining("INSERT INTO sale (id, item) VALUES (?, ?)")]]);
      expect(await at.sql("SELECT stock FROM item WHERE name = 'ink'")).toEqual([{ stock: 89 }]);
      const sold = await at.kernel.query("Shop.Sold");
      expect([...sold].sort()).toEqual(ids.filter((id) => id !== "7").sort());
    });

    test("[U93] values are bound: as text, number, boolean, null and JSON", async () => {
      await using at = await opened();
      const hostile = "x'); DELETE FROM item; --";
      await at.kernel.command("Shop.Run", {
        text: `INSERT INTO sale VALUES (${values(3)})`,
        values: [hostile, true, [1]],
      });
      const [row] = await at.sql("SELECT * FROM sale");
      expect(row).toEqual({ id: hostile, item: expect.stringMatching(/^(?:1|true)$/), note: "[1]" });
      expect(await at.sql("SELECT count(*) AS n FROM item")).toHaveLength(1);
    });

    test("[U94] text that is not one statement on tables of the user is refused at once", async () => {
      await using at = await opened();
      const refused = async (text: string, problem: string) => {
        const answer = await at.kernel.safeCommand("Shop.Run", { text });
        expect(answer.ok ? "taken" : answer.failure.message).toContain(problem);
      };
      await refused("DROP TABLE item", "begins with");
      await refused("COMMIT", "begins with");
      await refused("", "begins with");
      await refused("DELETE FROM item; DELETE FROM sale", "several statements");
      const own = store === "SQLite" ? ["event_journal", '"document"'] : ["millrace.journal", "millrace.writer"];
      await refused(`/* x */ INSERT INTO ${own[0]} SELECT * FROM item`, "table of the store");
      await refused(`WITH x AS (SELECT 1) UPDATE ${own[1]} SET id = 1`, "table of the store");
      await at.kernel.command("Shop.Run", { text: "DELETE FROM item WHERE name = 'a;b' -- ; \n;" });
      expect(await at.sql("SELECT name FROM item ORDER BY name")).toEqual([{ name: "ink" }, { name: "pen" }]);
    });
  });
}
