/** The worker of the worker-thread tests. */
import { serveThread } from "../../src/adapters/node-worker.ts";
import { handlers } from "../loop/worker-handlers.ts";

serveThread(handlers);
