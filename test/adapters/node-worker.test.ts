/** Worker threads as actors. */

import { Worker } from "node:worker_threads";
import { describe, expect, test, vi } from "vitest";
import { nodeWorkerActor, serveThread } from "../../src/adapters/node-worker.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import type { Message } from "../../src/message/envelope.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { WorkView } from "../../src/work/work-board.ts";
import { bare, query } from "../loop/loop-setup.ts";
import { workCapability } from "../loop/worker-handlers.ts";
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

describe("the work board", () => {
  test("[U65] lists the message that a worker handles, until it has handled it", async () => {
    const host = systemHost();
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<null>()];
    const hold = () => {
      asked.resolve();
      return answer.promise;
    };
    await using kernel = await Kernel.open({
      store: memoryStore({ host }),
      capabilities: {
        work: workCapability(() => spawn("./thread-worker.ts")),
        home: capability({ description: "holds", commands: { "Home.Do": { handle: hold } } }),
      },
    });
    const listed = async () => {
      const { work } = (await kernel.query("Kernel.Work", null)) as never as { work: WorkView[] };
      return work.map(({ entryPoint, handler, type, state }) => [entryPoint, handler, type, state].join(" "));
    };
    const done = kernel.command("Work.CommandHome", null);
    await asked.promise;
    expect(await listed()).toEqual(["command work Work.CommandHome running", "command home Home.Do running"]);
    answer.resolve(null);
    await done;
    // The reply comes before the Worker's note that the message is handled.
    await vi.waitUntil(async () => (await listed()).length === 0, { timeout: 30_000 });
  });
});

describe("outside of a worker thread", () => {
  test("[L31] serving outside of a worker thread is refused with a remedy", () => {
    expect(() => serveThread({})).toThrow(/nodeWorkerActor/);
  });
});
