/**
 * Counters that are added to in every way there is, from one seed: by transactions and by handlers of two processes,
 * each of which keeps two documents, with cells that were made at the beginning, while readers come and go. Each
 * addition counts once.
 */
import type { Cell } from "../../src/cells/cell.ts";
import type { Space } from "../../src/cells/space.ts";
import type { Stream } from "../../src/cells/stream.ts";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { setup } from "../scheduler/scheduler-setup.ts";

const COUNTERS = 6;
const STEPS = 40;

interface Process {
  readonly space: Space;
  readonly counters: readonly Cell<number | undefined>[];
  readonly additions: Stream<number>;
}

export class CountingProgram {
  readonly #seed: number;
  readonly #random: SeededRandom;
  readonly #added: number[] = Array.from({ length: COUNTERS }, () => 0);
  readonly #work: Promise<unknown>[] = [];

  constructor(seed: number) {
    this.#seed = seed;
    this.#random = new SeededRandom(seed, 3);
  }

  /** Throws unless every process ends with the sum of all additions. */
  async run(): Promise<void> {
    const { host, open, space: first } = await setup({ seed: this.#seed, residentDocumentsMax: 2 });
    for (let at = 0; at < COUNTERS; at++) first.cell(`counter ${at}`).set({ n: 0 });
    await host.advance(10);
    const processes = [first, (await open()).space].map(processOf);
    for (let step = 0; step < STEPS; step++) {
      const cancel = this.#step(this.#pick(processes), this.#random.below(COUNTERS));
      if (this.#random.below(5) < 2) await host.advance(this.#pick([0, 1, 20]));
      cancel?.();
    }
    await host.advance(60_000);
    await Promise.all(this.#work);
    for (const { space, counters } of processes) {
      const values = Promise.all(counters.map((counter) => counter.pull()));
      await host.advance(10);
      requireSame(this.#seed, await values, this.#added);
      space.scheduler.checkInvariants();
      space.replica("s").checkInvariants();
    }
  }

  #step({ space, counters, additions }: Process, at: number): (() => void) | undefined {
    const counter = counters[at] as Cell<number | undefined>;
    switch (this.#pick(["transact", "transact", "send", "send", "look", "watch"] as const)) {
      case "transact":
        this.#added[at] = (this.#added[at] ?? 0) + 1;
        this.#work.push(space.transact(() => counter.update((n = 0) => n + 1)));
        return undefined;
      case "send":
        this.#added[at] = (this.#added[at] ?? 0) + 1;
        this.#work.push(additions.send(at).outcome);
        return undefined;
      case "look":
        counter.get();
        return undefined;
      case "watch":
        return counter.sink(() => undefined);
    }
  }

  #pick<T>(of: readonly T[]): T {
    return of[this.#random.below(of.length)] as T;
  }
}

function processOf(space: Space, which: number): Process {
  const counters = Array.from({ length: COUNTERS }, (_, at) => space.cell<{ n: number }>(`counter ${at}`).key("n"));
  const additions = space.stream<number>(`additions ${which}`);
  additions.handle((at) => counters[at]?.update((n = 0) => n + 1));
  return { space, counters, additions };
}

function requireSame(seed: number, values: readonly (number | undefined)[], added: readonly number[]): void {
  if (values.join() === added.join()) return;
  throw new Error(`seed ${seed}: there is [${values}], and [${added}] were added`);
}
