/** Connection poolers in transaction mode: each transaction on another connection, without LISTEN. */
import { describe, expect, test } from "vitest";
import { type AppTx, app, on, open, type } from "../../../src/index.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { freshSchema, NO_POSTGRES, testServer } from "./server.ts";
import { TransactionPooler } from "./transaction-pooler.ts";

const server = testServer();

const shop = app("shop", ({ cell, event }) => {
  const prices = cell<number[]>("prices", []);
  const handled = cell<number[]>("handled", []);
  const placed = event("Order.Placed", type<{ price: number }>());
  return {
    commands: {
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
});
