/** BullMQ on a Redis of its own. */
import type { Json } from "../../src/message/json.ts";
import { whyPeerMissing } from "../harness/peers.ts";
import { TOPIC } from "../store/events.ts";
import { loadPeer, type Peer } from "./peer-queue.ts";
import { startRedis, whyRedisMissing } from "./services.ts";

/** Handlings side by side: they share round trips, and with them Redis' flushes. */
const CONCURRENCY = 100;

/** As far as it is used here. */
interface Bullmq {
  readonly Queue: new (name: string, options: object) => Queue;
  readonly Worker: new (name: string, handle: () => Promise<void>, options: object) => Worker;
}

interface Queue {
  add(name: string, data: Json): Promise<unknown>;
  addBulk(jobs: readonly { name: string; data: Json }[]): Promise<unknown>;
  getJobCountByTypes(...types: string[]): Promise<number>;
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
}

interface Worker {
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
}

export const bullmq: Peer = {
  name: "bullmq",
  durabilities: ["power", "process"],
  commitsEach: false,
  unavailable: () => whyPeerMissing("bullmq") ?? whyPeerMissing("ioredis") ?? whyRedisMissing(),
  open: async ({ directory }, durability) => {
    const { Queue, Worker } = await loadPeer<Bullmq>("bullmq");
    await using opening = new AsyncDisposableStack();
    const redis = opening.use(await startRedis(directory, durability));
    const connection = { path: redis.socket, maxRetriesPerRequest: null };
    const queue = new Queue(TOPIC, { connection });
    opening.defer(() => queue.close());
    await queue.waitUntilReady();
    const opened = opening.move();
    return {
      publish: (data) => queue.add(TOPIC, data),
      publishMany: (payloads) => queue.addBulk(payloads.map((data) => ({ name: TOPIC, data }))),
      work: async (onHandled) => {
        const worker = new Worker(TOPIC, async () => onHandled(1), { connection, concurrency: CONCURRENCY });
        opened.defer(() => worker.close());
        await worker.waitUntilReady();
      },
      unfinished: () => queue.getJobCountByTypes("waiting", "active", "delayed", "prioritized", "failed"),
      [Symbol.asyncDispose]: () => opened.disposeAsync(),
    };
  },
};
