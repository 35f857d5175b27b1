/**
 * An actor in a real Worker: request and reply through lanes, pending table and thread, beside bare `postMessage` there
 * and back of the same message.
 */
import { Worker } from "node:worker_threads";
import { nodeWorkerActor } from "../../src/adapters/node-worker.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import { queryMessage } from "../../src/message/lineage.ts";
import type { InProcess } from "./in-process.ts";

const THREAD = new URL("./echo-thread.ts", import.meta.url);
const DATA = "a question of about two hundred bytes, as the others are";

export const bareWorker: InProcess = {
  name: "bare",
  open: async () => {
    const host = systemHost();
    const worker = new Worker(THREAD, { workerData: "bare" });
    const waiting: ((answer: unknown) => void)[] = [];
    let answered = 0;
    worker.on("message", (answer: unknown) => waiting[answered++]?.(answer));
    return {
      ask: (index) =>
        new Promise((resolve) => {
          waiting.push(resolve);
          worker.postMessage(queryMessage(host, "Echo.Say", { index, text: DATA }));
        }),
      [Symbol.asyncDispose]: async () => void (await worker.terminate()),
    };
  },
};

export const workerActor: InProcess = {
  name: "millrace",
  open: async () => {
    const host = systemHost();
    const echo = {
      ...capability({ description: "echo", queries: { "Echo.Say": { handle: (data) => data } } }),
      spawn: () => nodeWorkerActor(THREAD),
    };
    const loop = await EventLoop.boot({ host, capabilities: { echo } });
    return {
      ask: (index) => loop.request(queryMessage(host, "Echo.Say", { index, text: DATA })),
      [Symbol.asyncDispose]: () => loop.stop(),
    };
  },
};
