/** Connection poolers in transaction mode: each transaction on another connection, without LISTEN. */
import { describe, expect, test } from "vitest";
import { type AppTx, app, on, open, type } from "../../../src/index.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { freshSchema, NO_POSTGRES, testServer, userClient } from "./server.ts";
import { TransactionPooler } from "./transaction-pooler.ts";

const server = testServer();

const shop = app("shop", ({ cell, event }) => {
  const prices = cell<number[]>("prices", []);
  const handled = cell<number[]>("handled", []);
  const placed = event("Order.Placed", type<{ price: number }>());
  return {
    commands: {
      "Shop.Touch": (name: string, tx: AppTx) => void tx.sql`INSERT INTO public.touched VALUES (${name})`,
      "Shop.Order": (order: { price: number }, tx: AppTx) => {
        tx.push(prices, order.price);
        tx.emit(placed, order);
      },
    },
    queries: { "Shop.Prices": () => prices.get(), "Shop.Handled": () => handled.get() },
    on: { count: on(placed, ({ price }, tx) => tx.push(handled, price)) },
  };
});

describe.skipIf(NO_POSTGRES !== undefined)("poolers in transaction mode", () => {
  test("[S288] two kernels behind a pooler in transaction mode share state and events", async () => {
    await using pooler = await TransactionPooler.start(server.url);
    const schema = freshSchema();
    const url = `${pooler.urlOf(server.url)}?notice=poll`;
    const stores = [1, 2].map(() => openPostgresStore({ url, schema, tuning: { closeWaitMs: 1_000 } }));
    const kernels = [await open(shop, { store: await stores[0]! }), await open(shop, { store: await stores[1]! })];
    const orders = 20;
    const all = Array.from({ length: orders }, (_, n) => n);
    for (const n of all) await kernels[n % 2]!.command("Shop.Order", { price: n });
    for (const kernel of kernels) {
      while ((await kernel.query("Shop.Handled")).length < orders);
      expect(await kernel.query("Shop.Prices")).toEqual(all);
      expect([...(await kernel.query("Shop.Handled"))].sort((a, b) => a - b)).toEqual(all);
    }
    // Otherwise each client would have had a connection of its own.
    expect(pooler.moved).toBeGreaterThan(orders);
    for (const kernel of kernels) await kernel.close();
    await expect(openPostgresStore({ url: `${server.url}?notice=shout` })).rejects.toMatchObject({
      code: "STORE_MISUSE",
      message: expect.stringMatching(/notice=listen or notice=poll/),
    });
  });

  for (const usual of ["on", "off"]) {
    test(`[S288] stores behind a pooler whose sessions have synchronous_commit ${usual} commit by their own durability`, async () => {
      await using pooler = await TransactionPooler.start(server.url, 2);
      await using user = await userClient(server.url);
      const at = new URL(pooler.urlOf(server.url));
      at.searchParams.set("notice", "poll");
      at.searchParams.set("options", `-c synchronous_commit=${usual}`);
      const expected: string[] = [];
      const kernels = [];
      await user.query("DROP TABLE IF EXISTS public.levels, public.touched");
      await user.query("CREATE TABLE public.levels (schema text, level text)");
      await user.query("CREATE TABLE public.touched (name text)");
      await user.query(`CREATE OR REPLACE FUNCTION public.note_level() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          INSERT INTO public.levels VALUES (TG_TABLE_SCHEMA, current_setting('synchronous_commit'));
          RETURN NULL;
        END $$`);
      for (const durability of ["power", "process"] as const) {
        const schema = freshSchema();
        const store = await openPostgresStore({ url: at.href, schema, durability, tuning: { closeWaitMs: 1_000 } });
        kernels.push(await open(shop, { store }));
        // Each batch changes the row of its writer.
        await user.query(
          `CREATE TRIGGER note_level AFTER UPDATE ON ${schema}.writer FOR EACH ROW EXECUTE FUNCTION public.note_level()`,
        );
        expected.push(`${schema} ${durability === "power" ? "on" : "off"}`);
      }
      for (let n = 0; n < 10; n++) {
        for (const kernel of kernels) {
          await kernel.command("Shop.Order", { price: n });
          await kernel.command("Shop.Touch", String(n));
        }
      }
      const { rows } = await user.query("SELECT DISTINCT schema || ' ' || level AS level FROM public.levels");
      expect(rows.map(({ level }) => String(level)).sort()).toEqual(expected.sort());
      expect(pooler.moved).toBeGreaterThan(20);
      for (const kernel of kernels) await kernel.close();
      // The sessions keep their setting for others.
      await using other = await userClient(pooler.urlOf(server.url));
      for (let n = 0; n < 4; n++) {
        expect((await other.query("SHOW synchronous_commit")).rows).toEqual([{ synchronous_commit: usual }]);
      }
    });
  }
});
