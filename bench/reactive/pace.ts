/**
 * How a call is timed on a machine that others use too: many short batches, of which the fastest counts. What makes a
 * batch slower than the fastest is somebody else. Between two batches the thread is let go, so that what a system does
 * later (our commits to the store) is done, and is not measured.
 *
 * The time begins anew as long as batches get faster: the engine compiles while it runs, and the more code a system has
 * the longer that takes. What is measured is compiled code, of every system. How long to go on is told by what the
 * thread itself has computed: where others have most of the machine, a time by the clock is over before there is
 * anything compiled.
 *
 * Nor does time count in which somebody else used the other half of the processor's core (`core.ts`), up to a bound: a
 * batch that is slow for that is not the fastest, but a time that is over before there was any other has only such
 * batches.
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
