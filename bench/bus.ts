/**
 * The bus beside bare `node:sqlite` doing the same durable work with hand-written statements, and beside the queues that a
 * user would pick instead. What a limit is and how it is run: `docs/decisions/0004-benchmarks.md`.
 */

import type { Store } from "../src/store/store.ts";
import { bullmq } from "./bus/bullmq.ts";
import { graphileWorker } from "./bus/graphile-worker.ts";
import type { Peer } from "./bus/peer-queue.ts";
import * as peerRuns from "./bus/peer-runs.ts";
import { pgBoss } from "./bus/pg-boss.ts";
import { plainjob } from "./bus/plainjob.ts";
import {
  BULK,
  latencies,
  publishAlone,
  publishByCallers,
  publishInBulk,
  publishToDone,
  publishToDoneByCallers,
  publishToHandler,
  rate,
} from "./bus-runs.ts";
import type { Benchmark, Metric, Sample, Scale, Scene, System, Target, Workload } from "./harness/benchmark.ts";
import { elapsedMs } from "./harness/timing.ts";
import { BareSqlite } from "./store/bare-sqlite.ts";
import { DURABILITIES, type Durability } from "./store/durability.ts";
import { makeEntries, pieces } from "./store/events.ts";
import { openMillrace } from "./store/millrace.ts";

/** Events of a run in which each waits for the disk alone, and of one in which they share the wait. */
const ALONE: Readonly<Record<Scale, number>> = { quick: 300, full: 1_500, long: 3_000 };
const TOGETHER: Readonly<Record<Scale, number>> = { quick: 10_000, full: 30_000, long: 100_000 };

interface Row {
  readonly name: string;
  readonly metrics: readonly Metric[];
  bare(bare: BareSqlite, scale: Scale): Promise<Sample>;
  bus(store: Store, scale: Scale): Promise<Sample>;
  /** Where the peers have something like it. */
  readonly peer?: peerRuns.PeerRun;
}

/** In the order in which each round runs them. */
const PEERS: readonly Peer[] = [bullmq, pgBoss, graphileWorker, plainjob];

const P50: Metric = {
  name: "p50 ms",
  better: "lower",
  target: [
    { of: "limit", atMost: 1.5 },
    { of: { system: bullmq.name }, atMost: 1 },
  ],
};
const P99: Metric = { name: "p99 ms", better: "lower" };

const ROWS: readonly Row[] = [
  {
    name: "publish, one at a time",
    metrics: [P50, P99, perSecond()],
    bare: (bare, scale) => bareAlone(bare, ALONE[scale]),
    bus: (store, scale) => publishAlone(store, ALONE[scale]),
    peer: peerRuns.publishAlone,
  },
  {
    name: "publish, 1,000 callers",
    metrics: [perSecond({ of: "limit", atLeast: 0.5 })],
    bare: (bare, scale) => bareBulk(bare, TOGETHER[scale]),
    bus: (store, scale) => publishByCallers(store, TOGETHER[scale], BULK),
    peer: peerRuns.publishByCallers,
  },
  {
    name: "publish in bulk, 1,000 a call",
    metrics: [perSecond({ of: "limit", atLeast: 0.5 })],
    bare: (bare, scale) => bareBulk(bare, TOGETHER[scale]),
    bus: (store, scale) => publishInBulk(store, TOGETHER[scale]),
    peer: peerRuns.publishInBulk,
  },
  {
    name: "publish → handled → done, one at a time",
    metrics: [P50, P99],
    bare: (bare, scale) => bareToDoneAlone(bare, ALONE[scale]),
    bus: (store, scale) => publishToHandler(store, ALONE[scale]),
    peer: peerRuns.publishToHandler,
  },
  {
    name: "publish → handled → done, in bulk",
    metrics: [
      perSecond({ of: "limit", atLeast: 0.6 }, { of: "best peer", atLeast: 4 }),
      { name: "statements per event", better: "lower" },
    ],
    bare: (bare, scale) => bareToDone(bare, TOGETHER[scale]),
    bus: (store, scale) => publishToDone(store, TOGETHER[scale], "plain"),
    peer: peerRuns.publishToDone,
  },
  {
    name: "publish → handled → done, 1,000 callers",
    metrics: [perSecond()],
    bare: (bare, scale) => bareToDone(bare, TOGETHER[scale]),
    bus: (store, scale) => publishToDoneByCallers(store, TOGETHER[scale], BULK),
  },
  {
    name: "publish → handled in a transaction → done",
    metrics: [perSecond({ of: "limit", atLeast: 0.25 }), { name: "statements per event", better: "lower" }],
    bare: (bare, scale) => bareToDone(bare, TOGETHER[scale]),
    bus: (store, scale) => publishToDone(store, TOGETHER[scale] / 2, "transactional"),
  },
];

export const busBenchmark: Benchmark = {
  name: "bus",
  what: "the event bus on SQLite, events of about 200 bytes",
  systems: [
    { name: "bare sqlite", role: "limit" },
    { name: "millrace", role: "ours" },
    ...PEERS.map(({ name, unavailable }): System => ({ name, role: "peer", unavailable: async () => unavailable() })),
  ],
  workloads: DURABILITIES.flatMap((durability) => ROWS.map((row) => workload(row, durability))),
};

function workload({ name, metrics, bare, bus, peer }: Row, durability: Durability): Workload {
  return {
    group: durability === "power" ? "durability power (FULL)" : "durability process (NORMAL)",
    name,
    metrics,
    runs: {
      "bare sqlite": async ({ directory, scale }: Scene) => {
        using opened = await BareSqlite.open(directory, durability);
        return await bare(opened, scale);
      },
      millrace: async ({ directory, scale }: Scene) => {
        await using store = await openMillrace(directory, durability);
        return await bus(store, scale);
      },
      ...(peer && peersRunning(peer, durability)),
    },
  };
}

function peersRunning(run: peerRuns.PeerRun, durability: Durability): Workload["runs"] {
  const runOf = (peer: Peer) => async (scene: Scene) => {
    await using queue = await peer.open(scene, durability);
    return await run(queue, scene.scale, peer.commitsEach);
  };
  const able = PEERS.filter((peer) => peer.durabilities.includes(durability));
  return Object.fromEntries(able.map((peer) => [peer.name, runOf(peer)]));
}

async function bareAlone(bare: BareSqlite, count: number): Promise<Sample> {
  const tookMs: number[] = [];
  const entries = makeEntries(count);
  const totalMs = await elapsedMs(async () => {
    for (const entry of entries) tookMs.push(await elapsedMs(() => bare.append([entry])));
  });
  return { ...latencies(tookMs), "events/s": (count * 1_000) / totalMs };
}

/** As the bus does it: an event is settled in the transaction that writes the next. */
async function bareToDoneAlone(bare: BareSqlite, count: number): Promise<Sample> {
  const tookMs: number[] = [];
  for (const entry of makeEntries(count)) tookMs.push(await elapsedMs(() => bare.appendClaimedAndSettleLast([entry])));
  return latencies(tookMs);
}

function bareBulk(bare: BareSqlite, count: number): Promise<Sample> {
  const waves = pieces(makeEntries(count), BULK);
  return rate(count, async () => {
    for (const wave of waves) bare.append(wave);
  });
}

function bareToDone(bare: BareSqlite, count: number): Promise<Sample> {
  const waves = pieces(makeEntries(count), BULK);
  return rate(count, async () => {
    for (const wave of waves) bare.appendClaimedAndSettleLast(wave);
    bare.settleLast();
  });
}

function perSecond(...target: readonly Target[]): Metric {
  return { name: "events/s", better: "higher", target };
}
