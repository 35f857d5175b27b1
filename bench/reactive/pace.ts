/**
 * Times a call on a shared machine: many short batches, of which the fastest counts, because other load only slows a
 * batch down. The thread yields between batches, so that later work of a system (our commits to the store) is done
 * without being measured.
 *
 * The measurement restarts as long as batches get faster, because the engine compiles while it runs; only compiled code
 * is measured, for every system. Its length is processor time: on a busy machine, a time by the clock ends before the
 * code is compiled.
 *
 * Periods in which the other half of the core is busy (`core.ts`) do not count, up to a limit.
 */
import type { Scale } from "../harness/benchmark.ts";
import { hasCoreAlone } from "./core.ts";

const BATCH_MS = 2;
const BATCHES_MIN = 5;
const BUDGET_MS: Readonly<Record<Scale, number>> = { quick: 60, full: 200, long: 400 };
/** How much of the fastest so far a batch may take to count as faster. */
const FASTER = 0.97;
/** How often the time begins anew at most. */
const BEGINNINGS_MAX = 10;
/** How many budgets are spent at most on a core that is shared. */
const PATIENCE = 6;

/** Microseconds of one call. The call is given its number, from 1. */
export async function pace(scale: Scale, call: (nth: number) => void): Promise<number> {
  const budget = BUDGET_MS[scale];
  let nth = 0;
  let calls = 1;
  let fastest = Number.POSITIVE_INFINITY;
  let batches = 0;
  let beginnings = 0;
  let shared = 0;
  let spent = 0;
  let isAlone = hasCoreAlone();
  while ((spent < budget || batches < BATCHES_MIN) && shared < budget * PATIENCE) {
    const began = computedMs();
    const start = performance.now();
    for (let i = 0; i < calls; i++) call(++nth);
    const ms = performance.now() - start;
    const us = (ms * 1000) / calls;
    const wasAlone = isAlone;
    isAlone = hasCoreAlone();
    await letGo();
    if (wasAlone && isAlone) spent += computedMs() - began;
    else shared += computedMs() - began;
    if (ms < BATCH_MS / 2) calls *= 2;
    else if (++batches > 1 && us < fastest * FASTER && beginnings++ < BEGINNINGS_MAX) spent = 0;
    fastest = Math.min(fastest, us);
  }
  return fastest;
}

/** The processor time of the thread so far. It advances with the system's ticks, which are too coarse for a batch. */
function computedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

export function letGo(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
