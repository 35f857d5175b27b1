/** Schedules of kernels that share a store: in simulated time, with processes that are killed and stopped. */
import { describe, expect, test } from "vitest";
import type { ExtensionInCode } from "../../src/extensions/discovery.ts";
import "../../src/extensions/extension-loader.ts";
import type { ScheduledRun } from "../../src/extensions/providers.ts";
import { NEVER_MS, SCHEDULE_KIND } from "../../src/extensions/schedule-row.ts";
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../../src/host/simulated-process.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { LEASE_MS, SCHEDULE_KEPT_MS } from "../../src/limits.ts";
import type { DueChange } from "../../src/store/due.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { inCode } from "./extension-setup.ts";

const MINUTE = 60_000;

interface Begun extends Pick<ScheduledRun, "slotMs" | "attempt"> {
  readonly by: SimulatedProcess;
  readonly atMs: number;
  ended: boolean;
}

class SharedStore {
  readonly host: SimulatedHost;
  readonly begun: Begun[] = [];
  /** How long a task takes. */
  takesMs = 1_000;
  /** The store has a clock that is not that of the process. */
  hasClock = false;
  readonly #disk = new MemoryDisk();

  constructor(seed = 1) {
    this.host = simulatedHost(seed);
  }

  /** A kernel of its own process, with a task every minute. */
  async start(cron = "* * * * *"): Promise<SimulatedProcess> {
    const process = simulatedProcess(this.host);
    await this.open(process, this.clock(process, cron));
    return process;
  }

  /** A kernel with one extension, and its output. */
  async open(process: SimulatedProcess, extension: ExtensionInCode): Promise<{ kernel: Kernel; said: string[] }> {
    const store = memoryStore({ host: process, disk: this.#disk });
    if (this.hasClock) store.now = () => this.host.now();
    const said: string[] = [];
    const log = ({ message }: { message: string }) => void said.push(message);
    const options = { host: process, store, extensions: [extension], extensionData: "nowhere", log };
    return { kernel: await this.host.run(() => Kernel.open(options)), said };
  }

  clock(process: SimulatedProcess, cron = "* * * * *"): ExtensionInCode {
    const executeTask = async (_task: string, { slotMs, attempt }: ScheduledRun) => {
      const begun: Begun = { slotMs, attempt, by: process, atMs: this.host.now(), ended: false };
      this.begun.push(begun);
      await new Promise<void>((resolve) => process.timer(this.takesMs, resolve));
      begun.ended = true;
    };
    return inCode({ id: "clock", schedules: [{ name: "tick", cron }] }, { executeTask });
  }

  /** The names of the schedules that have rows. */
  async rows(): Promise<string[]> {
    const rows = await this.host.run(() => this.#store().dueRows(NEVER_MS, 9, SCHEDULE_KIND));
    return rows.map(({ key }) => key);
  }

  change(changes: readonly DueChange[]): Promise<unknown> {
    return this.host.run(() => this.#store().changeDue(changes));
  }

  earliestDue(): Promise<number | undefined> {
    return this.host.run(() => this.#store().earliestDue());
  }

  #store(): Store {
    return memoryStore({ host: this.host, disk: this.#disk });
  }

  /** Minutes of the slots that were begun, from the first on. */
  get minutes(): number[] {
    return this.begun.map(({ slotMs }) => (slotMs - (this.begun[0]?.slotMs ?? 0)) / MINUTE);
  }
}

describe("schedules on a store that several kernels share", () => {
  test("[X47] each slot is run by one of them, also with different clocks", async () => {
    const shared = new SharedStore();
    const processes = [await shared.start(), await shared.start(), await shared.start()];
    processes[1]!.stepClock(700);
    processes[2]!.stepClock(-700);
    await shared.host.advance(20 * MINUTE);
    expect(shared.minutes).toEqual(Array.from({ length: 20 }, (_, minute) => minute));
    expect(shared.begun.every(({ attempt }) => attempt === 1)).toBe(true);
  });

  test("[X47] a task that outlasts its lease and its period is run once, and by no other process meanwhile", async () => {
    const shared = new SharedStore();
    shared.takesMs = 3.5 * MINUTE;
    await shared.start();
    await shared.start();
    await shared.host.advance(9 * MINUTE);
    expect(shared.minutes).toEqual([0, 4, 8]);
  });

  test("[X44] [X60] a task of a killed process is run again by another when its lease is over", async () => {
    const shared = new SharedStore();
    await shared.start("0 * * * *");
    await shared.start("0 * * * *");
    shared.takesMs = 10_000;
    await shared.host.advance(60 * MINUTE);
    const [first] = shared.begun;
    expect(shared.begun).toHaveLength(1);
    first?.by.kill();
    await shared.host.advance(2 * LEASE_MS + 10_000);
    const [, second] = shared.begun;
    expect(shared.begun).toMatchObject([{ ended: false }, { slotMs: first?.slotMs, attempt: 2, ended: true }]);
    expect(second!.atMs - first!.atMs).toBeLessThanOrEqual(2 * LEASE_MS);
    await shared.host.advance(60 * MINUTE);
    expect(shared.begun.slice(2)).toMatchObject([{ slotMs: first!.slotMs + 60 * MINUTE, attempt: 1 }]);
  });

  test("[X47] a process that stops for longer than its lease loses its slot to another one, and takes no slot twice", async () => {
    const shared = new SharedStore();
    await shared.start("0 * * * *");
    await shared.start("0 * * * *");
    shared.takesMs = 10_000;
    await shared.host.advance(60 * MINUTE);
    const [{ by: stopped } = { by: undefined }] = shared.begun;
    stopped?.pause();
    await shared.host.advance(2 * LEASE_MS);
    stopped?.resume();
    await shared.host.advance(121 * MINUTE);
    const told = shared.begun.map(({ slotMs, attempt }) => [(slotMs - shared.begun[0]!.slotMs) / MINUTE, attempt]);
    expect(told).toEqual([
      [0, 1],
      [0, 2],
      [60, 1],
      [120, 1],
    ]);
  });

  test("[X47] with clocks minutes apart no process takes a slot that runs, and none runs twice", async () => {
    const shared = new SharedStore();
    shared.takesMs = 2.5 * LEASE_MS;
    const processes = [await shared.start(), await shared.start(), await shared.start()];
    processes[1]!.stepClock(5 * MINUTE);
    processes[2]!.stepClock(-5 * MINUTE);
    await shared.host.advance(30 * MINUTE);
    expect(shared.begun.every(({ attempt }) => attempt === 1)).toBe(true);
    expect(new Set(shared.minutes).size).toBe(shared.minutes.length);
    expect(shared.begun.length).toBeGreaterThanOrEqual(14);
    // The kernel with the fast clock comes first; after its death the others go on, without its slots.
    const ahead = shared.begun.at(-1)!.by;
    expect(ahead).toBe(processes[1]);
    ahead.kill();
    await shared.host.advance(30 * MINUTE);
    expect(shared.begun.at(-1)!.by).toBe(processes[0]);
    const done = shared.begun.filter(({ ended }) => ended).map(({ slotMs }) => slotMs);
    expect(new Set(done).size).toBe(done.length);
  });

  test("[X62] slots come by the clock of the store, also in a kernel whose own clock is minutes ahead or behind", async () => {
    const shared = new SharedStore();
    shared.hasClock = true;
    const processes = [simulatedProcess(shared.host), simulatedProcess(shared.host)] as const;
    processes[0].stepClock(7 * MINUTE);
    processes[1].stepClock(-7 * MINUTE);
    for (const process of processes) await shared.open(process, shared.clock(process));
    await shared.host.advance(5 * MINUTE);
    expect(shared.minutes).toEqual([0, 1, 2, 3, 4]);
    for (const { slotMs, atMs } of shared.begun) expect(atMs - slotMs).toBeLessThan(MINUTE / 2);
  });

  test("[X45] if kernels declare different times for a schedule, the kernel opened last decides for all of them", async () => {
    const shared = new SharedStore();
    await shared.start();
    await shared.host.advance(3 * MINUTE);
    const newer = await shared.start("0 * * * *");
    await shared.host.advance(180 * MINUTE);
    newer.kill();
    await shared.host.advance(180 * MINUTE);
    const hours = shared.begun.slice(3).map(({ slotMs }) => slotMs / (60 * MINUTE));
    expect(hours).toEqual(hours.map((_, n) => Math.floor(hours[0]!) + n));
    expect(hours).toHaveLength(6);
  });

  test("[X48] schedules that a kernel does not know are left to those that do, and said to be", async () => {
    const shared = new SharedStore();
    await shared.start();
    const other = simulatedProcess(shared.host);
    const { said } = await shared.open(other, inCode({ id: "other" }));
    expect(said).toEqual(["schedules that are not known here are left to others: clock/tick"]);
    await shared.host.advance(3 * MINUTE);
    expect(shared.minutes).toEqual([0, 1, 2]);
    expect(shared.begun.every(({ attempt }) => attempt === 1)).toBe(true);
  });

  test("[X48] a schedule that was not run for 30 days is removed by the next kernel that does not know it", async () => {
    const shared = new SharedStore();
    (await shared.start()).kill();
    const look = async () => {
      const process = simulatedProcess(shared.host);
      await shared.open(process, inCode({ id: "other" }));
      process.kill();
      return shared.rows();
    };
    await shared.host.advance(SCHEDULE_KEPT_MS);
    expect(await look()).toEqual(["clock/tick"]);
    await shared.host.advance(MINUTE + 1);
    expect(await look()).toEqual([]);
  });

  test("[X61] [X45] slots of an older version fire no more: they are taken over or removed, and named", async () => {
    const shared = new SharedStore();
    const dueAtMs = shared.host.now() - MINUTE;
    const old = { extensionId: "clock", name: "tick", cron: "* * * * *", slotMs: dueAtMs, attempt: 0 };
    await shared.change([
      { op: "put", kind: SCHEDULE_KIND, key: `clock/tick/${dueAtMs}`, dueAtMs, data: old },
      { op: "put", kind: SCHEDULE_KIND, key: "clock/tick", dueAtMs, data: old },
      { op: "put", kind: SCHEDULE_KIND, key: "of/a later version", dueAtMs: NEVER_MS, data: { other: "form" } },
    ]);
    const { said } = await shared.open(simulatedProcess(shared.host), shared.clock(simulatedProcess(shared.host)));
    expect(said).toEqual([
      `slots that an older version has left are removed, and come anew: clock/tick/${dueAtMs}`,
      "schedules that are not known here are left to others: of/a later version",
    ]);
    expect((await shared.rows()).sort()).toEqual(["clock/tick", "of/a later version"]);
    expect(await shared.earliestDue()).toBe(NEVER_MS);
    await shared.host.advance(3 * MINUTE);
    expect(shared.minutes).toEqual([0, 1, 2]);
  });

  test("[X47] kills, pauses and starts: no attempt is made twice, no slot is done twice, and when they stop one runs each slot", async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const shared = new SharedStore(seed);
      const { host } = shared;
      const chance = () => host.random();
      shared.takesMs = 5_000;
      const living: SimulatedProcess[] = [await shared.start()];
      for (let step = 0; step < 40; step++) {
        const some = living[Math.floor(chance() * living.length)];
        const act = chance();
        if (act < 0.3 && living.length > 1 && some) living.splice(living.indexOf(some), 1)[0]?.kill();
        else if (act < 0.6 && living.length < 3) living.push(await shared.start());
        else if (act < 0.7) some?.stepClock((chance() - 0.5) * 2 * MINUTE);
        await host.advance(chance() * 30_000);
      }
      // A begun slot is done, or its kernel is dead.
      await host.advance(3 * LEASE_MS);
      const settled = shared.begun.length;
      await host.advance(10 * MINUTE);
      const attempts = shared.begun.map(({ slotMs, attempt }) => `${slotMs} ${attempt}`);
      expect(new Set(attempts).size, `seed ${seed}`).toBe(attempts.length);
      const done = shared.begun.filter(({ ended }) => ended).map(({ slotMs }) => slotMs);
      expect(new Set(done).size, `seed ${seed}`).toBe(done.length);
      expect(shared.minutes.slice(settled).length, `seed ${seed}`).toBeGreaterThanOrEqual(9);
      expect(new Set(shared.minutes.slice(settled)).size).toBe(shared.minutes.slice(settled).length);
    }
  });
});
