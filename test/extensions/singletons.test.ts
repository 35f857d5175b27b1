/** Services of which one kernel of a store runs one at a time: in simulated time, with processes that die and stop. */
import { describe, expect, test } from "vitest";
import { OWNER_KIND, Ownership, type OwnerTerm } from "../../src/extensions/ownership.ts";
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../../src/host/simulated-process.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { LEASE_MS } from "../../src/limits.ts";
import type { DueChange } from "../../src/store/due.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { StoreError } from "../../src/store/store.ts";
import { inCode } from "./extension-setup.ts";

interface Run {
  readonly by: SimulatedProcess;
  readonly term: number;
  readonly fromMs: number;
  toMs: number;
}

class Connections {
  readonly host: SimulatedHost = simulatedHost(1);
  readonly runs: Run[] = [];
  /** Processes with a store that does not answer writes. */
  readonly away = new Set<SimulatedProcess>();
  /** The service of the next term fails at once. */
  fails = false;
  /** How long the store takes to answer a process that looks for the owner. */
  readonly lateMs = new Map<SimulatedProcess, number>();
  readonly #disk = new MemoryDisk();

  async start(lateMs = 0): Promise<{ process: SimulatedProcess; kernel: Kernel }> {
    const process = simulatedProcess(this.host);
    this.lateMs.set(process, lateMs);
    const store = memoryStore({ host: process, disk: this.#disk });
    const changeDue = store.changeDue.bind(store);
    store.changeDue = async (changes: readonly DueChange[]) => {
      if (this.away.has(process)) throw new StoreError("STORE_AWAY", "the database does not answer");
      return changeDue(changes);
    };
    const dueRows = store.dueRows.bind(store);
    store.dueRows = async (nowMs: number, limit: number, kind?: string) => {
      const ms = kind === OWNER_KIND ? (this.lateMs.get(process) ?? 0) : 0;
      if (ms > 0) await new Promise<void>((resolve) => process.timer(ms, resolve));
      return dueRows(nowMs, limit, kind);
    };
    const extension = inCode({ id: "telegram" }, { singleton: true, runBackground: this.#service(process) });
    const options = { host: process, store, extensions: [extension], extensionData: "nowhere", log: () => {} };
    const kernel = await this.host.run(() => Kernel.open(options));
    await this.host.advance(0);
    return { process, kernel };
  }

  #service(by: SimulatedProcess) {
    return async (signal: AbortSignal, owner?: OwnerTerm) => {
      if (this.fails) throw new Error("no connection");
      const run: Run = { by, term: owner?.term ?? 0, fromMs: this.host.now(), toMs: Number.POSITIVE_INFINITY };
      this.runs.push(run);
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      run.toMs = this.host.now();
    };
  }

  get terms(): number[] {
    return this.runs.map(({ term }) => term);
  }
}

describe("singletons", () => {
  test("[X80] of three kernels one runs the service, as long as it lives", async () => {
    const world = new Connections();
    const first = await world.start();
    await world.start();
    await world.start();
    await world.host.advance(20 * LEASE_MS);
    expect(world.runs).toMatchObject([{ by: first.process, term: 1, toMs: Number.POSITIVE_INFINITY }]);
  });

  test("[X81] when the owner is closed, the next one begins within a third of a lease; its term is greater", async () => {
    const world = new Connections();
    const first = await world.start();
    const second = await world.start();
    await world.host.advance(LEASE_MS);
    await world.host.run(() => first.kernel.close());
    const closedMs = world.host.now();
    await world.host.advance(LEASE_MS / 3 + 1);
    expect(world.runs).toMatchObject([
      { term: 1, toMs: closedMs },
      { by: second.process, term: 2 },
    ]);
  });

  test("[X81] when the owner is killed, another begins after a lease without a beat", async () => {
    const world = new Connections();
    const first = await world.start();
    const second = await world.start();
    await world.host.advance(LEASE_MS);
    first.process.kill();
    const killedMs = world.host.now();
    await world.host.advance(LEASE_MS / 2);
    expect(world.terms).toEqual([1]);
    await world.host.advance(LEASE_MS * 2);
    expect(world.runs[1]).toMatchObject({ by: second.process, term: 2 });
    expect(world.runs[1]!.fromMs - killedMs).toBeLessThanOrEqual(2 * LEASE_MS);
  });

  test("[X82] an owner whose store does not answer ends its service before another one begins", async () => {
    const world = new Connections();
    const first = await world.start();
    const second = await world.start();
    await world.host.advance(LEASE_MS);
    world.away.add(first.process);
    await world.host.advance(3 * LEASE_MS);
    expect(world.runs).toMatchObject([
      { by: first.process, term: 1 },
      { by: second.process, term: 2 },
    ]);
    expect(world.runs[0]!.toMs).toBeLessThan(world.runs[1]!.fromMs);
    world.away.delete(first.process);
    await world.host.advance(3 * LEASE_MS);
    expect(world.terms).toEqual([1, 2]);
  });

  test("[X82] an owner that was stopped beyond its lease ends its service when it goes on", async () => {
    const world = new Connections();
    const first = await world.start();
    await world.start();
    await world.host.advance(LEASE_MS);
    first.process.pause();
    await world.host.advance(3 * LEASE_MS);
    expect(world.terms).toEqual([1, 2]);
    first.process.resume();
    await world.host.advance(3 * LEASE_MS);
    expect(world.runs[0]!.toMs).toBeLessThan(Number.POSITIVE_INFINITY);
    expect(world.terms).toEqual([1, 2]);
  });

  test("[X82] a kernel that gets a late answer of the store does not take over before the owner has ended", async () => {
    const world = new Connections();
    const first = await world.start();
    await world.host.advance(LEASE_MS / 30);
    // The row that it gets was renewed long after it asked.
    const second = await world.start(LEASE_MS / 3);
    await world.host.advance(LEASE_MS / 3);
    world.lateMs.clear();
    world.away.add(first.process);
    await world.host.advance(3 * LEASE_MS);
    expect(world.runs).toMatchObject([
      { by: first.process, term: 1 },
      { by: second.process, term: 2 },
    ]);
    expect(world.runs[0]!.toMs).toBeLessThan(world.runs[1]!.fromMs);
  });

  test("[X80] an owner whose work ends late does not free the name that its own process has taken again", async () => {
    const host = simulatedHost(1);
    const store = memoryStore({ host });
    const begun: string[] = [];
    let end: () => void = () => {};
    const late = new Promise<void>((resolve) => {
      end = resolve;
    });
    const owner = (name: string, holder: string, work: (signal: AbortSignal) => Promise<unknown>) => {
      const parts = { host, due: store, holder, leaseMs: LEASE_MS, alone: false };
      const begin = (signal: AbortSignal) => {
        begun.push(name);
        return work(signal);
      };
      return new Ownership(parts, "telegram", begin, () => {});
    };
    const untilAbort = (signal: AbortSignal) =>
      new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    const first = owner("first", "a", () => late);
    await host.advance(1);
    const closed = first.close();
    const again = owner("again", "a", untilAbort);
    await host.advance(1);
    end();
    await host.run(() => closed);
    const other = owner("other", "b", untilAbort);
    await host.advance(5 * LEASE_MS);
    expect(begun).toEqual(["first", "again"]);
    await host.run(() => Promise.all([again.close(), other.close()]));
  });

  test("[X80] a service that fails puts its extension into ERROR there, and another kernel takes over", async () => {
    const world = new Connections();
    world.fails = true;
    const first = await world.start();
    world.fails = false;
    const second = await world.start();
    await world.host.advance(LEASE_MS);
    expect(first.kernel.health().extensions).toMatchObject([{ id: "telegram", state: "ERROR" }]);
    expect(world.runs).toMatchObject([{ by: second.process, term: 2 }]);
  });
});
