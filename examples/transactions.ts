/** Two replicas of one space, as two processes would have them: reads are synchronous, conflicts are found by path. */
import { memoryStore, Replica } from "millrace/store";

await using store = memoryStore();
await using ada = await Replica.open({ store, space: "shop" });
await using bob = await Replica.open({ store, space: "shop" });
const stock = { scope: "space", id: "stock" };

const first = ada.transaction();
first.write(stock, [], { lamps: 3, chairs: 5 });
await first.commit().outcome;
await bob.load([stock]);

const seen: string[] = [];
ada.subscribe(({ kind, changes }) => {
  for (const { path, before, after } of changes) seen.push(`${path} ${before} -> ${after} (${kind})`);
});

// Both take stock. The commit is applied at once; the store answers later.
const takeLamp = ada.transaction();
takeLamp.write(stock, ["lamps"], Number(takeLamp.read(stock, ["lamps"])) - 1);
const takeChair = bob.transaction();
takeChair.write(stock, ["chairs"], Number(takeChair.read(stock, ["chairs"])) - 1);
const takeLampToo = bob.transaction();
takeLampToo.write(stock, ["lamps"], Number(takeLampToo.read(stock, ["lamps"])) - 1);

console.log("ada's lamp:", (await takeLamp.commit().outcome).kind);
console.log("bob's chair, another path:", (await takeChair.commit().outcome).kind);
const outcome = await takeLampToo.commit().outcome;
console.log("bob's lamp, read before ada took hers:", outcome.kind === "rejected" ? outcome.class : outcome.kind);

// A stale transaction runs again on the current state.
await bob.catchUp();
const again = bob.transaction();
again.write(stock, ["lamps"], Number(again.read(stock, ["lamps"])) - 1);
console.log("bob's lamp, again:", (await again.commit().outcome).kind);
await ada.catchUp();
console.log("left:", JSON.stringify(ada.peek(stock)));
for (const change of seen) console.log("ada saw:", change);

// prints:
// ada's lamp: committed
// bob's chair, another path: committed
// bob's lamp, read before ada took hers: stale
// bob's lamp, again: committed
// left: {"lamps":1,"chairs":4}
// ada saw: lamps 3 -> 2 (commit)
// ada saw: chairs 5 -> 4 (integrate)
// ada saw: lamps 2 -> 1 (integrate)
