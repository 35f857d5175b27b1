/**
 * Whole kernels in a simulated world, from a seed: two processes on one disk, each with store, scheduler, bus, loop,
 * timers, an extension, a piece and an app; clients that send commands and repeat unanswered ones; clients that open
 * many event streams. Kernels are killed, paused and given wrong clocks and a failing store; the extension fails as it
 * starts, and an operator restarts it. Then the faults stop, and all outcomes are checked from outside.
 */
import type { Cell } from "../../src/cells/cell.ts";
import { pattern } from "../../src/cells/pattern.ts";
import type { Space } from "../../src/cells/space.ts";
import type { ExtensionInCode } from "../../src/extensions/discovery.ts";
import type { ExtensionContext } from "../../src/extensions/extension-context.ts";
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../../src/host/simulated-process.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelParts } from "../../src/kernel/kernel-options.ts";
import type { Capability } from "../../src/loop/capability.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Message } from "../../src/message/envelope.ts";
import { Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { queuedStore } from "../bus/queued-store.ts";
import { inCode } from "../extensions/extension-setup.ts";
import { WireFlood } from "./simulated-wire.ts";

const ACCOUNTS = 8;
/** Of so many parcels one is said to be stored. */
const STORED_EVERY = 50;
const KERNELS = 2;
const LEASE_MS = 2_000;
/** When faults stop, all work has ended after this long. */
const REST_MS = 10_000;

/** Rare situations of a run; some seed must reach each. */
export interface Sightings {
  events: number;
  commands: number;
  repeated: number;
  kills: number;
  pauses: number;
  timers: number;
  refused: number;
  tallied: number;
  /** Kernels that were closed in good order. */
  stops: number;
  /** Rounds in which a single kernel was left. */
  alone: number;
  /** Timers that outlived their kernel. */
  orphaned: number;
  /** Starts of the extension that failed, and restarts that succeeded. */
  failures: number;
  recoveries: number;
  /** Answers to `Sys.Subscribe`, and events that streams have sent. */
  streams: number;
  streamed: number;
}

interface Living {
  readonly process: SimulatedProcess;
  readonly flood: WireFlood;
  /** Undefined while it boots. */
  kernel: Kernel | undefined;
}

/** A command until it is answered; a client that loses its kernel repeats it, under the same id, to another. */
interface Unanswered {
  readonly message: Message;
  asking: SimulatedProcess | undefined;
}

/** No situation reached so far. */
export function noSightings(): Sightings {
  return {
    events: 0,
    commands: 0,
    repeated: 0,
    kills: 0,
    pauses: 0,
    timers: 0,
    refused: 0,
    tallied: 0,
    stops: 0,
    alone: 0,
    orphaned: 0,
    failures: 0,
    recoveries: 0,
    streams: 0,
    streamed: 0,
  };
}

export interface TwoKernelsOptions {
  readonly rounds: number;
  /** Events that are published in one round. */
  readonly eventsPerRound: number;
}

export class TwoKernels {
  readonly sightings = noSightings();
  readonly #world: SimulatedHost;
  readonly #options: TwoKernelsOptions;
  readonly #disk = new MemoryDisk();
  readonly #unanswered = new Map<string, Unanswered>();
  readonly #answers = new Map<string, Json>();
  /** Journal ids of published events that were acknowledged, by their number. */
  readonly #acknowledged = new Map<number, number>();
  /** Numbers of the published events that some kernel's subscriber was called with. */
  readonly #heard = new Set<number>();
  /** Acknowledged timers, by the process that has set them. */
  readonly #timersSet = new Map<string, { readonly by: SimulatedProcess; readonly dueAtMs: number }>();
  #living: Living[] = [];
  #faultsPerMille = 5;
  #published = 0;

  constructor(world: SimulatedHost, options: TwoKernelsOptions) {
    this.#world = world;
    this.#options = options;
  }

  async run(): Promise<void> {
    for (let n = 0; n < KERNELS; n++) await this.#spawn();
    for (let round = 0; round < this.#options.rounds; round++) {
      this.#load();
      this.#askAgain();
      // Sometimes at once, before any request is done.
      if (this.#world.random() < 0.5) await this.#world.advance(this.#below(20));
      await this.#disturb();
      if (this.#world.random() < 0.1) this.#recover();
      if (this.#world.random() < 0.08) this.#openStreams();
      await this.#world.advance(this.#below(100));
    }
    this.#faultsPerMille = 0;
    for (const { process } of this.#living) process.resume();
    // A kernel that starts would arm the timers that others have left. The running kernels must do that too.
    if (this.#running().length === 0) await this.#spawn();
    this.#recover();
    for (let waited = 0; waited < REST_MS; waited += 100) {
      this.#askAgain();
      await this.#world.advance(100);
    }
    if (this.#unanswered.size > 0) throw new Error(`never answered: ${[...this.#unanswered.keys()].join(", ")}`);
    const restless = this.#running().filter(({ kernel }) => !kernel.health().quiescent);
    if (restless.length > 0)
      throw new Error(`${restless.length} kernels are not quiescent ${REST_MS} ms after the last fault`);
    for (const living of this.#living) this.#endStreams(living);
    await this.#check();
  }

  // Kernels
  // ------------------------------------------------------------------------------------------------------------

  async #spawn(): Promise<void> {
    const process = simulatedProcess(this.#world);
    const living: Living = { process, flood: new WireFlood(this.#world, "Bank.Deposited"), kernel: undefined };
    this.#living.push(living);
    void this.#boot(living);
    await this.#world.advance(this.#below(50));
  }

  /** A boot that a faulty store refuses is tried again, as a supervisor would. */
  async #boot(living: Living): Promise<void> {
    const { process } = living;
    while (process.status !== "killed") {
      const inner = memoryStore({ host: process, disk: this.#disk });
      const store = queuedStore(inner, process, this.#world, { faultsPerMille: () => this.#faultsPerMille });
      try {
        living.kernel = await Kernel.open({
          host: process,
          store,
          leaseMs: LEASE_MS,
          capabilities: bank,
          extensions: [this.#dock()],
          extensionData: "nowhere",
          log: () => undefined,
          observe: () => undefined,
          patterns: [tally],
          version: "1",
        });
        return;
      } catch {
        await new Promise<void>((resolve) => process.timer(50, resolve));
      }
    }
  }

  /** An extension that hears of every parcel, and says of some that they are stored. */
  #dock(): ExtensionInCode {
    const events = { publishes: [{ topic: "parcel.stored" }], subscribes: [{ topic: "parcel.came" }] };
    const hear = (context: ExtensionContext) => {
      if (this.#faultsPerMille > 0 && this.#world.random() < 0.2) {
        this.sightings.failures++;
        throw new Error("the gate of the dock is shut");
      }
      context.subscribeEvent<{ n: number }>(
        "parcel.came",
        async ({ payload: { n } }) => {
          if (n % STORED_EVERY === 0) await context.emit("parcel.stored", { n }, { key: String(n) });
          this.#heard.add(n);
        },
        { retry: { attempts: 100 } },
      );
    };
    return inCode({ id: "dock", events }, { initialize: hear });
  }

  /**
   * An operator restarts the extension where it is in ERROR. Its events have waited for it, or went to the other
   * kernel.
   */
  #recover(): void {
    for (const { kernel } of this.#running()) {
      for (const { id, state } of kernel.health().extensions) {
        if (state !== "ERROR") continue;
        void kernel.restartExtension(id).then(
          (restarted) => {
            this.sightings.recoveries += restarted.filter(({ state }) => state !== "ERROR").length;
          },
          () => void this.sightings.refused++,
        );
      }
    }
  }

  /** A client opens event streams on a wire, which ends with its kernel. */
  #openStreams(): void {
    for (const { process, kernel, flood } of this.#living) {
      if (kernel === undefined || process.status !== "running") continue;
      if (!flood.connected) flood.connect(process, kernel.loop);
      flood.subscribe(1 + this.#below(12));
    }
  }

  #endStreams({ flood }: Living): void {
    flood.disconnect();
    this.sightings.streams += flood.answers;
    this.sightings.streamed += flood.events;
  }

  async #disturb(): Promise<void> {
    const chance = this.#world.random();
    const chosen = this.#running()[this.#below(KERNELS)];
    if (this.#living.length < KERNELS) this.sightings.alone++;
    if (this.#living.length < KERNELS && chance < 0.1) return this.#spawn();
    if (chosen === undefined || chance < 0.88) return;
    if (chance < 0.93) await this.#end(chosen, chance < 0.9 ? "stop" : "kill");
    else if (chance < 0.96) {
      this.sightings.pauses++;
      chosen.process.pause();
      this.#world.timer(this.#below(2_000), () => chosen.process.resume());
    } else {
      chosen.process.stepClock(this.#below(400) - 200);
    }
  }

  /** Often no kernel takes its place for a while: the other one goes on alone. */
  async #end(chosen: { process: SimulatedProcess; kernel: Kernel }, how: "stop" | "kill"): Promise<void> {
    const { process, kernel } = chosen;
    const now = this.#world.now();
    for (const [id, { by, dueAtMs }] of this.#timersSet) {
      if (by === process && dueAtMs > now) this.sightings.orphaned++;
      if (by === process) this.#timersSet.delete(id);
    }
    for (const living of this.#living) if (living.process === process) this.#endStreams(living);
    this.#living = this.#living.filter((living) => living.process !== process);
    if (how === "kill") {
      this.sightings.kills++;
      process.kill();
    } else {
      this.sightings.stops++;
      const kill = () => process.kill();
      void kernel.close({ graceMs: 1_000 }).then(kill, kill);
    }
    if (this.#living.length === 0 || this.#world.random() < 0.4) await this.#spawn();
  }

  #running(): { readonly process: SimulatedProcess; readonly kernel: Kernel }[] {
    return this.#living.flatMap(({ process, kernel }) =>
      kernel !== undefined && process.status === "running" ? [{ process, kernel }] : [],
    );
  }

  // Load
  // ---------------------------------------------------------------------------------------------------------------

  #load(): void {
    const running = this.#running();
    for (const { process, kernel } of running) {
      const events = Array.from({ length: Math.ceil(this.#options.eventsPerRound / running.length) }, () => {
        const payload = { n: ++this.#published };
        return { topic: "parcel.came", source: "dock", payload };
      });
      const acknowledge = (ids: readonly number[]) => {
        // A promise chain of a killed process may still run out; no client was told then.
        if (process.status === "killed") return;
        for (const [at, { payload }] of events.entries()) this.#acknowledged.set(payload.n, ids[at]!);
      };
      void kernel.bus.publishMany(events).then(acknowledge, () => void this.sightings.refused++);
    }
    for (let n = this.#below(6); n > 0; n--)
      this.#command("Bank.Deposit", { account: this.#below(ACCOUNTS), amount: 1 });
    if (this.#world.random() < 0.3) this.#setTimer();
    this.#command("Tally.Add", { times: 1 });
    this.sightings.tallied++;
  }

  #command(type: string, data: Json): void {
    const id = `command-${++this.sightings.commands}`;
    const metadata = { id, timestamp: this.#world.now() };
    this.#unanswered.set(id, { message: { kind: "command", type, data, metadata }, asking: undefined });
  }

  #setTimer(): void {
    this.sightings.timers++;
    const message = { kind: "command", type: "Bank.Deposit", data: { account: 0, amount: 1_000 } };
    this.#command("Timer.Set", { delayMs: this.#below(3_000), message });
  }

  /** Asks for requests without a client: new ones, and those that their kernel did not answer. */
  #askAgain(): void {
    const running = this.#running();
    if (running.length === 0) return;
    for (const [id, unanswered] of this.#unanswered) {
      if (unanswered.asking !== undefined && unanswered.asking.status !== "killed") continue;
      if (unanswered.asking !== undefined) this.sightings.repeated++;
      const { process, kernel } = running[this.#below(running.length)]!;
      unanswered.asking = process;
      void kernel.loop.request(unanswered.message).then((answer) => {
        if (process.status === "killed" || unanswered.asking !== process) return;
        unanswered.asking = undefined;
        if (answer.kind !== "reply") return;
        this.#unanswered.delete(id);
        this.#answers.set(id, answer.data);
        const { delayMs } = unanswered.message.data as { delayMs?: number };
        if (delayMs !== undefined) this.#timersSet.set(id, { by: process, dueAtMs: this.#world.now() + delayMs });
      });
    }
  }

  #below(bound: number): number {
    return Math.floor(this.#world.random() * bound);
  }

  // Checking
  // -----------------------------------------------------------------------------------------------------------

  async #check(): Promise<void> {
    const store = memoryStore({ host: this.#world, disk: this.#disk });
    const rows = await store.query({ limit: 1_000_000 });
    const unsettled = rows.filter(({ status }) => status !== "done");
    if (unsettled.length > 0)
      throw new Error(`${unsettled.length} rows are not done, first ${JSON.stringify(unsettled[0])}`);

    const parcels = new Map(
      rows
        .filter(({ topic }) => topic === "parcel.came")
        .map((row) => [(row.message!.data as { n: number }).n, row.id]),
    );
    for (const [n, id] of this.#acknowledged) {
      if (parcels.get(n) !== id)
        throw new Error(`parcel ${n} was acknowledged as event ${id}, and is ${parcels.get(n)}`);
    }
    const { tallied } = this.sightings;
    const deposits = this.sightings.commands - this.sightings.timers - tallied;
    const due = deposits + this.sightings.timers * 1_000;
    const kernel = this.#running()[0]!.kernel;
    const summary = kernel.query("Bank.Summary", null);
    await this.#world.advance(1_000);
    const { total, deposited, twice } = (await summary) as { total: number; deposited: number; twice: number };
    if (twice !== 2 * tallied) throw new Error(`twice ${tallied} is ${twice} to the piece`);
    if (total !== due) throw new Error(`the accounts hold ${total}; ${due} was paid in`);
    const transfers = deposits + this.sightings.timers;
    if (deposited !== transfers)
      throw new Error(`${deposited} deposits were counted by their events, ${transfers} were made`);
    for (const n of parcels.keys())
      if (!this.#heard.has(n)) throw new Error(`parcel ${n} is done, and nobody heard of it`);
    const report = await store.verify();
    if (!report.ok) throw new Error(report.problems.join("; "));
    this.sightings.events = rows.filter(({ message }) => message?.kind === "event").length;
  }
}

/** An app with state, an observed derived value, an event with two subscribers, and a count of the timer's messages. */
function bank({ bus, space, host }: KernelParts): Readonly<Record<string, Capability>> {
  const accounts = Array.from({ length: ACCOUNTS }, (_, n) => space.cell<number>(`account/${n}`));
  const total = space.computed("total", () => accounts.reduce((sum, account) => sum + (account.get() ?? 0), 0));
  total.sink(() => {});
  countEvents(space, bus, "Bank.Deposited", "deposited");
  return {
    bank: transactional({
      space,
      description: "keeps accounts",
      emits: { "Bank.Deposited": true },
      commands: {
        "Bank.Deposit": {
          handle: async ({ account, amount }: { account: number; amount: number }, tx) => {
            const cell = accounts[account]!;
            const before = tx.get(cell) ?? 0;
            if (host.random() < 0.1) await host.yield();
            tx.set(cell, before + amount);
            tx.emit("Bank.Deposited", { account, amount });
            return { holds: before + amount };
          },
        },
      },
      queries: {
        "Bank.Summary": {
          handle: async () => ({
            total: (await total.pull()) ?? 0,
            deposited: (await space.cell<number>("deposited").pull()) ?? 0,
            twice: (await space.cell<number>("tally/twice").pull()) ?? 0,
          }),
        },
      },
    }),
    // The same command again, to any kernel, is the same event to the stream.
    tally: capability({
      ...{ description: "counts in a piece", idempotent: true },
      commands: {
        "Tally.Add": {
          handle: async (data: { times: number }, _context, { metadata }) => {
            if (!space.pieces.has("tally")) await space.run(tally, { step: 1 }, { id: "tally" });
            const { outcome } = space.stream<{ times: number }>("tally/add").send(data, { eventId: metadata.id });
            const { kind } = await outcome;
            if (kind !== "handled" && kind !== "already") throw new Failure(503, `the send was ${kind}`);
            return { kind };
          },
        },
      },
    }),
    clerk: capability({ description: "hears of deposits", on: { "Bank.Deposited": () => undefined } }),
  };
}

/** A piece with a stream, state of its own and a value derived from it. */
const tally = pattern("tally", (inputs: Cell<{ step: number }>, piece) => {
  const count = piece.cell<number>("count");
  const add = piece.stream<{ times: number }>("add");
  add.handle(({ times }) => {
    count.set((count.get() ?? 0) + times * (inputs.key("step").get() ?? 0));
  });
  return { add, count, twice: piece.computed("twice", () => 2 * (count.get() ?? 0)) };
});

/** A transactional subscriber: the count and the delivery are one commit. */
function countEvents(space: Space, bus: KernelParts["bus"], topic: string, counter: string): void {
  bus.subscribe(topic, (_event, tx) => tx.update(space.cell<number>(counter), (n = 0) => n + 1), {
    subscriberId: `count-${counter}`,
    space,
    retry: { attempts: 100 },
  });
}
