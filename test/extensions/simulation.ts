/**
 * A kernel with extensions in a simulated world, from a seed: a service that emits under keys, a handler that commands
 * and emits, schedules of both kinds. The kernel is killed and started again, its store fails, its clock steps, and an
 * extension with a subscription fails as it starts and is restarted later. Then the faults stop, and the end of all
 * work is checked.
 */
import type { ExtensionInCode } from "../../src/extensions/discovery.ts";
import type { ExtensionContext } from "../../src/extensions/extension-context.ts";
import type { ScheduledRun } from "../../src/extensions/providers.ts";
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../../src/host/simulated-process.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelParts } from "../../src/kernel/kernel-options.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { JournalRow } from "../../src/store/journal.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { queuedStore } from "../bus/queued-store.ts";
import { inCode } from "./extension-setup.ts";

const ROUNDS = 25;
const LEASE_MS = 2_000;
const RETRY = { attempts: 100, backoff: { startMs: 10, maxMs: 100 } };

/** The cases that a run met; some seed must meet each rare case. */
export interface Sightings {
  grains: number;
  kills: number;
  refused: number;
  ticks: number;
  tasks: number;
  repeatedSlots: number;
  /** Starts of an extension that failed, and restarts that succeeded. */
  failures: number;
  recoveries: number;
}

export class ExtensionSimulation {
  readonly sightings: Sightings = {
    ...{ grains: 0, kills: 0, refused: 0, ticks: 0, tasks: 0, repeatedSlots: 0 },
    ...{ failures: 0, recoveries: 0 },
  };
  readonly #world: SimulatedHost;
  readonly #disk = new MemoryDisk();
  readonly #acknowledged = new Set<number>();
  #process!: SimulatedProcess;
  #kernel: Kernel | undefined;
  #faultsPerMille = 5;

  constructor(world: SimulatedHost) {
    this.#world = world;
  }

  async run(): Promise<void> {
    this.#start();
    for (let round = 0; round < ROUNDS; round++) {
      await this.#world.advance(this.#below(1_000));
      if (this.#world.random() < 0.2) this.#process.stepClock(this.#below(400) - 200);
      if (this.#world.random() < 0.3) this.#kill();
      else if (this.#world.random() < 0.5) this.#recover();
    }
    this.#faultsPerMille = 0;
    await this.#world.advance(10_000);
    this.#recover();
    await this.#world.advance(10_000);
    await this.#check();
  }

  #kill(): void {
    this.sightings.kills++;
    this.#process.kill();
    this.#start();
  }

  /** The part of an operator: restarts an extension in ERROR. Its events have waited for it. */
  #recover(): void {
    const kernel = this.#kernel;
    const failed = kernel?.health().extensions.filter(({ state }) => state === "ERROR") ?? [];
    for (const { id } of failed)
      void kernel?.restartExtension(id).then(
        (restarted) => {
          this.sightings.recoveries += restarted.filter(({ state }) => state !== "ERROR").length;
        },
        () => this.sightings.refused++,
      );
  }

  #start(): void {
    this.#kernel = undefined;
    this.#process = simulatedProcess(this.#world);
    void this.#boot(this.#process);
  }

  /** A start that a faulty store refuses is tried again, as a supervisor would. */
  async #boot(process: SimulatedProcess): Promise<void> {
    while (process.status !== "killed") {
      const inner = memoryStore({ host: process, disk: this.#disk });
      const store = queuedStore(inner, process, this.#world, { faultsPerMille: () => this.#faultsPerMille });
      const extensions = [this.#mill(process), this.#miller(), this.#clock(process)];
      try {
        const opened = await Kernel.open({
          ...{ host: process, store, leaseMs: LEASE_MS, capabilities: ledger, extensions, extensionData: "nowhere" },
          // The one before it is dead.
          ...{ log: () => undefined, observe: () => undefined, alone: true },
        });
        const failed = opened.health().extensions.filter(({ id, state }) => state === "ERROR" && id !== "miller");
        if (failed.length === 0) {
          this.#kernel = opened;
          return;
        }
        await opened.close({ graceMs: 0 });
      } catch {
        this.sightings.refused++;
      }
      await new Promise<void>((resolve) => process.timer(50, resolve));
    }
  }

  /** Emits the unacknowledged events, one after the other, repeatedly: the key makes repeats harmless. */
  #mill(process: SimulatedProcess): ExtensionInCode {
    const mill = inCode(
      { id: "mill", events: { publishes: [{ topic: "grain.came" }] } },
      {
        runBackground: async (signal: AbortSignal) => {
          while (!signal.aborted) {
            const n = this.#acknowledged.size + 1;
            await mill.context.emit("grain.came", { n }, { key: String(n) }).then(
              () => process.status !== "killed" && this.#acknowledged.add(n),
              () => this.sightings.refused++,
            );
            await new Promise<void>((resolve) => process.timer(40, resolve));
          }
        },
      },
    );
    return mill;
  }

  #miller(): ExtensionInCode {
    const events = { publishes: [{ topic: "flour.made" }], subscribes: [{ topic: "grain.came" }] };
    return inCode(
      { id: "miller", events },
      {
        initialize: (context: ExtensionContext) => {
          if (this.#faultsPerMille > 0 && this.#world.random() < 0.4) {
            this.sightings.failures++;
            throw new Error("the stone is broken");
          }
          context.subscribeEvent<{ n: number }>(
            "grain.came",
            async ({ payload: { n } }) => {
              await context.command("Ledger.Add", { n });
              await context.emit("flour.made", { n }, { key: String(n) });
            },
            { retry: RETRY },
          );
        },
      },
    );
  }

  #clock(process: SimulatedProcess): ExtensionInCode {
    const clock = inCode(
      {
        id: "clock",
        events: { publishes: [{ topic: "tick" }, { topic: "task.run" }] },
        schedules: [
          { name: "ticks", cron: "* * * * * *", emit: "tick" },
          { name: "task", cron: "*/2 * * * * *" },
        ],
      },
      {
        executeTask: async (_task: string, { slotMs, attempt }: ScheduledRun) => {
          await new Promise<void>((resolve) => process.timer(900, resolve));
          await clock.context.emit("task.run", { slotMs, attempt });
        },
      },
    );
    return clock;
  }

  #below(bound: number): number {
    return Math.floor(this.#world.random() * bound);
  }

  async #check(): Promise<void> {
    const store = memoryStore({ host: this.#world, disk: this.#disk });
    const rows = await store.query({ limit: 1_000_000 });
    const unsettled = rows.filter(({ status }) => status !== "done");
    if (unsettled.length > 5) throw new Error(`${unsettled.length} rows are not done: ${JSON.stringify(unsettled[0])}`);
    const of = (topic: string) => rows.filter((row) => row.topic === topic);
    const grains = of("grain.came").map((row) => numberOf(row, "n"));
    this.sightings.grains = grains.length;
    requireDistinct("grain.came", grains);
    for (const n of this.#acknowledged)
      if (!grains.includes(n)) throw new Error(`grain ${n} was acknowledged and is not there`);
    const done = of("grain.came")
      .filter(({ status }) => status === "done")
      .map((row) => numberOf(row, "n"));
    const flour = of("flour.made").map((row) => numberOf(row, "n"));
    requireDistinct("flour.made", flour);
    for (const n of done) if (!flour.includes(n)) throw new Error(`grain ${n} is done, and no flour was made of it`);
    const ticks = of("tick").map((row) => numberOf(row, "slotMs"));
    this.sightings.ticks = ticks.length;
    requireDistinct("tick", ticks);
    if (ticks.some((slotMs, i) => i > 0 && slotMs < ticks[i - 1]!)) throw new Error("slots went back");
    const attempts = of("task.run").map((row) => numberOf(row, "attempt"));
    this.sightings.tasks = attempts.length;
    this.sightings.repeatedSlots = attempts.filter((attempt) => attempt > 1).length;
    if (attempts.some((attempt) => attempt > 3)) throw new Error("a slot was tried more than three times");
  }
}

function numberOf({ message }: JournalRow, field: string): number {
  return (message!.data as Record<string, number>)[field]!;
}

function requireDistinct(what: string, numbers: readonly number[]): void {
  const twice = numbers.find((n, i) => numbers.indexOf(n) !== i);
  if (twice !== undefined) throw new Error(`${what} ${twice} is in the journal twice`);
}

function ledger({ space }: KernelParts) {
  const entries = space.cell<Readonly<Record<string, number>>>("entries");
  return {
    ledger: transactional({
      ...{ space, description: "counts" },
      commands: {
        "Ledger.Add": {
          handle: ({ n }: { n: number }, tx) => {
            if (tx.get(entries) === undefined) tx.set(entries, {});
            tx.set(entries.key(String(n)), 1);
            return null;
          },
        },
      },
    }),
  };
}
