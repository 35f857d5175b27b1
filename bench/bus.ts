/**
 * The bus beside bare `node:sqlite` with hand-written statements for the same durable work, and beside other queues.
 * The limit and the method: `docs/decisions/0004-benchmarks.md`.
 */

import type { Store } from "../src/store/store.ts";
import { bullmq } from "./bus/bullmq.ts";
import { graphileWorker } from "./bus/graphile-worker.ts";
import { bareOneAtATime, busOneAtATime, type Until } from "./bus/one-at-a-time.ts";
import type { Peer } from "./bus/peer-queue.ts";
import * as peerRuns from "./bus/peer-runs.ts";
import { pgBoss } from "./bus/pg-boss.ts";
import { plainjob } from "./bus/plainjob.ts";
import {
  BOOKS,
  BULK,
  publishByCallers,
  publishInBulk,
  publishToDone,
  publishToDoneByCallers,
  rate,
} from "./bus-runs.ts";
import type { Benchmark, Metric, Sample, Scale, Scene, System, Target, Workload } from "./harness/benchmark.ts";
import { BareSqlite } from "./store/bare-sqlite.ts";
import { DURABILITIES, type Durability } from "./store/durability.ts";
import { makeEntries, pieces } from "./store/events.ts";
import { openMillrace } from "./store/millrace.ts";
import { TO_BARE } from "./store/one-at-a-time.ts";

/** Events of a run in which they share the wait for the disk. */
const TOGETHER: Readonly<Record<Scale, number>> = { quick: 10_000, full: 30_000, long: 100_000 };

interface Row {
  readonly name: string;
  /** Targets are for the default durability, FULL. The other durability shows the time without the disk. */
  readonly metrics: readonly Metric[];
  bare(bare: BareSqlite, scene: Scene): Promise<Sample>;
  bus(store: Store, scene: Scene, durability: Durability): Promise<Sample>;
  /** Where the peers have a similar feature. */
  readonly peer?: peerRuns.PeerRun;
}

/** In the order in which each round runs them. */
const PEERS: readonly Peer[] = [bullmq, pgBoss, graphileWorker, plainjob];

const LATENCIES: readonly Metric[] = [
  { name: "p50 ms", better: "lower", target: { of: { system: bullmq.name }, atMost: 1 } },
  { name: "p99 ms", better: "lower" },
  { name: TO_BARE, better: "lower", target: { of: "itself", atMost: 1.5 } },
];

const ROWS: readonly Row[] = [
  alone("publish, one at a time", "published", peerRuns.publishAlone),
  {
    name: "publish, 1,000 callers",
    metrics: [perSecond({ of: "limit", atLeast: 0.5 })],
    bare: (bare, { scale }) => bareBulk(bare, TOGETHER[scale]),
    bus: (store, { scale }) => publishByCallers(store, TOGETHER[scale], BULK),
    peer: peerRuns.publishByCallers,
  },
  {
    name: "publish in bulk, 1,000 a call",
    metrics: [perSecond({ of: "limit", atLeast: 0.5 })],
    bare: (bare, { scale }) => bareBulk(bare, TOGETHER[scale]),
    bus: (store, { scale }) => publishInBulk(store, TOGETHER[scale]),
    peer: peerRuns.publishInBulk,
  },
  alone("publish → handled → done, one at a time", "handled", peerRuns.publishToHandler),
  {
    name: "publish → handled → done, in bulk",
    metrics: [
      perSecond({ of: "limit", atLeast: 0.6 }, { of: "best peer", atLeast: 4 }),
      { name: "statements per event", better: "lower" },
    ],
    bare: (bare, { scale }) => bareToDone(bare, TOGETHER[scale]),
    bus: (store, { scale }) => publishToDone(store, TOGETHER[scale], "plain"),
    peer: peerRuns.publishToDone,
  },
  {
    name: "publish → handled → done, 1,000 callers",
    metrics: [perSecond()],
    bare: (bare, { scale }) => bareToDone(bare, TOGETHER[scale]),
    bus: (store, { scale }) => publishToDoneByCallers(store, TOGETHER[scale], BULK),
  },
  {
    name: "publish → handled in a transaction → done",
    metrics: [perSecond({ of: "limit", atLeast: 0.5 }), { name: "statements per event", better: "lower" }],
    bare: (bare, { scale }) => bareTransactional(bare, TOGETHER[scale] / 2),
    bus: (store, { scale }) => publishToDone(store, TOGETHER[scale] / 2, "transactional"),
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
    metrics: durability === "power" ? metrics : metrics.map(({ target: _, ...metric }) => metric),
    runs: {
      "bare sqlite": async (scene: Scene) => {
        using opened = await BareSqlite.open(scene.directory, durability);
        return await bare(opened, scene);
      },
      millrace: async (scene: Scene) => {
        await using store = await openMillrace(scene.directory, durability);
        return await bus(store, scene, durability);
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

function alone(name: string, until: Until, peer: peerRuns.PeerRun): Row {
  return {
    name,
    metrics: until === "published" ? [...LATENCIES, perSecond()] : LATENCIES,
    bare: (bare, scene) => bareOneAtATime(bare, scene, until),
    bus: (store, scene, durability) => busOneAtATime(store, scene, durability, until),
    peer,
  };
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

/** The same document write, receipt and settle of each event, with those of the next wave's rows in one commit. */
function bareTransactional(bare: BareSqlite, count: number): Promise<Sample> {
  const waves = pieces(makeEntries(count), BULK);
  return rate(count, async () => {
    for (const wave of waves) bare.appendClaimedAndHandleLast(wave, BOOKS);
    bare.appendClaimedAndHandleLast([], BOOKS);
  });
}

function perSecond(...target: readonly Target[]): Metric {
  return { name: "events/s", better: "higher", target };
}
