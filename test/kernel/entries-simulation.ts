/**
 * A whole kernel from a seed, with invocations at every entry point, new ones and repeated ones, a store that fails, a
 * clock that jumps, and a process that is killed and started again. Then the faults stop: each acknowledged invocation
 * took effect once, and no other twice.
 */
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import {
  countingCapabilities,
  ENTRIES,
  type Entry,
  findings,
  type Invoked,
  invoke,
  isAtRest,
  type Told,
} from "./entries.ts";
import { LEASE_MS, MortalKernel } from "./mortal-kernel.ts";

/** Acknowledged invocations of each entry point, and rare conditions that some seed must meet. */
export type Sightings = Record<Entry | "kills" | "repeated" | "unanswered" | "requeued", number>;

export class EntriesSimulation {
  readonly sightings: Sightings = {
    ...{ command: 0, journaled: 0, event: 0, subscriber: 0, stream: 0, timer: 0, transact: 0 },
    ...{ kills: 0, repeated: 0, unanswered: 0, requeued: 0 },
  };
  readonly #world: SimulatedHost;
  readonly #disk = new MemoryDisk({ changesKept: 20 });
  readonly #kernel: MortalKernel;
  readonly #told = new Map<Invoked, Told | undefined>();
  #wrong: Error | undefined;

  constructor(world: SimulatedHost) {
    this.#world = world;
    this.#kernel = new MortalKernel({ world, disk: this.#disk, capabilities: countingCapabilities });
  }

  async run(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      if (!this.#kernel.process) this.#kernel.start();
      this.#disturb();
      await this.#world.advance(this.#below(60));
    }
    this.#kernel.faultsPerMille = 0;
    const store = memoryStore({ host: this.#world, disk: this.#disk });
    for (let n = 0; n < 60; n++) {
      if (!this.#kernel.process) this.#kernel.start();
      // After five deaths of its process a message has failed, and an operator decides.
      const failed = await store.query({ status: "failed", limit: 100 });
      this.sightings.requeued += (await store.requeue(failed.map(({ id }) => id))).length;
      await this.#world.advance(LEASE_MS);
    }
    if (this.#wrong !== undefined) throw this.#wrong;
    if (!(await isAtRest(store))) throw new Error("messages or timers are left");
    const found = await findings(store, this.#told);
    if (found.length > 0) throw new Error(found.slice(0, 5).join("; "));
    for (const told of this.#told.values()) if (told === undefined) this.sightings.unanswered++;
  }

  #disturb(): void {
    const dice = this.#below(100);
    if (dice < 55) for (let n = this.#below(4); n >= 0; n--) this.#invoke(this.#new());
    else if (dice < 85) this.#repeat();
    else if (dice < 92) this.#kill();
    else this.#kernel.process?.stepClock(this.#below(400) - 200);
  }

  #new(): Invoked {
    const entry = ENTRIES[this.#below(ENTRIES.length)] as Entry;
    // Ids with a time, and ids without one.
    const id = this.#below(2) === 0 ? this.#world.id() : `${entry}-${this.#told.size}`;
    const invoked = { entry, id };
    this.#told.set(invoked, undefined);
    return invoked;
  }

  #repeat(): void {
    const invoked = [...this.#told.keys()][this.#below(this.#told.size)];
    // A call of `transact` has no id: it cannot be repeated.
    if (invoked === undefined || invoked.entry === "transact") return;
    if (this.#told.get(invoked) !== undefined) this.sightings.repeated++;
    this.#invoke(invoked);
  }

  #invoke(invoked: Invoked): void {
    const kernel = this.#kernel.open;
    if (kernel === undefined) return;
    const note = (told: Told | undefined) => {
      const first = this.#told.get(invoked);
      if (told === undefined) return;
      if (first === undefined) this.sightings[invoked.entry]++;
      else if (JSON.stringify(first) !== JSON.stringify(told))
        this.#wrong ??= new Error(`${invoked.id} was answered ${JSON.stringify(first)}, then ${JSON.stringify(told)}`);
      this.#told.set(invoked, told);
    };
    // Without an answer it may be repeated. Other errors than that of a fault are found by the sums.
    invoke(kernel, invoked).then(note, () => undefined);
  }

  #kill(): void {
    if (this.#kernel.kill()) this.sightings.kills++;
  }

  #below(bound: number): number {
    return Math.floor(this.#world.random() * bound);
  }
}
