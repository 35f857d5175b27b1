/** A stream has one handler and handles each value once: in order, in one transaction, with up-to-date reads. */
import { Space } from "millrace/signals";
import { memoryStore } from "millrace/store";

await using store = memoryStore();
await using shop = await Space.open({ store, name: "shop" });

const stock = shop.cell<Record<string, number>>("stock");
stock.set({ tea: 2 });
const left = shop.computed("left", () => Object.values(stock.get() ?? {}).reduce((sum, n) => sum + n, 0));

const orders = shop.stream<{ item: string }>("orders");
const mails = shop.stream<string>("mails");
const outbox = shop.cell<string[]>("outbox");

orders.handle(({ item }) => {
  // Cells in a handler are part of its transaction; computed values are up to date, observed or not.
  const there = stock.key(item).get() ?? 0;
  if (there === 0) throw new Error(`no ${item} (${left.get()} of everything)`);
  stock.key(item).set(there - 1);
  // Handled only if this commits, and once, however often this is tried.
  mails.send(`${item} is on its way`);
  return { item, of: left.get() ?? 0 };
});
mails.handle((text) => {
  outbox.push(text);
});

const first = orders.send({ item: "tea" }, { id: "order-1", session: "ada" });
const again = orders.send({ item: "tea" }, { id: "order-1", session: "ada" });
const second = orders.send({ item: "tea" });
const third = orders.send({ item: "tea" });

for (const [name, { outcome }] of Object.entries({ first, again, second, third })) {
  const ended = await outcome;
  console.log(`${name}: ${ended.kind}`, "result" in ended ? JSON.stringify(ended.result) : ended.message);
}
await shop.settled();
console.log("left:", JSON.stringify(stock.get()), "mails:", outbox.get()?.length);

// prints:
// first: handled {"item":"tea","of":2}
// again: already {"item":"tea","of":2}
// second: handled {"item":"tea","of":1}
// third: failed no tea (0 of everything)
// left: {"tea":0} mails: 2
