/**
 * Runs a workload in a thread with a large stack: most systems walk a chain by recursion. With the usual stack they
 * would not get through a chain of 10,000, and some not through one of 1,000; how far each gets with that, `deepest.ts`
 * finds out.
 */
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import type { Sample, Scale } from "../harness/benchmark.ts";
import { openGraph, workloadsFor } from "./systems.ts";

export type DeepWorkload = "chain" | "diamonds" | "unchangedFirst";

interface Order {
  readonly system: string;
  readonly workload: DeepWorkload;
  readonly scale: Scale;
}

const STACK_MB = 200;
/** One for each system, kept from round to round: a thread begins without compiled code. */
const threads = new Map<string, Worker>();

export async function withDeepStack(system: string, workload: DeepWorkload, scale: Scale): Promise<Sample> {
  const thread = threads.get(system) ?? start(system);
  // The process waits for the worker only during a call.
  thread.ref();
  try {
    return await answer(thread, { system, workload, scale });
  } catch (error) {
    threads.delete(system);
    throw error;
  } finally {
    thread.unref();
  }
}

function start(system: string): Worker {
  const thread = new Worker(new URL(import.meta.url), { resourceLimits: { stackSizeMb: STACK_MB } });
  threads.set(system, thread);
  return thread;
}

function answer(thread: Worker, order: Order): Promise<Sample> {
  return new Promise((resolve, reject) => {
    thread.removeAllListeners();
    thread.once("message", resolve);
    thread.once("error", reject);
    thread.postMessage(order);
  });
}

if (!isMainThread) {
  parentPort?.on("message", async ({ system, workload, scale }: Order) => {
    const graph = await openGraph(system);
    parentPort?.postMessage(await (await workloadsFor(system))[workload](graph, scale));
    await graph.close?.();
  });
}
