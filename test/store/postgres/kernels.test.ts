/** Kernels beside each other on one database, opened by the URL alone. */
import { describe, expect, test } from "vitest";
import { type AppTx, app, on, open, type } from "../../../src/index.ts";
import { CuttingProxy } from "./cutting-proxy.ts";
import { NO_POSTGRES, testServer } from "./server.ts";

const server = testServer();

/** An app that counts orders, and the events that its handler has got. */
function shopOf(seen: number[]) {
  return app("shop", ({ cell, event }) => {
    const prices = cell<number[]>("prices", []);
    const handled = cell<number[]>("handled", []);
    const placed = event("Order.Placed", type<{ price: number }>());
    return {
      commands: {
        "Shop.Order": (order: { price: number }, tx: AppTx) => {
          tx.update(prices, (all) => [...all, order.price]);
          tx.emit(placed, order);
          return { orders: tx.get(prices).length };
        },
      },
      queries: { "Shop.Prices": () => prices.get(), "Shop.Handled": () => handled.get() },
      on: {
        count: on(placed, ({ price }, tx) => {
          tx.update(handled, (all) => [...all, price]);
          seen.push(price);
        }),
      },
    };
  });
}

describe.skipIf(NO_POSTGRES !== undefined)("kernels on one database", () => {
  test("[S269] two kernels share an app's state, and each event takes effect once, also through cut connections", async () => {
    const proxy = await CuttingProxy.start(server.url);
    const seen: number[] = [];
    const first = await open(shopOf(seen), { store: server.url });
    const second = await open(shopOf(seen), { store: proxy.urlOf(server.url) });
    const orders = 40;
    const answers: number[] = [];
    for (let n = 0; n < orders; n++) {
      if (n % 10 === 5) proxy.cut();
      const { orders: count } = await [first, second][n % 2]!.command("Shop.Order", { price: n });
      answers.push(count);
    }
    // Each order saw all earlier ones, regardless of the kernel that took them.
    expect(answers).toEqual(Array.from({ length: orders }, (_, n) => n + 1));
    const all = Array.from({ length: orders }, (_, n) => n);
    for (;;) {
      const handled = await first.query("Shop.Handled");
      if (handled.length >= orders) break;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    for (const kernel of [first, second]) {
      expect(await kernel.query("Shop.Prices")).toEqual(all);
    }
    expect([...(await first.query("Shop.Handled"))].sort((a, b) => a - b)).toEqual(all);
    await first.close();
    await second.close();
    await proxy.close();
  });
});
