/**
 * A whole kernel from a seed: loop, bus, cells, timers and store on one disk, clients on wires that are cut, many event
 * streams, a store that fails, a process that is killed and started again. Then the faults stop, and the outcome of
 * every command is checked from outside.
 */
import type { Host } from "../../src/host/host.ts";
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import type { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelParts } from "../../src/kernel/kernel-options.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { LEASE_MS, MortalKernel } from "./mortal-kernel.ts";
import { WireClient, WireFlood } from "./simulated-wire.ts";

const CLIENTS = 3;

/** Rare situations of a run; some seed must reach each. */
export interface Sightings {
  commands: number;
  kills: number;
  cuts: number;
  resent: number;
  heardAgain: number;
  rings: number;
  interrupted: number;
  /** Answers to `Sys.Subscribe`, and events that streams have sent. */
  streams: number;
  streamed: number;
}

export class KernelSimulation {
  readonly sightings: Sightings = {
    commands: 0,
    kills: 0,
    cuts: 0,
    resent: 0,
    heardAgain: 0,
    rings: 0,
    interrupted: 0,
    streams: 0,
    streamed: 0,
  };
  readonly #world: SimulatedHost;
  readonly #clients: WireClient[];
  /** Opens event streams beside the clients. */
  readonly #flood: WireFlood;
  readonly #kernel: MortalKernel;
  #next = 0;
  /** How often the plain listener was told of each command. */
  readonly #heard = new Map<string, number>();
  /** Bells that were set by an answered `Timer.Set`, and those that rang. */
  readonly #bells = new Map<string, string>();
  readonly #rung = new Set<string>();

  constructor(world: SimulatedHost) {
    this.#world = world;
    this.#clients = Array.from({ length: CLIENTS }, (_, n) => new WireClient(world, `client ${n}`));
    this.#flood = new WireFlood(world);
    this.#kernel = new MortalKernel({
      ...{ world, disk: new MemoryDisk() },
      capabilities: (parts: KernelParts) => this.#capabilities(parts),
      ended: () => {
        for (const client of this.#clients) client.disconnect();
        this.#flood.disconnect();
      },
    });
  }

  async run(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      this.#disturb();
      await this.#world.advance(this.#below(40));
      this.#kernel.open?.loop.pending.checkInvariants();
    }
    this.#kernel.faultsPerMille = 0;
    for (let n = 0; n < 100; n++) {
      this.#mend();
      await this.#world.advance(LEASE_MS);
    }
    await this.#check();
  }

  // The kernel
  // ---------------------------------------------------------------------------------------------------------------

  #capabilities({ space }: KernelParts) {
    const applied = (id: string) => space.cell<number>(`applied/${id}`);
    const total = space.cell<number>("total");
    return {
      ledger: transactional({
        space,
        description: "adds up",
        emits: { "Entry.Added": true },
        commands: {
          "Ledger.Add": {
            handle: (amount: Json, tx, { metadata: { id } }: Message) => {
              tx.set(applied(id), (tx.get(applied(id)) ?? 0) + 1);
              const sum = (tx.get(total) ?? 0) + Number(amount);
              tx.set(total, sum);
              tx.emit("Entry.Added", { id });
              return sum;
            },
          },
        },
        queries: {
          "Ledger.Applied": { handle: async (id: Json) => (await applied(String(id)).pull()) ?? 0 },
          "Ledger.Total": { handle: async () => (await total.pull()) ?? 0 },
        },
      }),
      bells: capability({
        description: "rings, twice if need be",
        idempotent: true,
        commands: { "Bell.Ring": { handle: (bell, { host }) => this.#ring(bell, host) } },
      }),
      sirens: capability({
        description: "rings, and never twice",
        commands: { "Siren.Ring": { handle: (bell, { host }) => this.#ring(bell, host) } },
      }),
      listener: capability({
        description: "hears",
        on: {
          "Entry.Added": (data) => {
            const { id } = data as { id: string };
            this.#heard.set(id, (this.#heard.get(id) ?? 0) + 1);
          },
        },
      }),
    };
  }

  async #ring(bell: Json, host: Host): Promise<void> {
    // Long enough to be killed meanwhile.
    await new Promise<void>((resolve) => host.timer(this.#below(400), resolve));
    this.#rung.add(String(bell));
  }

  // Disturbing
  // ---------------------------------------------------------------------------------------------------------------

  #disturb(): void {
    this.#mend();
    const client = this.#clients[this.#below(CLIENTS)] as WireClient;
    const what = this.#below(100);
    if (what < 60) for (let n = this.#below(5); n >= 0; n--) this.#add(client);
    else if (what < 70) this.#setBell(client);
    else if (what < 78) this.#cut(client);
    else if (what < 82) this.#kill();
    else if (what < 86) this.#kernel.process?.stepClock(this.#below(400) - 200);
    else if (what < 94) this.#flood.subscribe(1 + this.#below(40));
    else if (what < 96) this.#flood.disconnect();
  }

  /** A supervisor starts an ended kernel; clients connect where they can. */
  #mend(): void {
    if (!this.#kernel.process) this.#kernel.start();
    const { process, open: kernel } = this.#kernel;
    if (!process || !kernel) return;
    for (const client of this.#clients) if (!client.connected) client.connect(process, kernel.loop);
    if (!this.#flood.connected) this.#flood.connect(process, kernel.loop);
  }

  #add(client: WireClient): void {
    this.sightings.commands++;
    client.ask(this.#message("command", "Ledger.Add", 1 + this.#below(9)));
  }

  #setBell(client: WireClient): void {
    const bell = `bell${++this.#next}`;
    const message = { kind: "command", type: this.#below(2) === 0 ? "Bell.Ring" : "Siren.Ring", data: bell };
    const request = this.#message("command", "Timer.Set", { delayMs: this.#below(500), message });
    this.#bells.set(request.metadata.id, bell);
    client.ask(request);
  }

  #cut(client: WireClient): void {
    if (client.connected) this.sightings.cuts++;
    client.disconnect();
  }

  #kill(): void {
    if (this.#kernel.kill()) this.sightings.kills++;
  }

  #message(kind: "command" | "query", type: string, data: Json): Message {
    return { kind, type, data, metadata: { id: `m${++this.#next}`, timestamp: 1 } };
  }

  // Checking
  // -----------------------------------------------------------------------------------------------------------------

  async #check(): Promise<void> {
    const kernel = this.#kernel.open;
    this.sightings.streams = this.#flood.answers;
    this.sightings.streamed = this.#flood.events;
    if (!kernel) throw new Error("no kernel has come up");
    for (const { name, open } of this.#clients)
      if (open.size > 0) throw new Error(`${name} still waits for ${[...open.keys()].join(" ")}`);
    const ask = (type: string, data: Json) => this.#world.run(() => kernel.query(type, data));
    let last = 0;
    for (const { answers, resent } of this.#clients) {
      this.sightings.resent += resent;
      for (const [id, { type, data }] of answers) {
        if (type === "Timer.Set") await this.#checkRung(id, kernel);
        if (type !== "Ledger.Add") continue;
        last = Math.max(last, data as number);
        const times = await ask("Ledger.Applied", id);
        if (times !== 1) throw new Error(`${id} was applied ${JSON.stringify(times)} times`);
        if (!this.#heard.has(id)) throw new Error(`the event of ${id} was never heard`);
      }
    }
    // The answered sums grow by the added amounts: the last one is the total.
    if ((await ask("Ledger.Total", null)) !== last) throw new Error(`the total is not the last sum, ${last}`);
    for (const times of this.#heard.values()) if (times > 1) this.sightings.heardAgain++;
    if (kernel.loop.pending.size > 0) throw new Error(`${kernel.loop.pending.size} requests are still pending`);
  }

  /**
   * A timer's message is done, or the journal has the reason why not: a process that died over an unrepeatable command,
   * or too many that did.
   */
  async #checkRung(id: string, kernel: Kernel): Promise<void> {
    const bell = this.#bells.get(id) ?? "";
    if (this.#rung.has(bell)) return void this.sightings.rings++;
    const [row] = await this.#world.run(() => kernel.bus.query({ kind: "command", causation: id, limit: 1 }));
    const isInterrupted = row?.topic === "Siren.Ring" && /interrupted/.test(row.error ?? "");
    const isGivenUp = /its process died 5 times/.test(row?.error ?? "");
    if (row?.status !== "failed" || !(isInterrupted || isGivenUp))
      throw new Error(`${bell} was set and never rang: ${JSON.stringify(row)}`);
    this.sightings.interrupted++;
  }

  #below(bound: number): number {
    return Math.floor(this.#world.random() * bound);
  }
}
