// An order service: stock and orders, derived totals, a payment with retries and compensation, and a daily report.
import { app, cron, on, type } from "millrace";
import { charge } from "./bank.ts";

type Order = { item: string; price: number; status: "placed" | "paid" | "failed" };

export const shop = app("shop", ({ cell, computed, event }) => {
  const stock = cell<Record<string, number>>("stock", { lamp: 2, desk: 1 });
  const orders = cell<Record<string, Order>>("orders", {});
  const reports = cell<string[]>("reports", []);
  const totals = computed("totals", () => {
    const all = Object.values(orders.get());
    const paid = all.filter(({ status }) => status === "paid");
    return { orders: all.length, paid: paid.length, income: paid.reduce((sum, { price }) => sum + price, 0) };
  });
  const placed = event("Order.Placed", type<{ id: string; item: string; price: number }>());
  return {
    commands: {
      "Shop.Order": (order: { item: string; price: number }, tx) => {
        const left = tx.get(stock)[order.item] ?? 0;
        if (left === 0) return tx.refuse("SOLD_OUT", { data: { item: order.item } });
        const id = tx.newId();
        tx.set(stock.key(order.item), left - 1);
        tx.set(orders.key(id), { ...order, status: "placed" });
        tx.emit(placed, { id, ...order });
        return { id, left: left - 1 };
      },
    },
    queries: {
      "Shop.Totals": () => totals.get(),
      "Shop.Stock": () => stock.get(),
      "Shop.Reports": () => reports.get(),
    },
    on: {
      payment: on(placed, {
        run: ({ price }, { idempotencyKey, signal }) => charge(price, { idempotencyKey, signal }),
        commit: (_receipt, tx, { id }) => tx.set(orders.key(id).key("status"), "paid"),
        failed: (_failure, tx, { id, item }) => {
          tx.update(stock.key(item), (left = 0) => left + 1);
          tx.set(orders.key(id).key("status"), "failed");
        },
        retry: 3,
        timeout: "10 s",
      }),
    },
    schedules: {
      report: cron("0 9 * * *", ({ at }, tx) => {
        const { orders, income } = tx.get(totals);
        tx.push(reports, `${new Date(at).toISOString()}: ${orders} orders, income ${income}`);
      }),
    },
  };
});
