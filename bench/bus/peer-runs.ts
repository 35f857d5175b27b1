/**
 * The workloads of `bus-runs.ts` on another queue, with checks: published events are stored, and handled exactly once.
 * It gets fewer events than the bus: the rate does not depend on the number, and some peers would need minutes.
 */
import { setTimeout as wait } from "node:timers/promises";
import { BULK, concurrently, latencies, payloads, rate } from "../bus-runs.ts";
import type { Sample, Scale } from "../harness/benchmark.ts";
import { elapsedMs } from "../harness/timing.ts";
import { pieces } from "../store/events.ts";
import type { PeerQueue } from "./peer-queue.ts";

const ALONE: Readonly<Record<Scale, number>> = { quick: 100, full: 500, long: 1_500 };
const BY_CALLERS: Readonly<Record<Scale, number>> = { quick: 1_000, full: 5_000, long: 20_000 };
const IN_BULK: Readonly<Record<Scale, number>> = { quick: 4_000, full: 20_000, long: 50_000 };
/** One event in so many, where each waits for the disk by itself. */
const FEWER = 20;
/** Before the clock starts, until connections are open and code is compiled. */
const WARM_UP = 1_000;
const WARM_UP_ALONE = 20;
const HANDLED_MS_MAX = 60_000;

export type PeerRun = (queue: PeerQueue, scale: Scale, commitsEach: boolean) => Promise<Sample>;

/** Each waits for the one before. */
export const publishAlone: PeerRun = async (queue, scale) => {
  const events = payloads(ALONE[scale] + WARM_UP_ALONE);
  for (const payload of events.slice(0, WARM_UP_ALONE)) await queue.publish(payload);
  const tookMs: number[] = [];
  const sample = await rate(ALONE[scale], async () => {
    for (const payload of events.slice(WARM_UP_ALONE)) tookMs.push(await elapsedMs(() => queue.publish(payload)));
  });
  await checkStored(queue, events.length);
  return { ...sample, ...latencies(tookMs) };
};

export const publishByCallers: PeerRun = async (queue, scale, commitsEach) => {
  const fewer = commitsEach ? FEWER : 1;
  const [before, events] = [payloads(WARM_UP / 10 / fewer), payloads(BY_CALLERS[scale] / fewer)];
  const publish = (all: typeof events) => concurrently(BULK, all, (payload) => queue.publish(payload));
  await publish(before);
  const sample = await rate(events.length, () => publish(events));
  await checkStored(queue, before.length + events.length);
  return sample;
};

export const publishInBulk: PeerRun = async (queue, scale) => {
  const events = payloads(IN_BULK[scale]);
  const waves = pieces(events, BULK);
  const sample = await rate(events.length, async () => {
    for (const wave of waves) await queue.publishMany(wave);
  });
  await checkStored(queue, events.length);
  return sample;
};

/** From the first publish until the last event is done, the worker beside it. */
export const publishToDone: PeerRun = async (queue, scale, commitsEach) => {
  const fewer = commitsEach ? FEWER : 1;
  const [before, count] = [WARM_UP / fewer, IN_BULK[scale] / fewer];
  const handled = new Handled();
  await queue.work((many) => handled.add(many));
  for (const wave of pieces(payloads(before), BULK)) await queue.publishMany(wave);
  await allDone(queue, handled, before);
  const waves = pieces(payloads(count), BULK);
  return await rate(count, async () => {
    for (const wave of waves) await queue.publishMany(wave);
    await allDone(queue, handled, before + count);
  });
};

/** One event at a time: from publish until it has been handled. */
export const publishToHandler: PeerRun = async (queue, scale) => {
  const events = payloads(WARM_UP_ALONE + ALONE[scale]);
  const handled = new Handled();
  await queue.work((count) => handled.add(count));
  const tookMs: number[] = [];
  for (const [index, payload] of events.entries()) {
    tookMs.push(await elapsedMs(() => Promise.all([queue.publish(payload), handled.reach(index + 1)])));
  }
  await allDone(queue, handled, events.length);
  return latencies(tookMs.slice(WARM_UP_ALONE));
};

/** How many events a worker has handled. */
class Handled {
  #count = 0;
  #awaited: { readonly count: number; readonly resolve: () => void } | undefined;

  get count(): number {
    return this.#count;
  }

  add(count: number): void {
    this.#count += count;
    if (this.#awaited && this.#count >= this.#awaited.count) this.#awaited.resolve();
  }

  async reach(count: number): Promise<void> {
    if (this.#count >= count) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#awaited = { count, resolve };
    const give = () => reject(new Error(`handled ${this.#count} of ${count} events, then none for a minute`));
    const timer = setTimeout(give, HANDLED_MS_MAX);
    await promise.finally(() => clearTimeout(timer));
  }
}

async function allDone(queue: PeerQueue, handled: Handled, expected: number): Promise<void> {
  await handled.reach(expected);
  while ((await queue.unfinished()) > 0) await wait(1);
  if (handled.count !== expected)
    throw new Error(`handled ${handled.count} times what was published ${expected} times`);
}

async function checkStored(queue: PeerQueue, expected: number): Promise<void> {
  const stored = await queue.unfinished();
  if (stored !== expected) throw new Error(`stored ${stored} of ${expected} published events`);
}
