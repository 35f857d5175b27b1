/** Worker threads as actors. */
import { describe, expect, test } from "vitest";
import { nodeWorkerActor, serveThread } from "../../src/adapters/node-worker.ts";
import { workerSuite } from "../loop/worker-suite.ts";

const spawn = (file: string) => nodeWorkerActor(new URL(file, import.meta.url));

workerSuite(
  "worker threads",
  () => spawn("./thread-worker.ts"),
  () => spawn("./thread-bare-worker.ts"),
);

describe("outside of a worker thread", () => {
  test("[L31] serving is refused with what to do instead", () => {
    expect(() => serveThread({})).toThrow(/nodeWorkerActor/);
  });
});
