/**
 * Who may change a journal: the kernel that runs on it, asked over its socket; or, when none runs, this process, which holds the
 * directory's lock meanwhile so that none begins. Verbs that change things say what, and do not care which. SPEC: K44.
 */
import { systemHost } from "../host/system-host.ts";
import { type RemovedConsumer, removeStoredConsumers, requeueStored } from "../kernel/consumer-repair.ts";
import { dataDirectory } from "../kernel/data-directory.ts";
import { InstanceLock } from "../kernel/instance-lock.ts";
import { type KernelStore, openStore } from "../kernel/open-store.ts";
import { REQUEUE_IDS_MAX, RETENTION_STEP_ROWS } from "../limits.ts";
import { connectIfRunning } from "./connection.ts";
import { existingDatabaseFile } from "./database-file.ts";
import type { VerbCall } from "./verb.ts";

/** Which settled rows may go; a row goes when it is over either bound. */
export interface PurgeBounds {
  readonly settledBeforeMs?: number;
  readonly keepSettled?: number;
}

export interface JournalOwner {
  /** Puts rows back, at most `REQUEUE_IDS_MAX`, or only for one consumer; resolves with those that were put back. */
  requeue(ids: readonly number[], consumer?: string): Promise<readonly number[]>;
  /** Removes consumers of a name, of one pattern or of all. */
  removeConsumers(name: string, pattern?: string): Promise<readonly RemovedConsumer[]>;
  /** Removes some of what may go; resolves with how many. Zero means that nothing is left to remove. */
  purgeSome(bounds: PurgeBounds): Promise<number>;
  cancelTimer(timerId: string): Promise<boolean>;
}

export async function withOwner<T>(call: VerbCall, work: (owner: JournalOwner) => Promise<T>): Promise<T> {
  const client = await connectIfRunning(call);
  if (client) {
    await using _ = client;
    return await work({
      requeue: async (ids, consumer) => {
        const data = { ids: [...ids], ...(consumer === undefined ? {} : { consumer }) };
        return ((await client.command("Kernel.Requeue", data)) as { requeued: number[] }).requeued;
      },
      removeConsumers: async (name, pattern) => {
        const data = { name, ...(pattern === undefined ? {} : { pattern }) };
        return ((await client.command("Kernel.RemoveConsumer", data)) as never as { removed: RemovedConsumer[] })
          .removed;
      },
      purgeSome: async (bounds) =>
        ((await client.command("Kernel.Purge", { ...bounds })) as { removed: number }).removed,
      cancelTimer: async (timerId) =>
        ((await client.command("Timer.Cancel", { timerId })) as { cancelled: boolean }).cancelled,
    });
  }
  const file = existingDatabaseFile(undefined, call.environment);
  using _lock = InstanceLock.take(dataDirectory(call.environment));
  await using store = await openStore(systemHost(), file);
  return await work(ownerOf(store));
}

function ownerOf(store: KernelStore): JournalOwner {
  return {
    requeue: (ids, consumer) => requeueStored(store, ids, consumer),
    removeConsumers: (name, pattern) => removeStoredConsumers({ host: systemHost(), store }, name, pattern),
    purgeSome: (bounds) => store.retain({ ...bounds, limit: RETENTION_STEP_ROWS }),
    cancelTimer: async (timerId) => {
      const [cancelled] = await store.changeDue([{ op: "cancel", kind: "timer", key: timerId }]);
      return cancelled ?? false;
    },
  };
}

/** Lists of at most what one request may name. */
export function inRequests(ids: readonly number[]): number[][] {
  const lists: number[][] = [];
  for (let from = 0; from < ids.length; from += REQUEUE_IDS_MAX) lists.push(ids.slice(from, from + REQUEUE_IDS_MAX));
  return lists;
}
