/** An app for kernels in processes of their own, started with `millrace start`. */
import { app } from "../../src/app/app.ts";
import { type } from "../../src/app/event-definition.ts";
import { on } from "../../src/app/on.ts";

export const shop = app("shop", ({ cell, computed, event }) => {
  const prices = cell<number[]>("prices", []);
  const paid = cell<number[]>("paid", []);
  const sum = computed("sum", () => prices.get().reduce((a, b) => a + b, 0));
  const placed = event("Order.Placed", type<{ price: number }>());
  return {
    commands: {
      "Shop.Order": (order: { price: number }, tx) => {
        if (order.price > 100) return tx.refuse("TOO_DEAR", { data: { most: 100 } });
        tx.update(prices, (all) => [...all, order.price]);
        tx.emit(placed, order);
        return { orders: tx.get(prices).length };
      },
    },
    queries: {
      "Shop.Sum": () => sum.get(),
      "Shop.Paid": () => paid.get(),
    },
    on: {
      payment: on(placed, {
        run: async ({ price }) => price * 2,
        commit: (result, tx) => tx.update(paid, (all) => [...all, result]),
        retry: 5,
      }),
    },
  };
});
