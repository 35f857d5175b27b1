import { app, on, open, type } from "millrace";

const shop = app("shop", ({ cell, computed, event }) => {
  const prices = cell<number[]>("prices", []);
  const sum = computed("sum", () => prices.get().reduce((a, b) => a + b, 0));
  const placed = event("Order.Placed", type<{ price: number }>());
  return {
    commands: {
      "Shop.Order": (order: { price: number }, tx) => {
        tx.update(prices, (all) => [...all, order.price]); // The write, the event and the answer
        tx.emit(placed, order); //                            are one commit: all of it, once, or nothing.
        return { orders: tx.get(prices).length };
      },
    },
    queries: { "Shop.Sum": () => sum.get() },
    on: { mail: on(placed, ({ price }) => console.log("mail about", price), { retry: 5 }) },
  };
});

await using kernel = await open(shop, { file: "shop.db" });
kernel.live("Shop.Sum").subscribe((sum) => console.log("sum is now", sum));
const { orders } = await kernel.command("Shop.Order", { price: 30 }); // Durable when it resolves.
console.log(orders, await kernel.query("Shop.Sum"));
