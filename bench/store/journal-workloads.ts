/** The journal's rows of the store benchmark, with their targets. The limit: `docs/decisions/0004-benchmarks.md`. */
import type { JournalEntry } from "../../src/store/journal.ts";
import type { Store } from "../../src/store/store.ts";
import type { Metric, Sample, Scale, Scene, Target, Workload } from "../harness/benchmark.ts";
import { perSecond } from "../harness/timing.ts";
import type { BareSqlite } from "./bare-sqlite.ts";
import type { Durability } from "./durability.ts";
import { makeEntries, pieces } from "./events.ts";
import {
  BULK,
  claimedToDone,
  claimedToDoneByCallers,
  handledInTransactions,
  LEASE_MS,
  pendingToDone,
  publishByCallers,
  publishInBulk,
} from "./journal-runs.ts";
import { oneAtATime } from "./one-at-a-time.ts";
import { type SideBySide, sideBySide } from "./side-by-side.ts";

/** Events of a run in which they share the wait for the disk, and of a peer's in which each waits alone. */
const ALONE: Readonly<Record<Scale, number>> = { quick: 200, full: 1500, long: 3000 };
const TOGETHER: Readonly<Record<Scale, number>> = { quick: 4000, full: 20_000, long: 100_000 };

const RATE = "events/s";
const PER_COMMIT = "events per commit";
const COUNTS: readonly Metric[] = [
  { name: "statements per event", better: "lower" },
  { name: "bytes per event", better: "lower" },
];

type Row = Omit<SideBySide, "group" | "durability">;

export function journalWorkloads(durability: Durability): readonly Workload[] {
  const group = durability === "power" ? "durability power (FULL)" : "durability process (NORMAL)";
  const rows: readonly Row[] = [
    oneAtATime(durability),
    byCallers(64),
    byCallers(1000),
    IN_BULK,
    CLAIMED_TO_DONE,
    CLAIMED_TO_DONE_BY_CALLERS,
    PENDING_TO_DONE,
    HANDLED_IN_TRANSACTIONS,
  ];
  return rows.map(({ metrics, ...row }) =>
    sideBySide({ ...row, group, durability, metrics: durability === "power" ? metrics : metrics.map(untargeted) }),
  );
}

/** Targets are set for the default durability; beside a limit that waits for no disk, the others only inform. */
function untargeted({ name, better }: Metric): Metric {
  return { name, better };
}

function byCallers(callers: number): Row {
  return {
    name: `publish, ${callers.toLocaleString("en-US")} callers`,
    metrics: [rate({ of: "limit", atLeast: 0.5 }), { name: PER_COMMIT, better: "higher" }],
    bare: (bare, { scale }) => bareAppends(bare, TOGETHER[scale], callers),
    store: async (store, { scale }) => {
      const entries = makeEntries(TOGETHER[scale]);
      const before = store.stats().batches;
      const perSec = await perSecond(entries.length, () => publishByCallers(store, entries, callers));
      return { [RATE]: perSec, [PER_COMMIT]: entries.length / (store.stats().batches - before) };
    },
    plainjob: (queue, { scale }) => {
      // Each waits for the disk alone, so a part of the events keeps the run short.
      const entries = makeEntries(ALONE[scale] * 2);
      return rateOver(entries, (entry) => queue.publish(entry));
    },
  };
}

const IN_BULK: Row = {
  name: "publish in bulk, 1,000 a call",
  metrics: [rate({ of: "limit", atLeast: 0.5 }), ...COUNTS],
  bare: (bare, { scale }) => bareAppends(bare, TOGETHER[scale], BULK),
  store: (store, { scale }) => counted(store, makeEntries(TOGETHER[scale]), (entries) => publishInBulk(store, entries)),
  plainjob: async (queue, { scale }) => {
    const waves = pieces(makeEntries(TOGETHER[scale]), BULK);
    const { [RATE]: wavesPerSecond } = await rateOver(waves, (wave) => queue.publishMany(wave));
    return { [RATE]: wavesPerSecond! * BULK };
  },
};

const CLAIMED_TO_DONE: Row = {
  name: "publish → claimed → done, in bulk",
  metrics: [rate({ of: "limit", atLeast: 0.6 }), ...COUNTS],
  bare: bareClaimedToDone,
  store: (store, scene) =>
    claimed(store, TOGETHER[scene.scale], (entries, lease) => claimedToDone(store, entries, lease)),
  plainjob: async (queue, { scale }) => {
    // Its jobs are handled one by one and flushed twice each, so a part of them keeps the run short.
    const entries = makeEntries(ALONE[scale] * 2);
    return {
      [RATE]: await perSecond(entries.length, () => {
        for (const wave of pieces(entries, BULK)) queue.publishMany(wave);
        if (queue.handleAll() !== entries.length) throw new Error("plainjob handled fewer jobs than were added");
      }),
    };
  },
};

const CLAIMED_TO_DONE_BY_CALLERS: Row = {
  name: "publish → claimed → done, 1,000 callers",
  metrics: [rate(), ...COUNTS],
  bare: bareClaimedToDone,
  store: (store, { scale }) =>
    claimed(store, TOGETHER[scale], (entries, lease) => claimedToDoneByCallers(store, entries, lease, BULK)),
};

const PENDING_TO_DONE: Row = {
  name: "publish → pending → claim → done",
  metrics: [rate({ of: "limit", atLeast: 0.6 }), ...COUNTS],
  bare: async (bare, { scale }) => {
    const waves = pieces(makeEntries(TOGETHER[scale]), BULK);
    return {
      [RATE]: await perSecond(TOGETHER[scale], () => {
        for (const wave of waves) {
          bare.append(wave);
          bare.settle(bare.claim(BULK));
        }
      }),
    };
  },
  store: async (store, { scale }) => {
    const { lease } = await store.openLease(LEASE_MS);
    return counted(store, makeEntries(TOGETHER[scale]), (entries) => pendingToDone(store, entries, lease));
  },
};

/** Beside the limit's plain publish → done: the additional cost of the document, the receipt and the replay check. */
const HANDLED_IN_TRANSACTIONS: Row = {
  name: "publish → handled in a transaction",
  metrics: [rate({ of: "limit", atLeast: 0.25 }), ...COUNTS],
  bare: bareClaimedToDone,
  store: (store, { scale }) =>
    claimed(store, TOGETHER[scale] / 2, (entries, lease) => handledInTransactions(store, entries, lease, BULK)),
};

function rate(target?: Target): Metric {
  return { name: RATE, better: "higher", ...(target && { target }) };
}

async function rateOver<Item>(items: readonly Item[], work: (item: Item) => void): Promise<Sample> {
  const perSec = await perSecond(items.length, () => {
    for (const item of items) work(item);
  });
  return { [RATE]: perSec };
}

async function bareAppends(bare: BareSqlite, count: number, perCommit: number): Promise<Sample> {
  const waves = pieces(makeEntries(count), perCommit);
  const { [RATE]: wavesPerSecond } = await rateOver(waves, (wave) => bare.append(wave));
  return { [RATE]: (wavesPerSecond! * count) / waves.length, [PER_COMMIT]: perCommit };
}

/** Inserted as claimed, while the wave before is settled in the same transaction. */
async function bareClaimedToDone(bare: BareSqlite, { scale }: Scene): Promise<Sample> {
  const waves = pieces(makeEntries(TOGETHER[scale]), BULK);
  return {
    [RATE]: await perSecond(TOGETHER[scale], () => {
      for (const wave of waves) bare.appendClaimedAndSettleLast(wave);
      bare.settleLast();
    }),
  };
}

async function claimed(
  store: Store,
  count: number,
  work: (entries: readonly JournalEntry[], lease: number) => Promise<void>,
): Promise<Sample> {
  const { lease } = await store.openLease(LEASE_MS);
  return counted(store, makeEntries(count, { status: "claimed", lease }), (entries) => work(entries, lease));
}

/** The rate, and the statements and bytes that the store counted meanwhile. */
async function counted(
  store: Store,
  entries: readonly JournalEntry[],
  work: (entries: readonly JournalEntry[]) => Promise<void>,
): Promise<Sample> {
  const before = store.stats();
  const perSec = await perSecond(entries.length, () => work(entries));
  const after = store.stats();
  return {
    [RATE]: perSec,
    "statements per event": (after.statements - before.statements) / entries.length,
    "bytes per event": (after.bytesWritten - before.bytesWritten) / entries.length,
  };
}
