/**
 * Web Workers, where the runtime has them: Deno and Bun. On Node the same suite runs with worker threads
 * (`test/adapters`).
 */
import { describe, expect, test } from "#test";
import { workerActor } from "../../src/loop/worker-actor.ts";
import { workerSuite } from "./worker-suite.ts";

if ("Worker" in globalThis) {
  const spawn = (file: string) => workerActor(new URL(file, import.meta.url));
  workerSuite(
    "Web Workers",
    () => spawn("./web-worker.ts"),
    () => spawn("./web-bare-worker.ts"),
  );
} else {
  describe("without Web Workers", () => {
    test("[L31] without Web Workers the error names the alternative", () => {
      expect(() => workerActor("anything.ts")).toThrow(/nodeWorkerActor/);
    });
  });
}
