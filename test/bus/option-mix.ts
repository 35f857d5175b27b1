/**
 * A world of one or two buses on one disk, whose subscriptions mix all options that can hold a handler up: concurrency,
 * serial keys, retries, handlers that end at once or later. Events come alone and together, also without a subscriber;
 * buses are paused and resumed, failed events requeued, subscriptions exchanged for others of the same name. No process
 * dies and no store fails: so every handler is called exactly once for each attempt.
 */
import { EventBus } from "../../src/bus/event-bus.ts";
import { pause } from "../../src/host/pause.ts";
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import { simulatedProcess } from "../../src/host/simulated-process.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { queuedStore } from "./queued-store.ts";

const TOPICS = ["t.a", "t.b"];
const PATTERNS = ["t.a", "t.b", "t.*"];
const KEYS = 3;
const REST_MS = 60_000;

/** The cases that a run met; some seed must meet each rare case. */
export interface Sightings {
  handled: number;
  /** Runs that stood in the line of a subscription. */
  inLine: number;
  pausedAtWork: number;
  retried: number;
  requeued: number;
  /** Subscriptions that were exchanged while handlers of theirs were at work or events waited in their line. */
  exchangedAtWork: number;
}

interface Wanted {
  readonly subscriberId: string;
  readonly pattern: string;
  readonly concurrency: number | undefined;
  readonly isSerial: boolean;
  readonly attempts: number;
  /** Of ten calls, how many take time. */
  readonly slow: number;
  /** Of ten calls, how many fail. */
  readonly failing: number;
}

interface Call {
  readonly bus: number;
  /** Which of the subscriptions of that name it came to. */
  readonly subscription: number;
  readonly id: number;
  readonly key: string;
}

export class OptionMix {
  readonly #world: SimulatedHost;
  readonly #disk = new MemoryDisk();
  readonly #buses: EventBus[] = [];
  readonly #wanted: Wanted[];
  readonly #publishing: Promise<unknown>[] = [];
  /** Handlers at work, by subscriber. */
  readonly #inside = new Map<string, Set<Call>>();
  /** The calls, by subscriber, event, requeue and attempt. */
  readonly #calls = new Set<string>();
  readonly #succeeded = new Set<string>();
  /** The event that was called last, by subscriber and key. */
  readonly #last = new Map<string, number>();
  readonly #requeues = new Map<number, number>();
  #subscribed = 0;
  /** Broken rules that handlers have seen; thrown there, they would be one more failure of the handler. */
  readonly #faults: string[] = [];
  readonly sightings: Sightings = {
    handled: 0,
    inLine: 0,
    pausedAtWork: 0,
    retried: 0,
    requeued: 0,
    exchangedAtWork: 0,
  };

  constructor(world: SimulatedHost) {
    this.#world = world;
    this.#wanted = Array.from({ length: 1 + this.#below(3) }, (_, at) => ({
      subscriberId: `s${at}`,
      pattern: PATTERNS[this.#below(PATTERNS.length)]!,
      concurrency: this.#below(2) === 0 ? undefined : 1 + this.#below(2),
      isSerial: this.#below(5) < 3,
      attempts: this.#below(2) === 0 ? 1 : 3,
      slow: this.#below(3) === 0 ? 0 : 5 + this.#below(6),
      failing: this.#below(2) === 0 ? 0 : 2,
    }));
  }

  async run(rounds: number): Promise<void> {
    const buses = 1 + this.#below(2);
    for (let at = 0; at < buses; at++) await this.#open(at);
    for (let round = 0; round < rounds; round++) {
      await this.#act(this.#buses[this.#below(buses)]!);
      this.#look();
    }
    for (const bus of this.#buses) bus.resume();
    await this.#world.advance(REST_MS);
    this.#look();
    await this.#world.run(() => Promise.all(this.#publishing));
    await this.#check();
    for (const bus of this.#buses) await this.#world.run(() => bus.stop());
    this.#look();
  }

  async #open(at: number): Promise<void> {
    const process = simulatedProcess(this.#world);
    const inner = memoryStore({ host: process, disk: this.#disk });
    const store = queuedStore(inner, process, this.#world, { faultsPerMille: () => 0 });
    const observe = ({ kind }: { kind: string }) => {
      if (kind !== "handler-failed" && kind !== "no-subscriber") this.#faults.push(`bus ${at} observed ${kind}`);
    };
    const bus = new EventBus({ store, host: process, concurrency: 1 + this.#below(6), observe });
    for (const wanted of this.#wanted) this.#subscribe(bus, at, wanted);
    this.#buses.push(bus);
    await this.#world.run(() => bus.start());
  }

  #subscribe(bus: EventBus, at: number, wanted: Wanted): void {
    const { subscriberId, pattern, concurrency, isSerial, attempts } = wanted;
    const subscription = ++this.#subscribed;
    bus.subscribe(
      pattern,
      ({ id, payload }, { attempt }) => {
        const call = { bus: at, subscription, id, key: String(payload) };
        this.#begin(wanted, call, attempt);
        if (this.#below(10) >= wanted.slow) return this.#end(wanted, call);
        return pause(this.#world, this.#below(8)).then(() => this.#end(wanted, call));
      },
      {
        subscriberId,
        retry: { attempts, backoff: { startMs: 5, maxMs: 20 } },
        ...(concurrency === undefined ? {} : { concurrency }),
        ...(isSerial ? { serialBy: ({ payload }) => String(payload) } : {}),
      },
    );
  }

  // Calls of handlers -------------------------------------------------------------------------------------------

  #begin(
    { subscriberId, concurrency = Number.POSITIVE_INFINITY, isSerial }: Wanted,
    call: Call,
    attempt: number,
  ): void {
    const { subscription, id, key } = call;
    const inside = this.#inside.get(subscriberId) ?? new Set();
    this.#inside.set(subscriberId, inside.add(call));
    const name = `${subscriberId} event ${id} requeue ${this.#requeues.get(id) ?? 0} attempt ${attempt}`;
    if (this.#calls.has(name)) this.#faults.push(`${name}: called twice`);
    this.#calls.add(name);
    if (attempt > 1) this.sightings.retried++;
    const here = [...inside].filter((one) => one.subscription === subscription).length;
    if (here > concurrency) this.#faults.push(`${name}: ${here} handlers at once`);
    if (isSerial) this.#checkOrder(name, subscriberId, call);
    this.#last.set(`${subscriberId} ${key}`, id);
  }

  #checkOrder(name: string, subscriberId: string, { bus, id, key }: Call): void {
    for (const one of this.#inside.get(subscriberId) ?? []) {
      if (one.key !== key || one.id === id) continue;
      // A requeued event does not wait for a later one that another process has begun.
      const isExcused = one.bus !== bus && this.#requeues.has(Math.min(id, one.id));
      if (!isExcused) this.#faults.push(`${name}: event ${one.id} of its key is inside`);
    }
    const last = this.#last.get(`${subscriberId} ${key}`) ?? 0;
    if (id < last && !this.#requeues.has(id)) this.#faults.push(`${name}: called after event ${last} of its key`);
  }

  #end({ subscriberId, failing }: Wanted, call: Call): void {
    this.#inside.get(subscriberId)?.delete(call);
    if (this.#below(10) < failing) throw new Error("a bad day");
    const name = `${subscriberId} ${call.id}`;
    if (this.#succeeded.has(name)) this.#faults.push(`${name}: succeeded twice`);
    this.#succeeded.add(name);
    this.sightings.handled++;
  }

  // Actions
  // -------------------------------------------------------------------------------------------------------------

  async #act(bus: EventBus): Promise<void> {
    const chance = this.#below(100);
    if (chance < 40) this.#publishing.push(bus.publish(this.#topic(), "mix", this.#key()));
    else if (chance < 44) this.#publishing.push(bus.publish("unheard", "mix", 0));
    else if (chance < 50) this.#exchange(bus);
    else if (chance < 60) this.#publishMany(bus);
    else if (chance < 70) this.#pause(bus);
    else if (chance < 80) bus.resume();
    else if (chance < 85) await this.#requeue(bus);
    else await this.#world.advance(this.#below(12));
  }

  #publishMany(bus: EventBus): void {
    const events = Array.from({ length: 1 + this.#below(8) }, () => {
      return { topic: this.#topic(), source: "mix", payload: this.#key() };
    });
    this.#publishing.push(bus.publishMany(events));
  }

  /** In one turn, so that there is always one of that name. It comes last in the order of subscribing. */
  #exchange(bus: EventBus): void {
    const wanted = this.#wanted[this.#below(this.#wanted.length)]!;
    const { pattern, subscriberId } = wanted;
    const view = bus.subscriptions().find((one) => one.subscriberId === subscriberId)!;
    if (view.running > 0 || view.waiting > 0) this.sightings.exchangedAtWork++;
    bus.unsubscribe(pattern, subscriberId);
    this.#subscribe(bus, this.#buses.indexOf(bus), wanted);
  }

  #pause(bus: EventBus): void {
    if (bus.subscriptions().some(({ running }) => running > 0)) this.sightings.pausedAtWork++;
    bus.pause();
  }

  async #requeue(bus: EventBus): Promise<void> {
    const failed = await this.#world.run(() => bus.query({ status: "failed", limit: 3 }));
    if (failed.length === 0) return;
    for (const { id } of failed) this.#requeues.set(id, (this.#requeues.get(id) ?? 0) + 1);
    const requeued = await this.#world.run(() => bus.requeue(failed.map(({ id }) => id)));
    if (requeued.length !== failed.length) throw new Error(`${requeued.length} of ${failed.length} were requeued`);
    this.sightings.requeued += requeued.length;
  }

  #look(): void {
    if (this.#faults.length > 0) throw new Error(this.#faults[0]);
    for (const bus of this.#buses) {
      bus.checkInvariants();
      for (const { waiting } of bus.subscriptions()) this.sightings.inLine += waiting;
    }
  }

  // Results ----------------------------------------------------------------------------------------------------------

  async #check(): Promise<void> {
    const rows = await memoryStore({ host: this.#world, disk: this.#disk }).query({ limit: 100_000 });
    for (const { id, topic, status, error = "" } of rows) {
      if (status !== "done" && status !== "failed") throw new Error(`event ${id} is ${status}`);
      for (const { subscriberId, pattern } of this.#wanted) {
        if (pattern !== topic && !(pattern === "t.*" && topic.startsWith("t."))) continue;
        const hasFailed = error.split("\n").some((line) => line.startsWith(subscriberId));
        if (this.#succeeded.has(`${subscriberId} ${id}`) === hasFailed)
          throw new Error(`${subscriberId} event ${id}: ${hasFailed ? "done and failed" : "never done"} (${error})`);
      }
    }
  }

  #topic(): string {
    return TOPICS[this.#below(TOPICS.length)]!;
  }

  #key(): string {
    return `k${this.#below(KEYS)}`;
  }

  #below(bound: number): number {
    return Math.floor(this.#world.random() * bound);
  }
}
