/**
 * Runs a workload in a thread with a large stack: most systems walk a chain by recursion. With the usual stack they would not get
 * through a chain of 10,000, and some not through one of 1,000; how far each gets with that, `deepest.ts` finds out.
 */
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import type { Sample, Scale } from "../harness/benchmark.ts";
import { openGraph, workloadsFor } from "./systems.ts";

export type DeepWorkload = "chain" | "diamonds" | "unchangedFirst";

interface Order {
  readonly system: string;
  readonly workload: DeepWorkload;
  readonly scale: Scale;
}

const STACK_MB = 200;

export function withDeepStack(system: string, workload: DeepWorkload, scale: Scale): Promise<Sample> {
  return new Promise((resolve, reject) => {
    const order: Order = { system, workload, scale };
    const worker = new Worker(new URL(import.meta.url), {
      workerData: order,
      resourceLimits: { stackSizeMb: STACK_MB },
    });
    worker.once("message", (sample: Sample) => {
      resolve(sample);
      void worker.terminate();
    });
    worker.once("error", reject);
  });
}

if (!isMainThread && isOrder(workerData)) {
  const { system, workload, scale } = workerData;
  const run = (await workloadsFor(system))[workload];
  // A thread begins without compiled code: the first time is for the engine.
  await run(await openGraph(system), scale);
  parentPort?.postMessage(await run(await openGraph(system), scale));
}

function isOrder(data: unknown): data is Order {
  return typeof data === "object" && data !== null && "workload" in data;
}
