/**
 * A process whose last work is an event that a commit appended: no other work keeps it alive. Prints `heard` and how
 * many it heard. Argument: the file.
 */
import { argv } from "node:process";
import { EventBus } from "../../src/bus/event-bus.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { eventMessage } from "../../src/message/lineage.ts";
import { Replica } from "../../src/store/replica.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";

const EVENTS = 5;
const host = systemHost();
const store = await openSqliteStore({ path: argv[2]!, host, durability: "process" });
const replica = await Replica.open({ store, host, space: "home" });
const bus = new EventBus({ store, host });
let heard = 0;
const { promise: allHeard, resolve } = Promise.withResolvers<void>();
bus.subscribe("Order.Placed", () => void (++heard === EVENTS && resolve()), { subscriberId: "clerk" });
await bus.start();
for (let n = 0; n < EVENTS; n++) {
  const transaction = replica.transaction();
  const message = eventMessage(host, "Order.Placed", { n });
  transaction.entries.push({ message, topic: message.type, source: "shop", as: { status: "pending" } });
  await transaction.commit().outcome;
}
await allHeard;
console.log(`heard ${heard}`);
await bus.stop();
await store.close();
