/**
 * A kernel in a simulated process that can be killed, on a disk that outlives it, with a store that fails now and then.
 */
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../../src/host/simulated-process.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelOptions } from "../../src/kernel/kernel-options.ts";
import type { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { queuedStore } from "../bus/queued-store.ts";

/** Short, so that the events of a killed process are taken over within a run. */
export const LEASE_MS = 1_000;

export interface MortalKernelOptions {
  readonly world: SimulatedHost;
  readonly disk: MemoryDisk;
  readonly capabilities: NonNullable<KernelOptions["capabilities"]>;
  /** Called whenever it has ended. */
  readonly ended?: () => void;
}

export class MortalKernel {
  /** Of a thousand calls of the store, how many fail. */
  faultsPerMille = 15;
  readonly #options: MortalKernelOptions;
  #process: SimulatedProcess | undefined;
  #open: Kernel | undefined;

  constructor(options: MortalKernelOptions) {
    this.#options = options;
  }

  /** Undefined while none was started, or after it has ended. */
  get process(): SimulatedProcess | undefined {
    return this.#process;
  }

  /** Once it has booted. */
  get open(): Kernel | undefined {
    return this.#open;
  }

  start(): void {
    const { world, disk, capabilities } = this.#options;
    const process = simulatedProcess(world);
    const inner = memoryStore({ host: process, disk });
    const store = queuedStore(inner, process, world, { faultsPerMille: () => this.faultsPerMille });
    this.#process = process;
    Kernel.open({ host: process, store, capabilities, leaseMs: LEASE_MS, observe: () => undefined }).then(
      (kernel) => {
        if (this.#process === process) this.#open = kernel;
      },
      // A store that fails at the wrong moment: a supervisor starts the kernel again.
      () => this.#end(process),
    );
  }

  /** False if there was none to kill. */
  kill(): boolean {
    if (!this.#process) return false;
    this.#end(this.#process);
    return true;
  }

  #end(process: SimulatedProcess): void {
    process.kill();
    if (this.#process !== process) return;
    this.#process = undefined;
    this.#open = undefined;
    this.#options.ended?.();
  }
}
