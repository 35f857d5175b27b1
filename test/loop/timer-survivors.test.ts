/** Timers of kernels that share a store, when one of them stops, dies or is slow. */
import { describe, expect, test } from "#test";
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../../src/host/simulated-process.ts";
import { POLL_INTERVAL_MS, TIMER_MARK_MS, TIMERS_FIRED_MAX } from "../../src/limits.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import { timerCapability } from "../../src/loop/timer.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { BareActor, bare, Client, command } from "./loop-setup.ts";
import { intercepted, template, timers } from "./timer-setup.ts";

interface Kernel {
  readonly process: SimulatedProcess;
  readonly loop: EventLoop;
  /** Messages of timers, with the time since the start of the world. */
  readonly sent: { at: number; id: string; cause: string }[];
  set(id: string, data: Json, type?: string): Promise<void>;
}

/** Kernels in processes of one world, on one disk. */
function world() {
  const host = simulatedHost(1);
  const disk = new MemoryDisk();
  const start = host.monotonic();
  const open = async (answers: boolean, on: (process: SimulatedProcess) => Store = inMemory(disk)): Promise<Kernel> => {
    const process = simulatedProcess(host);
    const sent: Kernel["sent"] = [];
    const actor = new BareActor();
    actor.postMessage = (message: Message) => {
      if (process.status !== "running") return;
      sent.push({ at: host.monotonic() - start, id: message.metadata.id, cause: message.metadata.causation ?? "" });
      if (answers) actor.reply(message);
    };
    const build = bare(() => actor, { takes: [["command", "Build.Run"]] });
    const timer = timerCapability({ store: on(process) });
    const loop = await host.run(() => EventLoop.boot({ host: process, capabilities: { timer, build } }));
    const client = new Client(process.id());
    const set = async (id: string, data: Json, type = "Timer.Set") => {
      loop.receive(command(type, id, data), client);
      await host.advance(0);
      expect(client.received.at(-1)).toMatchObject({ kind: "reply", metadata: { causation: id } });
    };
    await host.advance(0);
    return { process, loop, sent, set };
  };
  return { host, disk, open };
}

function inMemory(disk: MemoryDisk) {
  return (host: SimulatedProcess) => memoryStore({ host, disk });
}

describe("timers of kernels that share a store", () => {
  const ends: readonly [string, (kernel: Kernel, host: SimulatedHost) => unknown][] = [
    ["stopped", ({ loop }, host) => host.run(() => loop.stop())],
    ["died", ({ process }) => process.kill()],
  ];
  for (const [what, end] of ends) {
    test(`[T15] timers of a kernel that ${what} fire on another within the poll interval`, async () => {
      const { host, open } = world();
      const b = await open(true);
      const a = await open(true);
      const delays = [0, 100, POLL_INTERVAL_MS - 1, 20_000, 3 * 60_000];
      for (const delayMs of delays.slice(1)) await a.set(`${delayMs}`, { delayMs, message: template });
      await end(a, host);
      await host.advance(4 * 60_000);
      expect(a.sent).toEqual([]);
      expect(b.sent.map(({ cause }) => cause)).toEqual(delays.slice(1).map(String));
      for (const { at, cause } of b.sent) {
        expect(at).toBeGreaterThanOrEqual(Number(cause));
        expect(at).toBeLessThanOrEqual(Number(cause) + POLL_INTERVAL_MS);
      }
    });
  }

  test("[T15] a repeating timer of a kernel that died goes on in another, and each slot fires once", async () => {
    const { host, open } = world();
    const a = await open(true);
    const b = await open(true);
    const c = await open(true);
    await a.set("every", { everyMs: 1_000, message: template }, "Timer.Every");
    await host.advance(10_500);
    a.process.kill();
    await host.advance(10_000);
    const ids = [a, b, c].flatMap(({ sent }) => sent.map(({ id }) => id));
    expect(ids).toHaveLength(20);
    expect(new Set(ids).size).toBe(20);
  });

  test("[T15] a firing that a kernel did not finish before it died is sent by another, under the same id", async () => {
    const { host, open } = world();
    const b = await open(true);
    const a = await open(false);
    await a.set("set", { delayMs: 1_000, message: template });
    b.process.pause();
    await host.advance(1_000);
    expect(a.sent).toHaveLength(1);
    b.process.resume();
    a.process.kill();
    await host.advance(TIMER_MARK_MS + 1);
    expect(b.sent.map(({ id }) => id)).toEqual(a.sent.map(({ id }) => id));
    await host.advance(10 * TIMER_MARK_MS);
    expect(b.sent).toHaveLength(1);
  });

  test("[T15] a firing of a live kernel is sent by no other, however long its handler takes", async () => {
    const { host, open } = world();
    const a = await open(false);
    await a.set("set", { delayMs: 1_000, message: template });
    await host.advance(1_000);
    const b = await open(true);
    // A kernel that starts cannot tell whether the other one lives, and sends it once.
    const before = b.sent.length;
    expect(a.sent.length + before).toBe(2);
    await host.advance(20 * TIMER_MARK_MS);
    expect([a.sent.length, b.sent.length]).toEqual([1, before]);
  });

  test("[T15] two kernels that wake for the same timers send each of them once", async () => {
    const { host, open } = world();
    const a = await open(true);
    const b = await open(true);
    for (let n = 0; n < 600; n++) await a.set(`t${n}`, { dueAt: host.now() + 5_000, message: template });
    await host.advance(20_000);
    const ids = [...a.sent, ...b.sent].map(({ id }) => id);
    expect(ids).toHaveLength(600);
    expect(new Set(ids).size).toBe(600);
  });
});

describe("batches of timers", () => {
  test("[T17] timers due at once are taken and forgotten with one write for each batch", async () => {
    let writes = 0;
    const host = simulatedHost(1);
    const store = intercepted(host, (name, call) => {
      if (name === "changeDue") writes++;
      return call();
    });
    const { set, arrived } = await timers({ host, store: () => store, answers: () => true });
    const count = 4 * TIMERS_FIRED_MAX;
    const dueAt = host.now() + 60_000;
    for (let n = 0; n < count; n++) await set({ dueAt, message: template }, `t${n}`);
    writes = 0;
    await host.advance(60_000);
    const causes = arrived.filter(({ message }) => message.kind === "command").map(({ message }) => message);
    expect(causes.map(({ metadata }) => metadata.causation)).toEqual(Array.from({ length: count }, (_, n) => `t${n}`));
    // Four writes take them; the rows of those that were handled go with at most as many.
    expect(writes).toBeLessThanOrEqual(8);
    expect(await host.run(() => store.earliestDue())).toBeUndefined();
  });
});
