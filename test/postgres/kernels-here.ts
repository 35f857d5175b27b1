/** Kernels of this process beside each other on one database, each behind a proxy with faults. */
import { open } from "../../src/index.ts";
import type { OpenKernel } from "../../src/kernel/app-kernel.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import type { Store } from "../../src/store/store.ts";
import { CuttingProxy } from "../store/postgres/cutting-proxy.ts";
import type { Beside } from "./list-append.ts";
import apps from "./lists-app.ts";

/** A stalled connection is given up after it. */
const DEADLINE_MS = 1_500;

export class KernelHere implements Beside {
  readonly kernel: OpenKernel;
  readonly store: Store;
  readonly #proxy: CuttingProxy;
  readonly faults: Beside["faults"];

  /** `wrap`: another store in place of the opened one. */
  static async open(
    url: string,
    schema: string,
    endBackends: () => Promise<void>,
    wrap: (store: Store) => Store = (store) => store,
  ): Promise<KernelHere> {
    const proxy = await CuttingProxy.start(url);
    const tuning = { deadlineMs: DEADLINE_MS, closeWaitMs: 1_000 };
    const store = await openPostgresStore({ url: proxy.urlOf(url), schema, tuning });
    const kernel: unknown = await open(apps, { store: wrap(store), observeFaults: () => undefined });
    return new KernelHere(kernel as OpenKernel, store, proxy, endBackends);
  }

  private constructor(kernel: OpenKernel, store: Store, proxy: CuttingProxy, endBackends: () => Promise<void>) {
    this.kernel = kernel;
    this.store = store;
    this.#proxy = proxy;
    const nothing = async () => undefined;
    const set = (change: (of: CuttingProxy) => void) => async () => {
      change(proxy);
      return async () => proxy.heal();
    };
    this.faults = [
      async () => {
        proxy.cut();
        return nothing;
      },
      async () => {
        await endBackends();
        return nothing;
      },
      set((of) => {
        of.dropsAnswers = true;
      }),
      set((of) => {
        of.isStalled = true;
      }),
      set((of) => {
        of.drops = "to-server";
      }),
      set((of) => {
        of.drops = "to-client";
      }),
      set((of) => {
        of.delayMs = 30;
      }),
      set((of) => {
        of.isDown = true;
        of.cut();
      }),
    ];
  }

  run(type: string, data: Parameters<Beside["run"]>[1]) {
    return this.kernel.command(type, data);
  }

  async close(): Promise<void> {
    this.#proxy.heal();
    await this.kernel.close();
    await this.#proxy.close();
  }
}
