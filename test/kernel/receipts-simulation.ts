/**
 * A whole kernel from a seed with receipts that expire: commands, events and sends that come again long after, from an
 * archive; a store that fails, a process that is killed and started again, and another one that moves the horizon and
 * removes settled rows at any moment. Then the faults stop, and the documents show how often each message took effect.
 */
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import type { KernelParts } from "../../src/kernel/kernel-options.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { ErrorData } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { commandMessage, eventMessage } from "../../src/message/lineage.ts";
import { type DocumentRef, SHARED_SCOPE } from "../../src/store/document.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { LEASE_MS, MortalKernel } from "./mortal-kernel.ts";

/** How far behind the clock the horizon may come. Far shorter than in production. */
const KEPT_MS_MAX = 10_000;
const SPACE = "kernel";

/** Rare situations of a run; some seed must reach each. */
export interface Sightings {
  handled: number;
  kills: number;
  removed: number;
  commandsTooOld: number;
  eventsTooOld: number;
  sendsTooOld: number;
  /** Repeated, and answered as the first time. */
  known: number;
  requeued: number;
}

export class ReceiptsSimulation {
  readonly sightings: Sightings = {
    ...{ handled: 0, kills: 0, removed: 0, commandsTooOld: 0, eventsTooOld: 0, sendsTooOld: 0, known: 0, requeued: 0 },
  };
  readonly #world: SimulatedHost;
  readonly #disk = new MemoryDisk({ changesKept: 20 });
  readonly #kernel: MortalKernel;
  /** All messages that were ever sent, to come again. */
  readonly #commands: Message[] = [];
  readonly #events: Message[] = [];
  readonly #sends: string[] = [];
  /** The answer of a command; an acknowledged one must have taken effect by the end. */
  readonly #answers = new Map<string, Json>();
  readonly #acknowledged = new Set<string>();
  /**
   * Events with a handler that fails until they are requeued; and those that have failed: retention may remove them
   * then, and the removed ones were seen.
   */
  readonly #failing = new Set<string>();
  readonly #failed = new Set<string>();

  constructor(world: SimulatedHost) {
    this.#world = world;
    this.#kernel = new MortalKernel({
      ...{ world, disk: this.#disk },
      capabilities: (parts: KernelParts) => this.#capabilities(parts),
    });
  }

  async run(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      if (!this.#kernel.process) this.#kernel.start();
      await this.#disturb();
      await this.#world.advance(this.#below(300));
    }
    this.#kernel.faultsPerMille = 0;
    for (let n = 0; n < 30; n++) {
      if (!this.#kernel.process) this.#kernel.start();
      await this.#requeue();
      await this.#world.advance(LEASE_MS);
    }
    await this.#check();
  }

  // The kernel
  // ---------------------------------------------------------------------------------------------------------------

  #capabilities({ space, bus }: KernelParts) {
    const effects = (id: string) => space.cell<number>(`effects/${id}`);
    bus.subscribe(
      "Job.Asked",
      ({ message }, tx) => {
        const { id } = message.metadata;
        if (this.#failing.has(id)) {
          this.#failed.add(id);
          throw new Error("not yet");
        }
        tx.update(effects(id), (count = 0) => count + 1);
      },
      { subscriberId: "worker", space },
    );
    space.stream<string>("sends").handle((_, { id = "" }) => effects(id).update((count = 0) => count + 1));
    return {
      counter: transactional({
        space,
        description: "counts",
        commands: {
          "Count.It": {
            handle: (_: Json, tx, { metadata: { id } }: Message) => {
              const count = (tx.get(effects(id)) ?? 0) + 1;
              tx.set(effects(id), count);
              return { id, count };
            },
          },
        },
      }),
    };
  }

  // Disturbing
  // ---------------------------------------------------------------------------------------------------------------

  async #disturb(): Promise<void> {
    const what = this.#below(100);
    if (what < 15) this.#ask(this.#keep(this.#commands, commandMessage(this.#world, "Count.It", null)));
    else if (what < 30) this.#ask(this.#anyOf(this.#commands));
    else if (what < 40) this.#publish(this.#newEvent());
    else if (what < 52) this.#publish(this.#anyOf(this.#events));
    else if (what < 60) this.#send(undefined);
    else if (what < 72) this.#send(this.#anyOf(this.#sends));
    else if (what < 84) await this.#forget();
    else if (what < 88) await this.#otherProcess().retain({ keepSettled: this.#below(5), limit: 100 });
    else if (what < 92) await this.#requeue();
    else if (what < 96) this.#kill();
    else this.#kernel.process?.stepClock(this.#below(400) - 200);
  }

  /** Repeated with another timestamp, a command is the same command. */
  #ask(message: Message | undefined): void {
    if (message === undefined) return;
    const { id } = message.metadata;
    const again = { ...message, metadata: { ...message.metadata, timestamp: this.#world.now() } };
    this.#kernel.open?.request(again).then(({ kind, data }) => {
      if (kind === "reply") {
        const first = this.#answers.get(id);
        if (first !== undefined && JSON.stringify(first) !== JSON.stringify(data))
          throw new Error(`${id}: another answer`);
        if (first !== undefined) this.sightings.known++;
        this.#answers.set(id, data);
        this.#acknowledged.add(id);
      } else if ((data as ErrorData).code === 410) this.sightings.commandsTooOld++;
    }, ignored);
  }

  #newEvent(): Message {
    const message = this.#keep(this.#events, eventMessage(this.#world, "Job.Asked", null));
    if (this.#below(3) === 0) this.#failing.add(message.metadata.id);
    return message;
  }

  #publish(message: Message | undefined): void {
    if (message === undefined) return;
    const published = this.#kernel.open?.bus.publishMessage(message, "simulation", "Job.Asked");
    published?.then(
      () => this.#acknowledged.add(message.metadata.id),
      (error: Error) => {
        if (error.message.includes("what was handled is remembered")) this.sightings.eventsTooOld++;
      },
    );
  }

  #send(eventId: string | undefined): void {
    const stream = this.#kernel.open?.space.stream<string>("sends");
    if (stream === undefined) return;
    const sent = stream.send("", eventId === undefined ? {} : { eventId });
    if (eventId === undefined) this.#sends.push(sent.id);
    sent.outcome.then((outcome) => {
      if (outcome.kind === "handled" || outcome.kind === "already") this.#acknowledged.add(sent.id);
      if (outcome.kind === "already") this.sightings.known++;
      if (outcome.kind === "failed" && outcome.rejection?.reason === "too-old") this.sightings.sendsTooOld++;
    }, ignored);
  }

  /** Another process on the same data. */
  #otherProcess() {
    return memoryStore({ host: this.#world, disk: this.#disk });
  }

  async #forget(): Promise<void> {
    const madeBeforeMs = this.#world.now() - this.#below(KEPT_MS_MAX);
    const { removed } = await this.#otherProcess().forgetReceipts({ madeBeforeMs, limit: 1 + this.#below(20) });
    this.sightings.removed += removed;
  }

  async #requeue(): Promise<void> {
    this.#failing.clear();
    const store = this.#otherProcess();
    const failed = await store.query({ status: "failed", limit: 100 });
    this.sightings.requeued += (await store.requeue(failed.map(({ id }) => id))).length;
  }

  #kill(): void {
    if (this.#kernel.kill()) this.sightings.kills++;
  }

  // Checking
  // -----------------------------------------------------------------------------------------------------------------

  async #check(): Promise<void> {
    const store = this.#otherProcess();
    const ids = [...[...this.#commands, ...this.#events].map(({ metadata }) => metadata.id), ...this.#sends];
    const { documents } = await store.load(SPACE, ids.map(effectsOf));
    documents.forEach(({ value }, at) => {
      const id = ids[at] as string;
      const count = (value as number | undefined) ?? 0;
      if (count > 1) throw new Error(`${id} took effect ${count} times`);
      if (count === 0 && this.#acknowledged.has(id) && !this.#failed.has(id))
        throw new Error(`${id} was acknowledged and never took effect`);
      this.sightings.handled += count;
    });
    const { pending, processing, failed } = await store.count();
    if (pending + processing + failed > 0) throw new Error(`${pending + processing + failed} events are left`);
  }

  #keep(list: Message[], message: Message): Message {
    list.push(message);
    return message;
  }

  #anyOf<T>(list: readonly T[]): T | undefined {
    return list[this.#below(list.length)];
  }

  #below(bound: number): number {
    return Math.floor(this.#world.random() * bound);
  }
}

function effectsOf(id: string): DocumentRef {
  return { scope: SHARED_SCOPE, id: `effects/${id}` };
}

function ignored(): void {}
