/**
 * A world of processes on one disk, from a seed: each publishes and handles; they are killed, paused, given wrong
 * clocks and a faulty store. Then the faults stop, and the end of every event is checked from outside.
 */
import { EventBus } from "../../src/bus/event-bus.ts";
import { Space } from "../../src/cells/space.ts";
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../../src/host/simulated-process.ts";
import { SHARED_SCOPE } from "../../src/store/document.ts";
import type { JournalRow } from "../../src/store/journal.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { queuedStore } from "./queued-store.ts";

const LEASE_MS = 1_000;
const KEYS = ["k0", "k1", "k2"];
const SPACE = "home";

/** The cases that a run met; some seed must meet each rare case. */
export interface Sightings {
  acknowledged: number;
  kills: number;
  pauses: number;
  handledTwice: number;
  retried: number;
  /** Subscribers that were suspended in a process. */
  suspended: number;
  /** Events that were seen waiting for a consumer. */
  waited: number;
}

interface Living {
  readonly process: SimulatedProcess;
  readonly bus: EventBus;
  /** Subscribes a subscriber, by its name; empty until the process has booted. */
  readonly wiring: Map<Name, () => void>;
  /** The subscribers that run in it. */
  readonly running: Set<Name>;
}

const TOPICS = { plain: "job", effect: "job", watcher: "job.*" } as const;
type Name = keyof typeof TOPICS;
const NAMES = Object.keys(TOPICS) as Name[];

/** `different`: each process runs some of the subscribers, and they fail and recover while it runs. */
export type Subscribers = "the same" | "different";

export class BusSimulation {
  readonly #world: SimulatedHost;
  readonly #disk = new MemoryDisk();
  #living: Living[] = [];
  #faultsPerMille = 30;
  #published = 0;
  /** Payload numbers of publishes acknowledged to a living process, with their journal ids. */
  readonly #acknowledged = new Map<number, number>();
  /** For each key, the events that the plain serial handler was called with, in order of the calls. */
  readonly #calls = new Map<string, number[]>(KEYS.map((key) => [key, []]));
  readonly sightings: Sightings = {
    ...{ acknowledged: 0, kills: 0, pauses: 0, handledTwice: 0, retried: 0 },
    ...{ suspended: 0, waited: 0 },
  };
  readonly #subscribers: Subscribers;
  readonly #waited = new Set<number>();

  constructor(world: SimulatedHost, subscribers: Subscribers = "the same") {
    this.#world = world;
    this.#subscribers = subscribers;
  }

  async run(rounds: number): Promise<void> {
    const processes = 2 + this.#below(2);
    for (let i = 0; i < processes; i++) await this.#spawn();
    for (let round = 0; round < rounds; round++) {
      await this.#disturb();
      await this.#world.advance(this.#below(80));
      for (const { process, bus } of this.#living) if (process.status === "running") bus.checkInvariants();
      await this.#lookForWaiting();
    }
    this.#faultsPerMille = 0;
    for (const { process } of this.#living) process.resume();
    await this.#spawn(NAMES);
    await this.#world.advance(30 * LEASE_MS);
    await this.#check();
  }

  // Processes --------------------------------------------------------------------------------------------------------

  async #spawn(names = this.#someNames()): Promise<void> {
    const world = this.#world;
    const process = simulatedProcess(world);
    const inner = memoryStore({ host: process, disk: this.#disk });
    const store = queuedStore(inner, process, world, { faultsPerMille: () => this.#faultsPerMille });
    const bus = new EventBus({ store, host: process, leaseMs: LEASE_MS, concurrency: 1 + this.#below(10) });
    const living: Living = { process, bus, wiring: new Map(), running: new Set(names) };
    this.#living.push(living);
    // A start that a faulty store refuses is tried again, as a supervisor would.
    void this.#boot(living, store).catch(() => process.kill());
    await world.advance(this.#below(50));
  }

  #someNames(): readonly Name[] {
    return this.#subscribers === "the same" ? NAMES : NAMES.filter(() => this.#world.random() < 0.6);
  }

  async #boot(living: Living, store: ReturnType<typeof queuedStore>): Promise<void> {
    const { process, bus, running } = living;
    const space = await Space.open({ store, host: process, name: SPACE, onError: () => undefined });
    this.#wire(living, space);
    // As the loader of extensions does: all possible consumers are declared, also stopped ones.
    for (const name of NAMES) bus.declare(TOPICS[name], name);
    for (const name of NAMES) if (running.has(name)) living.wiring.get(name)?.();
    for (;;) {
      try {
        await bus.start();
        return;
      } catch {
        await new Promise<void>((resolve) => process.timer(20, resolve));
      }
    }
  }

  /** A subscriber of a process fails, or one that failed has recovered. */
  #toggle({ bus, wiring, running }: Living): void {
    const name = NAMES[this.#below(NAMES.length)]!;
    if (wiring.size === 0) return;
    if (running.delete(name)) {
      bus.suspend(TOPICS[name], name);
      this.sightings.suspended++;
    } else {
      running.add(name);
      wiring.get(name)?.();
    }
  }

  async #lookForWaiting(): Promise<void> {
    if (this.#subscribers === "the same") return;
    const store = memoryStore({ host: this.#world, disk: this.#disk });
    for (const { id, deliveries } of await store.query({ status: "pending", limit: 1_000 }))
      if (deliveries.some(({ status }) => status === "waiting")) this.#waited.add(id);
    this.sightings.waited = this.#waited.size;
  }

  #wire({ bus, process, wiring }: Living, space: Space): void {
    const serialBy = (event: { payload: unknown }) => (event.payload as { key: string }).key;
    const retry = { attempts: 50, backoff: { startMs: 20, maxMs: 100 } };
    const plain = () =>
      bus.subscribe(
        "job",
        async (event) => {
          const { key } = event.payload as { key: string };
          this.#calls.get(key)?.push(event.id);
          await this.#takeTime(process);
          if (this.#world.random() < 0.1) throw new Error("a bad day");
        },
        { subscriberId: "plain", serialBy, retry },
      );
    const effect = () =>
      bus.subscribe(
        "job",
        async (event, tx) => {
          const { n, key } = event.payload as { n: number; key: string };
          const last = space.cell(`last:${key}`, 0);
          const before = last.get();
          const effect = space.cell(`effect:${n}`, 0);
          const count = effect.get();
          if (this.#world.random() < 0.5) await this.#takeTime(process);
          if (this.#world.random() < 0.1) throw new Error("a bad day");
          if (before >= event.id) throw new Error(`out of order: ${event.id} after ${before}`);
          effect.set(count + 1);
          tx.set(last, event.id);
          tx.emit("job.done", { n });
        },
        { subscriberId: "effect", serialBy, retry, space },
      );
    const watcher = () => bus.subscribe("job.*", () => this.#takeTime(process), { subscriberId: "watcher", retry });
    for (const [name, subscribe] of Object.entries({ plain, effect, watcher })) wiring.set(name as Name, subscribe);
  }

  async #takeTime(process: SimulatedProcess): Promise<void> {
    if (this.#world.random() < 0.5) await process.yield();
    else await new Promise<void>((resolve) => process.timer(this.#world.random() * 60, resolve));
  }

  // Disturbing -------------------------------------------------------------------------------------------------------

  async #disturb(): Promise<void> {
    const running = this.#living.filter(({ process }) => process.status === "running");
    const chosen = running[this.#below(running.length)];
    const chance = this.#world.random();
    if (chosen === undefined) return this.#spawn();
    if (chance < 0.75) return this.#publish(chosen);
    if (chance < 0.8) return this.#kill(chosen);
    if (chance < 0.85) return this.#pause(chosen);
    if (chance < 0.9) chosen.process.stepClock(this.#below(200) - 100);
    if (this.#subscribers === "different" && chance > 0.8 && this.#world.random() < 0.5) this.#toggle(chosen);
    if (chance < 0.93) chosen.bus.pause();
    if (chance > 0.95) for (const { bus } of running) bus.resume();
  }

  async #publish({ process, bus }: Living): Promise<void> {
    const events = Array.from({ length: 1 + this.#below(3) }, () => {
      const n = ++this.#published;
      return { topic: "job", source: "sim", payload: { n, key: KEYS[this.#below(KEYS.length)]! } };
    });
    const acknowledge = (ids: readonly number[]) => {
      // A promise chain of a killed process may still run out; no caller hears of it then.
      if (process.status === "killed") return;
      for (const [at, { payload }] of events.entries()) this.#acknowledged.set(payload.n, ids[at]!);
    };
    void bus.publishMany(events).then(acknowledge, () => undefined);
  }

  async #kill({ process }: Living): Promise<void> {
    process.kill();
    this.sightings.kills++;
    this.#living = this.#living.filter((living) => living.process !== process);
    await this.#spawn();
  }

  async #pause({ process }: Living): Promise<void> {
    process.pause();
    this.sightings.pauses++;
    this.#world.timer(this.#below(3 * LEASE_MS), () => process.resume());
  }

  #below(bound: number): number {
    return Math.floor(this.#world.random() * bound);
  }

  // Checking ---------------------------------------------------------------------------------------------------------

  async #check(): Promise<void> {
    const store = memoryStore({ host: this.#world, disk: this.#disk });
    const rows = await store.query({ limit: 100_000 });
    for (const row of rows) {
      if (row.status !== "done") throw new Error(`event ${row.id} is not done: ${JSON.stringify(row)}`);
    }
    const jobs = rows.filter(({ topic }) => topic === "job");
    this.#checkAcknowledged(jobs);
    this.#checkOrder();
    const emitted = rows.filter(({ topic }) => topic === "job.done").map((row) => numberOf(row));
    if (new Set(emitted).size !== emitted.length) throw new Error("an emit happened twice");
    if (emitted.length !== jobs.length) throw new Error(`${jobs.length} jobs led to ${emitted.length} emits`);
    for (const job of jobs) {
      const ref = { scope: SHARED_SCOPE, id: `effect:${numberOf(job)}` };
      const count = (await store.load(SPACE, [ref])).documents[0]?.value;
      if (count !== 1) throw new Error(`the effect of job ${numberOf(job)} happened ${count} times`);
    }
    const report = await store.verify();
    if (!report.ok) throw new Error(report.problems.join("; "));
    this.sightings.acknowledged = this.#acknowledged.size;
    this.sightings.retried = jobs.filter(({ attempts }) => attempts > 1).length;
  }

  #checkAcknowledged(jobs: readonly JournalRow[]): void {
    const ids = new Map(jobs.map((job) => [numberOf(job), job.id]));
    if (ids.size !== jobs.length) throw new Error("a job is in the journal twice");
    for (const [n, id] of this.#acknowledged) {
      if (ids.get(n) !== id) throw new Error(`job ${n} was acknowledged as event ${id}, and is ${ids.get(n)}`);
    }
  }

  /** Once an event of a key was begun, no earlier one is begun again. */
  #checkOrder(): void {
    for (const [key, calls] of this.#calls) {
      for (let at = 1; at < calls.length; at++) {
        if (calls[at]! < calls[at - 1]!)
          throw new Error(`${key}: event ${calls[at]} was handled after ${calls[at - 1]}`);
      }
      this.sightings.handledTwice += calls.length - new Set(calls).size;
    }
  }
}

function numberOf({ id, message }: JournalRow): number {
  if (message === undefined) throw new Error(`event ${id} cannot be read`);
  return (message.data as { n: number }).n;
}
