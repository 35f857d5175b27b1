/**
 * A small piece of real work on a store, for `millrace doctor`: publish a few events, handle each, and keep the account in a
 * document. Every handling is one commit: its receipt, its entry in the account and its journal row land together, so the
 * account adds up whatever killed an earlier check, and what that left behind is finished now.
 *
 * Handles only its own topic; other events go back as they were.
 */
import type { Host } from "../host/host.ts";
import type { Json } from "../message/json.ts";
import { event } from "../message/lineage.ts";
import { SHARED_SCOPE } from "../store/document.ts";
import type { Claim, JournalStatus } from "../store/journal.ts";
import { Replica } from "../store/replica.ts";
import type { Store } from "../store/store.ts";
import type { Transaction } from "../store/transaction.ts";

const SPACE = "millrace.self-check";
const TOPIC = "millrace.started";
const SOURCE = "millrace.start";
const ACCOUNT = { scope: SHARED_SCOPE, id: "account" };
const EVENTS_PER_START = 4;
const LEASE_MS = 30_000;
/** More than can be waiting: a start leaves at most its own few events behind. */
const ROWS_MAX = 1_000;
/** Several starts at once make each other's commits stale; each time one of them gets through. */
const TRIES_MAX = 100;

/** What the account document says: numbers since the store file was made. */
export interface Account {
  readonly starts: number;
  readonly published: number;
  readonly handled: number;
}

export interface SelfCheck extends Account {
  /** Events that this start published. */
  readonly publishedNow: number;
  /** Events of earlier starts that were cut short, handled now. */
  readonly finishedNow: number;
  /** Events that another process holds, or held until it was killed a moment ago. */
  readonly waiting: number;
}

export async function selfCheck(store: Store, host: Host): Promise<SelfCheck> {
  await using replica = await Replica.open({ store, space: SPACE, host });
  await replica.load([ACCOUNT]);
  const start = await publish(replica, host);
  const handled = await handleAll(store, replica);
  const finishedNow = handled.filter(({ row }) => startOf(row.message?.data) !== start).length;
  const waiting = (await countOwn(store, "pending")) + (await countOwn(store, "processing"));
  await replica.catchUp();
  const account = readAccount(replica.peek(ACCOUNT));
  return { ...account, publishedNow: EVENTS_PER_START, finishedNow, waiting };
}

/** The events and the account of them, in one commit. Resolves with the number of this start. */
async function publish(replica: Replica, host: Host): Promise<number> {
  let start = 0;
  await commit(replica, (transaction) => {
    const { starts, published, handled } = readAccount(transaction.read(ACCOUNT));
    start = starts + 1;
    for (let number = 1; number <= EVENTS_PER_START; number++) {
      const message = event(host, "Millrace.Started", { start, number });
      transaction.entries.push({ message, topic: TOPIC, source: SOURCE, as: { status: "pending" } });
    }
    transaction.write(ACCOUNT, [], { starts: start, published: published + EVENTS_PER_START, handled });
  });
  return start;
}

/** Resolves with what was handled here. */
async function handleAll(store: Store, replica: Replica): Promise<Claim[]> {
  await store.recover();
  const { lease } = await store.openLease(LEASE_MS);
  try {
    const claims = await store.claim({ lease, limit: ROWS_MAX, kinds: ["event"] });
    const ours = claims.filter(({ row }) => row.topic === TOPIC);
    for (const claim of ours) await handle(replica, claim);
    return ours;
  } finally {
    // What is not ours goes back.
    await store.closeLease(lease);
  }
}

/** The receipt that must not exist yet, the account, and the journal row, in one commit. */
async function handle(replica: Replica, { row, lease, attempt }: Claim): Promise<void> {
  const receipt = { scope: SHARED_SCOPE, id: `receipt ${row.id}` };
  await commit(replica, (transaction) => {
    const { handled } = readAccount(transaction.read(ACCOUNT));
    transaction.preconditions.push({ kind: "absent", ...receipt });
    transaction.write(receipt, [], { event: row.id, attempt });
    transaction.write(ACCOUNT, ["handled"], handled + 1);
    transaction.settlements.push({ id: row.id, lease, attempt, outcome: { kind: "done" } });
  });
}

async function commit(replica: Replica, work: (transaction: Transaction) => void): Promise<void> {
  let last = "";
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const transaction = replica.transaction();
    work(transaction);
    const outcome = await transaction.commit().outcome;
    if (outcome.kind === "committed") return;
    last = outcome.message;
    if (outcome.class !== "stale") break;
    await replica.catchUp();
  }
  throw new Error(`the self-check could not commit: ${last}`);
}

async function countOwn(store: Store, status: JournalStatus): Promise<number> {
  return (await store.query({ topic: TOPIC, status, limit: ROWS_MAX })).length;
}

function startOf(data: Json | undefined): Json | undefined {
  return typeof data === "object" && data !== null && "start" in data ? data.start : undefined;
}

function readAccount(value: Json | undefined): Account {
  const none: Account = { starts: 0, published: 0, handled: 0 };
  return typeof value === "object" && value !== null ? { ...none, ...value } : none;
}
