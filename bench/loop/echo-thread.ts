/** The worker's side of `worker.ts`: an actor that answers with the request's data, or, for the limit, a bare echo. */
import { parentPort, workerData } from "node:worker_threads";
import { serveThread } from "../../src/adapters/node-worker.ts";

const port = parentPort;
if (workerData === "bare") port?.on("message", (message) => port.postMessage(message));
else serveThread({ queries: { "Echo.Say": { handle: (data) => data } } });
