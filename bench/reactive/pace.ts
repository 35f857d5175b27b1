/**
 * How a call is timed on a machine that others use too: many short batches, of which the fastest counts. What makes a batch
 * slower than the fastest is somebody else. Between two batches the thread is let go, so that what a system does later
 * (our commits to the store) is done, and is not measured.
 *
 * The time begins anew as long as batches get faster: the engine compiles while it runs, and the more code a system has the longer
 * that takes. What is measured is compiled code, of every system. How long to go on is told by what the thread itself has computed:
 * where others have most of the machine, a time by the clock is over before there is anything compiled.
 */
import type { Scale } from "../harness/benchmark.ts";

const BATCH_MS = 2;
const BATCHES_MIN = 5;
const BUDGET_MS: Readonly<Record<Scale, number>> = { quick: 60, full: 200, long: 400 };
/** How much of the fastest so far a batch may take to count as faster. */
const FASTER = 0.97;
/** How often the time begins anew at most. */
const BEGINNINGS_MAX = 10;

/** Microseconds of one call. The call is given its number, from 1. */
export async function pace(scale: Scale, call: (nth: number) => void): Promise<number> {
  let nth = 0;
  let calls = 1;
  let fastest = Number.POSITIVE_INFINITY;
  let batches = 0;
  let beginnings = 0;
  let began = computedMs();
  while (computedMs() - began < BUDGET_MS[scale] || batches < BATCHES_MIN) {
    const start = performance.now();
    for (let i = 0; i < calls; i++) call(++nth);
    const ms = performance.now() - start;
    const us = (ms * 1000) / calls;
    await letGo();
    if (ms < BATCH_MS / 2) calls *= 2;
    else if (++batches > 1 && us < fastest * FASTER && beginnings++ < BEGINNINGS_MAX) began = computedMs();
    fastest = Math.min(fastest, us);
  }
  return fastest;
}

/** What the thread has computed so far. It moves with the system's ticks, too coarse to time a batch with. */
function computedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

export function letGo(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
