// Another process: typed calls, a live query and events over the kernel's socket. Only types are imported from the app.
import { connect } from "millrace/client";
import type { shop } from "./app.ts";

await using kernel = await connect<typeof shop>({ path: ".millrace/kernel.sock" });

const placed = kernel.events("Order.Placed", { from: "start" });
for (const order of [
  { item: "lamp", price: 30 },
  { item: "desk", price: 400 },
  { item: "lamp", price: 12 },
]) {
  const { left } = await kernel.command("Shop.Order", order, { id: `first ${order.item} ${order.price}` });
  console.log(`ordered a ${order.item}, ${left} left`);
}
const sold = await kernel.safeCommand("Shop.Order", { item: "lamp", price: 30 });
if (!sold.ok && sold.failure.reason === "SOLD_OUT") console.log(`sold out: ${sold.failure.data.item}`);

for await (const { paid, income } of kernel.live("Shop.Totals"))
  if (paid === 2) {
    console.log(`paid ${paid}, income ${income}`);
    break;
  }
for await (const { data } of placed) {
  console.log(`the first order: ${data.item}`);
  break;
}
