/**
 * Streams: how many sends are handled in a second, each in a transaction of its own with its receipt. The limit is bare
 * `node:sqlite` with hand-written statements: for each send a receipt and a patch of a document, as many in a
 * transaction as are on their way at once. In memory there is no limit to compare with; the replica's own transactions
 * stand beside it for orientation.
 */
import { SHARED_SCOPE, Space, type Store, systemHost } from "millrace/signals";
import { Replica } from "millrace/store";
import { SENDS_IN_FLIGHT_MAX, SENDS_WAITING_MAX } from "../src/limits.ts";
import { Receipt } from "../src/store/receipt.ts";
import type { Benchmark, Metric, Sample, Scale, Workload } from "./harness/benchmark.ts";
import { perSecond } from "./harness/timing.ts";
import { BareSqlite } from "./store/bare-sqlite.ts";
import type { Durability } from "./store/durability.ts";
import { pieces } from "./store/events.ts";
import { openMemory, openMillrace } from "./store/millrace.ts";

/** No more than may wait at once. */
const SENDS: Readonly<Record<Scale, number>> = { quick: 10_000, full: 50_000, long: SENDS_WAITING_MAX };
/** More without a disk: the first 40,000 or so run while the code is still being optimised. */
const SENDS_IN_MEMORY: Readonly<Record<Scale, number>> = {
  quick: 50_000,
  full: SENDS_WAITING_MAX,
  long: SENDS_WAITING_MAX,
};
const DOCUMENTS = 1_000;

/** Sends so many, and waits until all are handled and durable; the number of documents that they are spread over. */
async function handleAll(store: Store, sends: number, documents: number): Promise<Sample> {
  const space = await Space.open({ store, host: systemHost(), name: "bench" });
  const counts = Array.from({ length: documents }, (_, i) => space.cell<number>(`count ${i}`));
  await Promise.all(counts.map((count) => count.pull()));
  const stream = space.stream<number>("adds");
  stream.handle((which) => counts[which]?.update((count = 0) => count + 1));
  const before = store.stats();
  const rate = await perSecond(sends, async () => {
    for (let i = 0; i < sends; i++) stream.send(i % documents);
    await space.settled();
  });
  const after = store.stats();
  const sum = counts.reduce((total, count) => total + (count.get() ?? 0), 0);
  if (sum !== sends) throw new Error(`${sum} of ${sends} sends were handled`);
  await space.close();
  return { "sends/s": rate, "statements per send": (after.statements - before.statements) / sends };
}

/** The same work without streams: a transaction that reads, writes and leaves a receipt. */
async function transactAll(store: Store, sends: number, documents: number): Promise<Sample> {
  const replica = await Replica.open({ store, host: systemHost(), space: "bench" });
  const rate = await perSecond(sends, async () => {
    for (let i = 0; i < sends; i++) {
      const transaction = replica.transaction();
      const count = { scope: SHARED_SCOPE, id: `count ${i % documents}` };
      const receipt = { scope: SHARED_SCOPE, id: `receipt/${i}` };
      transaction.write(count, [], Number(transaction.read(count) ?? 0) + 1);
      transaction.leave(new Receipt(receipt, {}));
      const { outcome } = transaction.commit();
      if (i % SENDS_IN_FLIGHT_MAX === 0) await outcome;
    }
    await replica.settled();
  });
  await replica.close();
  return { "sends/s": rate, "statements per send": 0 };
}

function bareAll(bare: BareSqlite, sends: number): Promise<number> {
  const patch = JSON.stringify([{ op: "set", path: [], value: 1 }]);
  const waves = pieces(new Array<string>(2 * sends).fill(patch), 2 * SENDS_IN_FLIGHT_MAX);
  return perSecond(sends, () => {
    for (const wave of waves) bare.appendPatches(1, wave);
  });
}

function durable(durability: Durability, documents: number, metrics: readonly Metric[]): Workload {
  return {
    group: `SQLite, durability ${durability}`,
    name: nameOf(documents),
    metrics,
    runs: {
      "bare sqlite": async ({ directory, scale }) => {
        using bare = await BareSqlite.open(directory, durability);
        return { "sends/s": await bareAll(bare, SENDS[scale]), "statements per send": 2 };
      },
      millrace: async ({ directory, scale }) => {
        await using store = await openMillrace(directory, durability);
        return await handleAll(store, SENDS[scale], documents);
      },
    },
  };
}

function inMemory(documents: number): Workload {
  return {
    group: "in memory",
    name: nameOf(documents),
    metrics: [{ name: "sends/s", better: "higher", target: { of: "itself", atLeast: 100_000 } }],
    runs: {
      millrace: async ({ scale }) => {
        await using store = openMemory();
        return await handleAll(store, SENDS_IN_MEMORY[scale], documents);
      },
      "replica alone": async ({ scale }) => {
        await using store = openMemory();
        return await transactAll(store, SENDS_IN_MEMORY[scale], documents);
      },
    },
  };
}

function nameOf(documents: number): string {
  return documents === 1 ? "all to one document" : `spread over ${documents.toLocaleString("en-US")} documents`;
}

const COUNTED: Metric = { name: "statements per send", better: "lower" };

export const streamsBenchmark: Benchmark = {
  name: "streams",
  what: "sends handled, each in one transaction with its receipt",
  systems: [
    { name: "bare sqlite", role: "limit" },
    { name: "millrace", role: "ours" },
    { name: "replica alone", role: "orientation" },
  ],
  workloads: [
    inMemory(1),
    inMemory(DOCUMENTS),
    durable("power", 1, [{ name: "sends/s", better: "higher", target: { of: "itself", atLeast: 30_000 } }, COUNTED]),
    durable("power", DOCUMENTS, [
      { name: "sends/s", better: "higher", target: { of: "itself", atLeast: 30_000 } },
      COUNTED,
    ]),
    durable("process", DOCUMENTS, [{ name: "sends/s", better: "higher" }, COUNTED]),
  ],
};
