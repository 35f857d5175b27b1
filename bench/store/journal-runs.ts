/** The journal workloads through `Store`. Awaited data is durable. */
import type { CommitRequest } from "../../src/store/commit.ts";
import { SHARED_SCOPE } from "../../src/store/document.ts";
import type { JournalEntry, Settlement } from "../../src/store/journal.ts";
import type { Store } from "../../src/store/store.ts";
import { pieces } from "./events.ts";

/** Events in one call, in one wave of settling, and in one claim. */
export const BULK = 1000;
/** Longer than any run. */
export const LEASE_MS = 600_000;

/** So many callers, each of which publishes its next event when its last one is durable. */
export async function publishByCallers(store: Store, entries: readonly JournalEntry[], callers: number): Promise<void> {
  await concurrently(callers, entries, (entry) => appended(store, [entry]));
}

export async function publishInBulk(store: Store, entries: readonly JournalEntry[]): Promise<void> {
  for (const wave of pieces(entries, BULK)) await appended(store, wave);
}

/** The hot path: events are written as claimed by us, and settled while the next wave is being written. */
export async function claimedToDone(store: Store, entries: readonly JournalEntry[], lease: number): Promise<void> {
  let settling: Promise<unknown> = Promise.resolve();
  for (const wave of pieces(entries, BULK)) {
    const ids = await appended(store, wave);
    await settling;
    settling = settled(store, ids, lease);
  }
  await settling;
}

/** The same by single callers: each publishes one event and settles it. */
export async function claimedToDoneByCallers(
  store: Store,
  entries: readonly JournalEntry[],
  lease: number,
  callers: number,
): Promise<void> {
  await concurrently(callers, entries, async (entry) => settled(store, await appended(store, [entry]), lease));
}

/** The path of an event without room at its publisher: it waits, is claimed from the table, and settled. */
export async function pendingToDone(store: Store, entries: readonly JournalEntry[], lease: number): Promise<void> {
  for (const wave of pieces(entries, BULK)) {
    await appended(store, wave);
    await claimAndSettle(store, lease);
  }
}

/** Claims pending rows, up to `BULK`, and settles them; resolves with their number. */
export async function claimAndSettle(store: Store, lease: number): Promise<number> {
  const claims = await store.claim({ lease, limit: BULK, kinds: ["event"] });
  const ids = claims.map((claim) => claim.row.id);
  await settled(store, ids, lease);
  return ids.length;
}

/** Every event is handled in a transaction: a document written, a receipt created once ever, and the event settled. */
export async function handledInTransactions(
  store: Store,
  entries: readonly JournalEntry[],
  lease: number,
  callers: number,
): Promise<void> {
  let handled = 0;
  await concurrently(callers, entries, async (entry) => {
    const [id] = await appended(store, [entry]);
    const outcome = await store.commit(handling(++handled, entry, { id: id!, lease, attempt: 1, outcome: DONE }));
    if (outcome.kind !== "committed") throw new Error(`a handling was rejected: ${outcome.message}`);
  });
}

const DONE: Settlement["outcome"] = { kind: "done" };
/** Documents that the handlings write in turn. */
const BOOKS = 100;

function handling(number: number, { message }: JournalEntry, settlement: Settlement): CommitRequest {
  const book = { scope: SHARED_SCOPE, id: `book-${number % BOOKS}` };
  const receipt = { scope: SHARED_SCOPE, id: `receipt/${message.metadata.id}` };
  return {
    space: "orders",
    session: "bench",
    localSequence: number,
    digest: message.metadata.id,
    reads: [],
    patches: [
      { ...book, operations: [{ op: "set", path: [], value: { last: message.metadata.id, handled: number } }] },
      { ...receipt, operations: [{ op: "set", path: [], value: { handledBy: "bench" } }] },
    ],
    preconditions: [{ kind: "absent", ...receipt }],
    dependsOn: [],
    entries: [],
    settlements: [settlement],
    due: [],
    basis: [],
    basisRemoved: [],
    labels: [],
  };
}

async function appended(store: Store, entries: readonly JournalEntry[]): Promise<readonly number[]> {
  const outcome = await store.append(entries);
  if (outcome.kind !== "appended") throw new Error(`an append was rejected: ${outcome.message}`);
  return outcome.ids;
}

async function settled(store: Store, ids: readonly number[], lease: number): Promise<void> {
  const results = await store.settle(ids.map((id) => ({ id, lease, attempt: 1, outcome: DONE })));
  if (!results.every((result) => result === "settled")) throw new Error("a claim was lost; its lease is too short");
}

/** Runs `work` over the items with so many in flight. */
export async function concurrently<Item>(
  callers: number,
  items: readonly Item[],
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < items.length) await work(items[next++]!);
  };
  await Promise.all(Array.from({ length: callers }, caller));
}
