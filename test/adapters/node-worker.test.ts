/** Worker threads as actors. */

import { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { nodeWorkerActor, serveThread } from "../../src/adapters/node-worker.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import type { Message } from "../../src/message/envelope.ts";
import { bare, query } from "../loop/loop-setup.ts";
import { workerSuite } from "../loop/worker-suite.ts";

const spawn = (file: string) => nodeWorkerActor(new URL(file, import.meta.url));

workerSuite(
  "worker threads",
  () => spawn("./thread-worker.ts"),
  () => spawn("./thread-bare-worker.ts"),
);

describe("a Worker of node:worker_threads", () => {
  const work = () => new Worker(new URL("./thread-bare-worker.ts", import.meta.url));

  test("[L97] a Node worker answers, and ends with the loop", async () => {
    const loop = await EventLoop.boot({ host: systemHost(), capabilities: { work: bare(work as never) } });
    expect(await loop.request(query("Bare.Ask", "q1", 2))).toMatchObject({ kind: "reply", data: 4 });
    await loop.stop();
  });

  test("[L97] a Node worker that ends by itself is restarted", async () => {
    const spawned: Worker[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const spawn = () => {
      spawned.push(work());
      return spawned.at(-1);
    };
    const observe = ({ type }: Message) => void (type === "Sys.ActorRestarted" && resolve());
    const loop = await EventLoop.boot({ host: systemHost(), capabilities: { work: bare(spawn as never) }, observe });
    await spawned[0]?.terminate();
    await promise;
    expect(await loop.request(query("Bare.Ask", "q2", 1))).toMatchObject({ kind: "reply", data: 2 });
    await loop.stop();
  });
});

describe("outside of a worker thread", () => {
  test("[L31] serving outside of a worker thread is refused with a remedy", () => {
    expect(() => serveThread({})).toThrow(/nodeWorkerActor/);
  });
});
