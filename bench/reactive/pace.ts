/**
 * How a call is timed on a machine that others use too: many short batches, of which the fastest counts. What makes a batch
 * slower than the fastest is somebody else. Between two batches the thread is let go, so that what a system does later
 * (our commits to the store) is done, and is not measured.
 */
import type { Scale } from "../harness/benchmark.ts";

const BATCH_MS = 2;
const BATCHES_MIN = 5;
const BUDGET_MS: Readonly<Record<Scale, number>> = { quick: 60, full: 200, long: 400 };

/** Microseconds of one call. The call is given its number, from 1. */
export async function pace(scale: Scale, call: (nth: number) => void): Promise<number> {
  let nth = 0;
  let calls = 1;
  let fastest = Number.POSITIVE_INFINITY;
  let batches = 0;
  for (let left = BUDGET_MS[scale]; left > 0 || batches < BATCHES_MIN; ) {
    const start = performance.now();
    for (let i = 0; i < calls; i++) call(++nth);
    const ms = performance.now() - start;
    left -= ms;
    await letGo();
    if (ms < BATCH_MS / 2) calls *= 2;
    else batches++;
    fastest = Math.min(fastest, (ms * 1000) / calls);
  }
  return fastest;
}

export function letGo(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
