/** A worker thread with the Worker surface alone. */
import { parentPort } from "node:worker_threads";
import { bareWorker } from "../loop/bare-worker.ts";

parentPort?.on(
  "message",
  bareWorker((answer) => parentPort?.postMessage(answer)),
);
