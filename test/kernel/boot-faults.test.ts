/** Boots and ends that fail: after any refusal of the store, no part stays open and all callers are told. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Cell } from "../../src/cells/cell.ts";
import { pattern } from "../../src/cells/pattern.ts";
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelOptions } from "../../src/kernel/kernel-options.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { inCode } from "../extensions/extension-setup.ts";
import { scratchFolder } from "../repo/program.ts";

const REST_MS = 120_000;

const counter = pattern("counter", (_: Cell<object>, piece) => {
  const count = piece.cell<number>("count");
  return { count, doubled: piece.computed("doubled", () => (count.get() ?? 0) * 2) };
});

/** Counts the calls of a store, and changes one of them: by default it fails. */
function failing(
  store: Store,
  failAt: number,
  instead: (key: string) => unknown = (key) => Promise.reject(new Error(`${key} failed`)),
) {
  const seen = { calls: 0, closes: 0 };
  const proxy = new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof value !== "function") return value;
      return (...values: unknown[]) => {
        if (key === "close") seen.closes++;
        else if (key !== "watch" && key !== "stats" && key !== "now" && seen.calls++ === failAt) {
          const answer = instead(String(key));
          if (answer !== undefined) return answer;
        }
        return value.apply(target, values);
      };
    },
  });
  return { seen, store: proxy };
}

function open(host: SimulatedHost, store: Store, options: Partial<KernelOptions> = {}): Promise<Kernel> {
  return Kernel.open({
    ...{ host, store, version: "1", patterns: [counter], ...options },
    capabilities: { clerk: capability({ description: "hears", on: { "Order.Placed": () => undefined } }) },
  });
}

async function settled<T>(host: SimulatedHost, promise: Promise<T>): Promise<T | { readonly failed: unknown }> {
  const settling = promise.catch((failed: unknown) => ({ failed }));
  await host.advance(REST_MS);
  return settling;
}

/** A disk with a piece and an event on it. */
async function used(host: SimulatedHost): Promise<MemoryDisk> {
  const disk = new MemoryDisk();
  const kernel = (await settled(host, open(host, memoryStore({ host, disk })))) as Kernel;
  void kernel.space.run(counter, {}, { id: "c" });
  void kernel.publish("Order.Placed", {});
  await settled(host, kernel.close());
  return disk;
}

describe("a boot that fails", () => {
  test("[K20] for any failing call of the store a boot succeeds or leaves no timer and no open store", async () => {
    const host = simulatedHost(1);
    const disk = await used(host);
    expect(host.pendingTimers).toBe(0);
    let failed = 0;
    for (let failAt = 0; ; failAt++) {
      const { store, seen } = failing(memoryStore({ host, disk }), failAt);
      const opening = open(host, store).catch((error: unknown) => error);
      await host.advance(100);
      const opened = await opening;
      const callsOfBoot = seen.calls;
      if (opened instanceof Kernel) await settled(host, opened.close());
      else failed++;
      await host.advance(0);
      expect({ failAt, timers: host.pendingTimers, closes: seen.closes }).toEqual({ failAt, timers: 0, closes: 1 });
      if (callsOfBoot <= failAt) break;
    }
    expect(failed).toBeGreaterThan(2);
  });
});

describe("a boot that is aborted", () => {
  test("[K52] for any moment of its signal a boot succeeds or rejects with the reason, and leaves no timer and no open store", async () => {
    const host = simulatedHost(1);
    const disk = await used(host);
    let givenUp = 0;
    for (let at = 0; ; at++) {
      const controller = new AbortController();
      const reason = new Error(`enough at ${at}`);
      const { store, seen } = failing(memoryStore({ host, disk }), at, () => void controller.abort(reason));
      const opening = open(host, store, { signal: controller.signal }).catch((error: unknown) => error);
      await host.advance(100);
      const opened = await opening;
      const callsOfBoot = seen.calls;
      if (opened instanceof Kernel) await settled(host, opened.close());
      else {
        expect(opened).toBe(reason);
        givenUp++;
      }
      await host.advance(0);
      expect({ at, timers: host.pendingTimers, closes: seen.closes }).toEqual({ at, timers: 0, closes: 1 });
      if (callsOfBoot <= at) break;
    }
    expect(givenUp).toBeGreaterThan(2);
  });

  test("[K52] an aborted signal opens no part and closes the given store", async () => {
    const host = simulatedHost(1);
    const { store, seen } = failing(memoryStore({ host }), -1);
    const opening = open(host, store, { signal: AbortSignal.abort(new Error("never mind")) });
    expect(await settled(host, opening)).toMatchObject({ failed: { message: "never mind" } });
    expect([seen.closes, host.pendingTimers]).toEqual([1, 0]);
  });

  test("[K52] an extension that shuts the kernel down as it starts ends the boot and all opened parts", async () => {
    const host = simulatedHost(1);
    const told: string[] = [];
    const life = (name: string) => ({
      start: () => void told.push(`${name} start`),
      stop: () => void told.push(`${name} stop`),
    });
    const first = inCode({ id: "first" }, life("first"));
    const ender = inCode(
      { id: "ender", depends_on: ["first"] },
      { ...life("ender"), start: () => ender.context.command("Syscall.Shutdown", null) },
    );
    const later = inCode({ id: "later", depends_on: ["ender"] }, life("later"));
    const { store, seen } = failing(memoryStore({ host }), -1);
    const socketPath = join(scratchFolder(), "kernel.sock");
    const extensions = [first, ender, later];
    const opening = open(host, store, { extensions, extensionData: "nowhere", log: () => undefined, socketPath });
    expect(await settled(host, opening)).toMatchObject({ failed: { code: "KERNEL_CLOSED" } });
    expect(told).toContain("first stop");
    expect(told.filter((line) => line.endsWith("stop")).length).toBe(
      told.filter((line) => line.endsWith("start")).length + 1,
    );
    expect([seen.closes, host.pendingTimers, existsSync(socketPath)]).toEqual([1, 0, false]);
  });
});

describe("an end that fails", () => {
  test("[K164] a store that does not close is reported to all waiters, and the kernel has stopped", async () => {
    const host = simulatedHost(1);
    const inner = memoryStore({ host });
    const store = new Proxy(inner, {
      get: (target, key) => {
        const value: unknown = Reflect.get(target, key);
        if (key === "close") return () => target.close().then(() => Promise.reject(new Error("disk full")));
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const kernel = (await settled(host, open(host, store))) as Kernel;
    const waiting = kernel.closed().then(
      () => "closed",
      () => "not cleanly",
    );
    const ends = await settled(host, Promise.allSettled([kernel.close(), kernel.close()]));
    expect(ends).toMatchObject([{ status: "rejected" }, { status: "rejected" }]);
    await host.advance(0);
    expect([kernel.health().state, await Promise.race([waiting, Promise.resolve("still waits")])]).toEqual([
      "stopped",
      "not cleanly",
    ]);
    await expect(kernel.closed()).rejects.toThrow("the kernel did not close cleanly: store");
  });
});

describe("at rest", () => {
  test("[K162] while a stream's handler runs a kernel is not quiescent and idle does not resolve", async () => {
    const host = simulatedHost(1);
    const kernel = (await settled(host, open(host, memoryStore({ host })))) as Kernel;
    const { promise: gate, resolve } = Promise.withResolvers<void>();
    const jobs = kernel.space.stream<number>("jobs");
    jobs.handle(() => gate);
    jobs.send(1);
    await host.advance(10);
    let isIdle = false;
    void kernel.idle().then(() => {
      isIdle = true;
    });
    await host.advance(10);
    expect([isIdle, kernel.health().quiescent]).toEqual([false, false]);
    resolve();
    await host.advance(10);
    expect([isIdle, kernel.health().quiescent]).toEqual([true, true]);
    await settled(host, kernel.close());
  });
});
