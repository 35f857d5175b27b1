/**
 * The journal in a file: an event is durable before it is handled, and handled in one commit with its receipt. A second
 * process that opens the file finds all data.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventMessage } from "millrace/message";
import { openSqliteStore } from "millrace/sqlite";
import { type Claim, Replica, type Store, systemHost } from "millrace/store";

const host = systemHost();
const folder = mkdtempSync(join(tmpdir(), "millrace-example-"));
const path = join(folder, "shop.db");
const total = { scope: "space", id: "total" };

/** Adds to the total and settles the event: both and the receipt, or none of them. */
async function handle(store: Store, { row, lease, attempt }: Claim): Promise<string> {
  await using shop = await Replica.open({ store, space: "shop", host });
  await shop.load([total]);
  const receipt = { scope: "space", id: `receipt ${row.id}` };
  const transaction = shop.transaction();
  transaction.preconditions.push({ kind: "absent", ...receipt });
  transaction.write(receipt, [], true);
  const sale = row.message?.data as { price: number } | undefined;
  transaction.write(total, [], Number(transaction.read(total) ?? 0) + (sale?.price ?? 0));
  transaction.settlements.push({ id: row.id, lease, attempt, outcome: { kind: "done" } });
  const outcome = await transaction.commit().outcome;
  return outcome.kind === "committed" ? "handled" : outcome.reason;
}

{
  await using store = await openSqliteStore({ path });
  const sales = [3, 4].map((price) => eventMessage(host, "Sale.Made", { price }));
  const appended = await store.append(
    sales.map((message) => ({ message, topic: "sale.made", source: "till", as: { status: "pending" } as const })),
  );
  console.log("appended:", appended);

  const { lease } = await store.openLease(30_000);
  const [claim] = await store.claim({ lease, limit: 1, kinds: ["event"] });
  console.log("first time:", await handle(store, claim!));
  console.log("the same once more:", await handle(store, claim!));
  await store.closeLease(lease);
}

{
  await using store = await openSqliteStore({ path });
  console.log("after reopening:", await store.count());
  const { lease } = await store.openLease(30_000);
  for (const claim of await store.claim({ lease, limit: 10, kinds: ["event"] })) await handle(store, claim);
  await store.closeLease(lease);
  const { documents } = await store.load("shop", [total]);
  console.log("total:", documents[0]?.value);
  console.log("sound:", (await store.verify()).ok);
}
rmSync(folder, { recursive: true });

// prints:
// appended: { kind: 'appended', ids: [ 1, 2 ] }
// first time: handled
// the same once more: document-exists
// after reopening: { pending: 1, processing: 0, done: 1, failed: 0 }
// total: 7
// sound: true
