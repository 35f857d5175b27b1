/** Web Workers, where the runtime has them: Deno and Bun. On Node the same suite runs with worker threads (`test/adapters`). */
import { describe, expect, test } from "#test";
import { workerActor } from "../../src/loop/worker-actor.ts";
import { workerSuite } from "./worker-suite.ts";

if ("Worker" in globalThis) {
  workerSuite("Web Workers", () => workerActor(new URL("./web-worker.ts", import.meta.url)));
} else {
  describe("without Web Workers", () => {
    test("[L31] it is said what to use instead", () => {
      expect(() => workerActor("anything.ts")).toThrow(/nodeWorkerActor/);
    });
  });
}
