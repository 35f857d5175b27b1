/**
 * A store that takes its time, as one behind a disk does: calls wait in a queue, are done one after the other, and are
 * answered later, all through the host of their process. So a process can be killed or paused before a call is done, or
 * after it was done and before the answer. Some calls fail, before they were done or after.
 */
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import type { SimulatedProcess } from "../../src/host/simulated-process.ts";
import { rejected } from "../../src/store/rejection.ts";
import type { Store } from "../../src/store/store.ts";

export interface QueuedStoreOptions {
  /** Of a thousand calls, how many fail. */
  readonly faultsPerMille: () => number;
}

/** Calls that answer with a rejection; the others that can fail throw. */
const REJECTING = new Set(["append", "commit"]);
const THROWING = new Set(["claim", "settle", "renewLease", "recover", "releaseRetries", "query"]);

export function queuedStore(
  store: Store,
  process: SimulatedProcess,
  world: SimulatedHost,
  { faultsPerMille }: QueuedStoreOptions,
): Store {
  let tail: Promise<unknown> = Promise.resolve();
  const fails = () => world.random() * 1_000 < faultsPerMille();

  const perform = async (name: string, work: () => Promise<unknown>): Promise<unknown> => {
    if (world.random() < 0.7) await process.yield();
    if (world.random() < 0.05) await new Promise<void>((resolve) => process.timer(world.random() * 30, resolve));
    if (REJECTING.has(name) && fails()) return rejected("failed", "store-busy", "a fault: nothing was done");
    if (THROWING.has(name) && fails()) throw new Error("a fault: nothing was done");
    const result = await work();
    if (world.random() < 0.5) await process.yield();
    if (REJECTING.has(name) && fails()) return rejected("unknown", "no-answer", "a fault: done, and not answered");
    if (THROWING.has(name) && fails()) throw new Error("a fault: done, and not answered");
    return result;
  };

  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof value !== "function") return value;
      if (key === "watch" || key === "stats" || key === "now") return value.bind(target);
      return (...values: unknown[]) => {
        const answer = tail.then(() => perform(String(key), () => value.apply(target, values)));
        tail = answer.catch(() => undefined);
        return answer;
      };
    },
  });
}
