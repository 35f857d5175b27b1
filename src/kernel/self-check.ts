/**
 * A small workload on a store for `millrace doctor`: publishes a few events, handles each, and counts them in a
 * document. Every handling is one commit with receipt, count and journal row, so the numbers agree even after a
 * killed check, whose events are finished now.
 *
 * It handles only its own topic; other events are released.
 */
import type { Host } from "../host/host.ts";
import type { Json } from "../message/json.ts";
import { eventMessage } from "../message/lineage.ts";
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
/** More than can wait: a check leaves at most its own few events. */
const ROWS_MAX = 1_000;
/** Concurrent checks make each other's commits stale; one succeeds each time. */
const TRIES_MAX = 100;

/** The contents of the account document: numbers since the store file was created. */
export interface Account {
  readonly starts: number;
  readonly published: number;
  readonly handled: number;
}

export interface SelfCheck extends Account {
  /** Events published by this check. */
  readonly publishedNow: number;
  /** Events of interrupted checks that were handled now. */
  readonly finishedNow: number;
  /** Events held by another process, or by one that was killed just now. */
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

/** Commits the events and their count together. Resolves with the number of this check. */
async function publish(replica: Replica, host: Host): Promise<number> {
  let start = 0;
  await commit(replica, (transaction) => {
    const { starts, published, handled } = readAccount(transaction.read(ACCOUNT));
    start = starts + 1;
    for (let number = 1; number <= EVENTS_PER_START; number++) {
      const message = eventMessage(host, "Millrace.Started", { start, number });
      transaction.entries.push({ message, topic: TOPIC, source: SOURCE, as: { status: "pending" } });
    }
    transaction.write(ACCOUNT, [], { starts: start, published: published + EVENTS_PER_START, handled });
  });
  return start;
}

/** Resolves with the claims handled here. */
async function handleAll(store: Store, replica: Replica): Promise<Claim[]> {
  await store.recover();
  const { lease } = await store.openLease(LEASE_MS);
  try {
    const claims = await store.claim({ lease, limit: ROWS_MAX, kinds: ["event"] });
    const ours = claims.filter(({ row }) => row.topic === TOPIC);
    for (const claim of ours) await handle(replica, claim);
    return ours;
  } finally {
    // Releases the rows of other topics.
    await store.closeLease(lease);
  }
}

/** The receipt, which must be absent, the count and the journal row in one commit. */
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
