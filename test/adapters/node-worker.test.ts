/** Worker threads as actors. */
import { describe, expect, test } from "vitest";
import { nodeWorkerActor, serveThread } from "../../src/adapters/node-worker.ts";
import { workerSuite } from "../loop/worker-suite.ts";

workerSuite("worker threads", () => nodeWorkerActor(new URL("./thread-worker.ts", import.meta.url)));

describe("outside of a worker thread", () => {
  test("[L31] serving is refused with what to do instead", () => {
    expect(() => serveThread({})).toThrow(/nodeWorkerActor/);
  });
});
