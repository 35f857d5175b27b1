/** A whole kernel in one file: a capability with state, a derived value, an event and its subscriber. */

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Kernel } from "millrace/kernel";
import { capability, transactional } from "millrace/loop";
import { openSqliteStore } from "millrace/sqlite";

const store = await openSqliteStore({ path: join(mkdtempSync(join(tmpdir(), "kernel-")), "shop.db") });
const { promise: heard, resolve: hear } = Promise.withResolvers<unknown>();

await using kernel = await Kernel.open({
  store,
  capabilities: ({ space }) => {
    const orders = space.cell<readonly number[]>("orders");
    const sum = space.computed("sum", () => (orders.get() ?? []).reduce((total, price) => total + price, 0));
    return {
      shop: transactional({
        space,
        description: "takes orders",
        emits: { "Order.Placed": true },
        commands: {
          "Shop.Order": {
            handle: ({ price }: { price: number }, tx) => {
              // The write, the event, the command's row in the journal and its receipt are one commit.
              tx.set(orders, [...(tx.get(orders) ?? []), price]);
              tx.emit("Order.Placed", { price });
              return { accepted: true };
            },
          },
        },
        queries: { "Shop.Sum": { handle: async () => (await sum.pull()) ?? 0 } },
      }),
      clerk: capability({ description: "hears of orders", on: { "Order.Placed": (data) => hear(data) } }),
    };
  },
});

console.log(await kernel.command("Shop.Order", { price: 30 }));
console.log(await kernel.command("Shop.Order", { price: 12 }));
console.log("sum", await kernel.query("Shop.Sum", null));
console.log("heard", await heard);

// prints:
// { accepted: true }
// { accepted: true }
// sum 42
// heard { price: 30 }
