/**
 * The program that is stopped past its lease: it claims one event, prepares its handling, says so, and waits for a line
 * on stdin before it settles and commits, as if no time had passed. Arguments: a `StoreSetting` as JSON.
 */
import { createInterface } from "node:readline";
import { Author, handlingOf, publishedIn } from "./handling.ts";
import { openStore, type StoreSetting } from "./store-setting.ts";
import { tell } from "./tell.ts";

/** Enough to claim on any machine; for the test it is over at once, because its clock is ahead. */
const ZOMBIE_LEASE_MS = 60_000;

export interface ZombieClaim {
  readonly event: string;
  readonly lease: number;
}

/** The results of the zombie's late calls. */
export interface ZombieReport {
  readonly settled: string;
  readonly commit: string;
  readonly renewed: boolean;
}

const setting = JSON.parse(process.argv[2] ?? "{}") as StoreSetting;
const store = await openStore(setting);
const { lease } = await store.openLease(ZOMBIE_LEASE_MS);
const [claim] = await store.claim({ lease, limit: 1, kinds: ["event"] });
if (!claim) throw new Error("there was nothing to claim");
const event = publishedIn(claim.row);
const handling = await handlingOf(store, new Author("zombie"), claim, event, 0);
say({ event: event.id, lease } satisfies ZombieClaim);

for await (const _line of createInterface({ input: process.stdin })) break;
const [settled] = await store.settle([{ id: claim.row.id, lease, attempt: claim.attempt, outcome: { kind: "done" } }]);
const outcome = await store.commit(handling);
const commit = outcome.kind === "rejected" ? `${outcome.class} ${outcome.reason}` : outcome.kind;
const renewed = await store.renewLease(lease, ZOMBIE_LEASE_MS);
say({ settled: settled ?? "nothing", commit, renewed } satisfies ZombieReport);
await store.close();

function say(report: ZombieClaim | ZombieReport): void {
  tell(JSON.stringify(report));
}
