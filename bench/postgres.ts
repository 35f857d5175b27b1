/**
 * The bus on Postgres beside the same functions of the database without a kernel, one call in flight, and beside the
 * queues on Postgres that a user would pick instead. Each system has a server of its own, on a Unix socket.
 */
import { openPostgresStore } from "millrace/postgres";
import type { Store } from "millrace/store";
import { graphileWorker } from "./bus/graphile-worker.ts";
import type { Peer } from "./bus/peer-queue.ts";
import * as peerRuns from "./bus/peer-runs.ts";
import { pgBoss } from "./bus/pg-boss.ts";
import { POSTGRES_USER, type Service, startPostgres, whyPostgresMissing } from "./bus/services.ts";
import { latencies, publish, publishByCallers, publishInBulk, publishToDone, rate, running } from "./bus-runs.ts";
import type { Benchmark, Metric, Sample, Scale, Scene, System, Target, Workload } from "./harness/benchmark.ts";
import { whyPeerMissing } from "./harness/peers.ts";
import { elapsedMs } from "./harness/timing.ts";
import { BarePostgres } from "./postgres/bare.ts";
import { makeEntries, pieces } from "./store/events.ts";

const BARE = "bare functions";
const PEERS: readonly Peer[] = [pgBoss, graphileWorker];
const ALONE: Readonly<Record<Scale, number>> = { quick: 300, full: 1_000, long: 3_000 };
const TOGETHER: Readonly<Record<Scale, number>> = { quick: 10_000, full: 30_000, long: 100_000 };
const BULK = 500;
const CALLERS = 1_000;
const WARM_UP = 2_000;
const WARM_UP_ALONE = 50;

interface Row {
  readonly name: string;
  readonly metrics: readonly Metric[];
  bare(bare: BarePostgres, scale: Scale): Promise<Sample>;
  ours(store: Store, scale: Scale): Promise<Sample>;
  readonly peer?: peerRuns.PeerRun;
}

const ROWS: readonly Row[] = [
  {
    name: "publish, one at a time",
    metrics: [{ name: "p50 ms", better: "lower" }, { name: "p99 ms", better: "lower" }, perSecond()],
    bare: (bare, scale) => alone(makeEntries(ALONE[scale] + WARM_UP_ALONE), (one) => bare.append([one])),
    ours: async (store, scale) => {
      const { bus } = await running(store, "none");
      return alone(makeEntries(ALONE[scale] + WARM_UP_ALONE), (one) => publish(bus, one));
    },
    peer: peerRuns.publishAlone,
  },
  {
    name: "publish, 1,000 callers",
    metrics: [perSecond({ of: "limit", atLeast: 0.6 })],
    bare: bareBulk,
    ours: (store, scale) => publishByCallers(store, TOGETHER[scale], CALLERS),
    peer: peerRuns.publishByCallers,
  },
  {
    name: "publish in bulk",
    metrics: [perSecond({ of: "limit", atLeast: 0.6 }, { of: "best peer", atLeast: 1 })],
    bare: bareBulk,
    ours: (store, scale) => publishInBulk(store, TOGETHER[scale]),
    peer: peerRuns.publishInBulk,
  },
  {
    name: "publish → handled → done, in bulk",
    metrics: [
      perSecond({ of: "limit", atLeast: 0.6 }, { of: "best peer", atLeast: 1 }),
      { name: "statements per event", better: "lower" },
    ],
    bare: async (bare, scale) => {
      const waves = pieces(makeEntries(TOGETHER[scale] + WARM_UP), BULK);
      for (const wave of waves.slice(0, WARM_UP / BULK)) await bare.appendClaimedAndSettleLast(wave);
      return rate(TOGETHER[scale], async () => {
        for (const wave of waves.slice(WARM_UP / BULK)) await bare.appendClaimedAndSettleLast(wave);
        await bare.appendClaimedAndSettleLast([]);
      });
    },
    ours: (store, scale) => publishToDone(store, TOGETHER[scale], "plain"),
    peer: peerRuns.publishToDone,
  },
];

export const postgresBenchmark: Benchmark = {
  name: "postgres",
  what: "the event bus on Postgres, events of about 200 bytes, synchronous_commit on",
  systems: [
    { name: BARE, role: "limit", unavailable: async () => whyPeerMissing("pg") ?? whyPostgresMissing() },
    { name: "millrace", role: "ours", unavailable: async () => whyPostgresMissing() },
    ...PEERS.map(({ name, unavailable }): System => ({ name, role: "peer", unavailable: async () => unavailable() })),
  ],
  workloads: ROWS.map(workload),
};

function workload({ name, metrics, bare, ours, peer }: Row): Workload {
  const peers = peer === undefined ? [] : PEERS.map((one) => [one.name, runOf(one, peer)] as const);
  return {
    group: "one process",
    name,
    metrics,
    runs: {
      [BARE]: async (scene: Scene) => {
        await using server = await startPostgres(scene);
        await using opened = await BarePostgres.open(urlOf(server));
        return await bare(opened, scene.scale);
      },
      millrace: async (scene: Scene) => {
        await using server = await startPostgres(scene);
        await using store = await openPostgresStore({ url: urlOf(server) });
        return await ours(store, scene.scale);
      },
      ...Object.fromEntries(peers),
    },
  };
}

function runOf(peer: Peer, run: peerRuns.PeerRun): (scene: Scene) => Promise<Sample> {
  return async (scene) => {
    await using queue = await peer.open(scene, "power");
    return await run(queue, scene.scale, peer.commitsEach);
  };
}

function urlOf({ socket }: Service): string {
  return `postgres://${POSTGRES_USER}@localhost/postgres?host=${encodeURIComponent(socket)}`;
}

async function bareBulk(bare: BarePostgres, scale: Scale): Promise<Sample> {
  const waves = pieces(makeEntries(TOGETHER[scale] + WARM_UP), BULK);
  for (const wave of waves.slice(0, WARM_UP / BULK)) await bare.append(wave);
  return rate(TOGETHER[scale], async () => {
    for (const wave of waves.slice(WARM_UP / BULK)) await bare.append(wave);
  });
}

async function alone<Item>(items: readonly Item[], work: (item: Item) => Promise<unknown>): Promise<Sample> {
  for (const item of items.slice(0, WARM_UP_ALONE)) await work(item);
  const timed = items.slice(WARM_UP_ALONE);
  const tookMs: number[] = [];
  const sample = await rate(timed.length, async () => {
    for (const item of timed) tookMs.push(await elapsedMs(() => work(item)));
  });
  return { ...sample, ...latencies(tookMs) };
}

function perSecond(...target: readonly Target[]): Metric {
  return { name: "events/s", better: "higher", target };
}
