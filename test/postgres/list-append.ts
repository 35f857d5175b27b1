/**
 * Random transactions on lists, by several kernels on one database under faults, for the history checker. The program
 * of a seed is the same each time; its interleaving is not, so a failure prints the history.
 */
import { SeededRandom } from "../../src/host/seeded-random.ts";
import type { Json } from "../../src/message/json.ts";
import { type Anomaly, checkHistory, type Operation, type Run } from "./history-checker.ts";
import { type Answer, FAILED, KEYS, type Request, runOf, SPACES, type Step } from "./lists-app.ts";

/** A kernel under test, in this process or in another. */
export interface Beside {
  run(type: string, data: Json): Promise<Json>;
  /** A fault of one kind; resolves with the call that ends it. */
  readonly faults: readonly (() => Promise<() => Promise<void>>)[];
}

export interface Program {
  readonly seed: number;
  readonly kernels: readonly Beside[];
  /** Transactions of each kernel, and how many of them run at once. */
  readonly runs: number;
  readonly atOnce: number;
}

export interface History {
  readonly runs: readonly (Run & { readonly space: string })[];
  readonly unknown: number;
  readonly faults: number;
}

/** Runs that end between the beginning and the end of a fault, and between two faults. */
const FAULT_RUNS = 6;
const STEPS_MAX = 4;

export async function makeHistory({ seed, kernels, runs: runsOfEach, atOnce }: Program): Promise<History> {
  const runs: (Run & { space: string })[] = [];
  const progress = new Progress(kernels.length * runsOfEach);
  let lastId = 0;
  let lastValue = 0;
  const worker = async (kernel: Beside, random: SeededRandom, count: number) => {
    for (let n = 0; n < count; n++) {
      const space = SPACES[random.below(SPACES.length)] as string;
      const steps = Array.from({ length: 1 + random.below(STEPS_MAX) }, (): Step => {
        const key = KEYS[random.below(KEYS.length)] as string;
        return random.below(2) === 0 ? { key } : { key, value: ++lastValue };
      });
      const request: Request = { steps, fails: random.below(12) === 0 };
      const [id, beganAt] = [++lastId, performance.now()];
      const { status, answer } = await outcomeOf(kernel.run(runOf(space), request as never as Json));
      const operations = operationsOf(steps, answer);
      runs.push({ id, space, status, beganAt, endedAt: performance.now(), operations });
      progress.step();
    }
  };
  const workers = kernels.flatMap((kernel, at) =>
    Array.from({ length: atOnce }, (_, lane) =>
      worker(kernel, new SeededRandom(seed, at * 100 + lane), Math.ceil(runsOfEach / atOnce)),
    ),
  );
  const faults = await injectFaults(kernels, new SeededRandom(seed, 9_999), progress);
  await Promise.all(workers);
  return { runs, unknown: runs.filter(({ status }) => status === "unknown").length, faults };
}

/** The anomalies of each space; between spaces only causality is promised. */
export function anomaliesOf(
  { runs }: History,
  final: ReadonlyMap<string, ReadonlyMap<string, readonly number[]>>,
): readonly Anomaly[] {
  return SPACES.flatMap((space) =>
    checkHistory(
      runs.filter((run) => run.space === space),
      final.get(space) ?? new Map(),
    ),
  );
}

async function outcomeOf(answer: Promise<Json>): Promise<{ status: Run["status"]; answer: Answer | undefined }> {
  try {
    return { status: "ok", answer: (await answer) as never as Answer };
  } catch (error) {
    const isOurs = error instanceof Error && error.message.includes(FAILED);
    return { status: isOurs ? "failed" : "unknown", answer: undefined };
  }
}

function operationsOf(steps: readonly Step[], answer: Answer | undefined): Operation[] {
  const read = [...(answer ?? [])];
  return steps.flatMap(({ key, value }): Operation[] => {
    if (value !== undefined) return [{ op: "append", key, value }];
    const values = read.shift();
    return values === undefined ? [] : [{ op: "read", key, values }];
  });
}

/** One fault at a time, at one kernel, while the others go on. */
async function injectFaults(kernels: readonly Beside[], random: SeededRandom, progress: Progress): Promise<number> {
  let faults = 0;
  for (;;) {
    await progress.after(1 + random.below(FAULT_RUNS));
    if (progress.isOver) return faults;
    const kernel = kernels[random.below(kernels.length)] as Beside;
    const fault = kernel.faults[random.below(kernel.faults.length)];
    if (fault === undefined) return faults;
    faults++;
    const end = await fault();
    await progress.after(1 + random.below(FAULT_RUNS));
    await end();
  }
}

/** Counts ended runs. If no run ends for a while, because all wait for the faulty kernel, a waiter goes on too. */
class Progress {
  readonly #all: number;
  #done = 0;
  readonly #waiting: { readonly at: number; readonly resolve: () => void }[] = [];

  constructor(all: number) {
    this.#all = all;
  }

  get isOver(): boolean {
    return this.#done >= this.#all;
  }

  step(): void {
    this.#done++;
    for (const one of this.#waiting.splice(0))
      if (this.#done >= one.at || this.isOver) one.resolve();
      else this.#waiting.push(one);
  }

  after(count: number): Promise<void> {
    if (this.isOver) return Promise.resolve();
    return new Promise((resolve) => {
      const patience = setTimeout(resolve, 1_000);
      const over = () => {
        clearTimeout(patience);
        resolve();
      };
      this.#waiting.push({ at: this.#done + count, resolve: over });
    });
  }
}
