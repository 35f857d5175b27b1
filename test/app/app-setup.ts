/**
 * Kernels of apps for tests: in real time on both stores, and in simulated time on a disk that outlives a killed
 * process.
 */
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { AnyApp } from "../../src/app/caller.ts";
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../../src/host/simulated-process.ts";
import type { AppKernel } from "../../src/kernel/app-kernel.ts";
import { type OpenOptions, openApp } from "../../src/kernel/open-app.ts";
import { open } from "../../src/open.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { scratchFolder } from "../repo/program.ts";

export const STORES = ["memory", "sqlite"] as const;
export type StoreName = (typeof STORES)[number];

/** Opens apps on a store of its own; closed with the test. */
export async function openOn<A extends AnyApp>(
  store: StoreName,
  apps: A | readonly A[],
  options: OpenOptions = {},
): Promise<AppKernel<A>> {
  const file = store === "sqlite" ? { file: join(scratchFolder(), "app.db") } : {};
  const kernel = await open(apps, { ...file, ...options });
  onTestFinished(() => kernel.close({ graceMs: 0 }));
  return kernel;
}

/** One machine in simulated time; its processes end without a warning. */
export class Machine {
  readonly world: SimulatedHost = simulatedHost(7);
  readonly disk = new MemoryDisk();
  #process: SimulatedProcess | undefined;

  async start<A extends AnyApp>(apps: A | readonly A[], options: OpenOptions = {}): Promise<AppKernel<A>> {
    const host = simulatedProcess(this.world);
    this.#process = host;
    const store = memoryStore({ host, disk: this.disk });
    const given = { host, store, leaseMs: 1_000, observe: () => undefined, ...options };
    // Without `open`: its import of the kernel is no work of the simulated host.
    const kernel: unknown = await this.world.run(() => openApp(apps, given));
    return kernel as AppKernel<A>;
  }

  kill(): void {
    this.#process?.kill();
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    return this.world.run(work);
  }

  /** Advances time, and runs all work that is due. */
  async advance(ms: number): Promise<void> {
    await this.world.advance(ms);
  }
}
