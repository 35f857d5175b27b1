/**
 * The owner of a journal: the running kernel, asked over its socket; or this process, which holds the directory's lock
 * meanwhile, if no kernel runs. Verbs use both in the same way. SPEC: K44.
 */
import type { Host } from "../host/host.ts";
import { systemHost } from "../host/system-host.ts";
import { type RemovedConsumer, removeStoredConsumers, requeueStored } from "../kernel/consumer-repair.ts";
import { dataDirectory } from "../kernel/data-directory.ts";
import { InstanceLock } from "../kernel/instance-lock.ts";
import { isDatabaseUrl, type KernelStore, openStore } from "../kernel/open-store.ts";
import { recordOperatorAction, removedByOperator } from "../kernel/operator-capability.ts";
import { PURGE_STEPS_MAX, REQUEUE_IDS_MAX, RETENTION_STEP_ROWS } from "../limits.ts";
import { connectIfRunning } from "./connection.ts";
import { existingStore } from "./database-file.ts";
import { operatorName } from "./operator.ts";
import type { VerbCall } from "./verb.ts";

/** Which settled rows may be removed: those over either limit. */
export interface PurgeBounds {
  readonly settledBeforeMs?: number;
  readonly keepSettled?: number;
}

/** Limit of rows removed by one purge. */
export const PURGE_ROWS_MAX = PURGE_STEPS_MAX * RETENTION_STEP_ROWS;

export interface JournalOwner {
  /** Discards dead letters, at most `REQUEUE_IDS_MAX`; resolves with those that were failed. */
  discard(ids: readonly number[], reason: string): Promise<readonly number[]>;
  /** Puts rows back, at most `REQUEUE_IDS_MAX`, or only for one consumer; resolves with their ids. */
  requeue(ids: readonly number[], consumer?: string): Promise<readonly number[]>;
  removeConsumers(name: string, pattern?: string): Promise<readonly RemovedConsumer[]>;
  /** Removes at most `PURGE_ROWS_MAX` rows and resolves with their number. A smaller number means that none is left. */
  purgeSome(bounds: PurgeBounds): Promise<number>;
  cancelTimer(timerId: string): Promise<boolean>;
}

export async function withOwner<T>(call: VerbCall, work: (owner: JournalOwner) => Promise<T>): Promise<T> {
  const by = operatorName();
  const client = await connectIfRunning(call);
  if (client) {
    await using _ = client;
    return await work({
      requeue: async (ids, consumer) => {
        const data = { ids: [...ids], by, ...(consumer === undefined ? {} : { consumer }) };
        return ((await client.command("Kernel.Requeue", data)) as { requeued: number[] }).requeued;
      },
      discard: async (ids, reason) =>
        ((await client.command("Kernel.Discard", { ids: [...ids], reason, by })) as { discarded: number[] }).discarded,
      removeConsumers: async (name, pattern) => {
        const data = { name, by, ...(pattern === undefined ? {} : { pattern }) };
        return ((await client.command("Kernel.RemoveConsumer", data)) as never as { removed: RemovedConsumer[] })
          .removed;
      },
      purgeSome: async (bounds) =>
        ((await client.command("Kernel.Purge", { ...bounds, by })) as { removed: number }).removed,
      cancelTimer: async (timerId) =>
        ((await client.command("Kernel.CancelTimer", { timerId, by })) as { cancelled: boolean }).cancelled,
    });
  }
  const place = existingStore(undefined, call.environment);
  // A database takes several writers; a file of the directory does not.
  using _lock = isDatabaseUrl(place) ? undefined : InstanceLock.take(dataDirectory(call.environment));
  const host = systemHost();
  await using store = await openStore(host, place);
  return await work(ownerOf(host, store, by));
}

function ownerOf(host: Host, store: KernelStore, by: string): JournalOwner {
  const record = (action: Parameters<typeof recordOperatorAction>[1]) => recordOperatorAction({ host, store }, action);
  return {
    requeue: async (ids, consumer) => {
      const requeued = await requeueStored(store, ids, consumer);
      if (requeued.length > 0) await record({ action: "requeue", by, ids: requeued });
      return requeued;
    },
    discard: async (ids, reason) => {
      const discarded = await store.conclude(ids, { from: "failed", ending: { outcome: "discarded", reason } });
      if (discarded.length > 0) await record({ action: "discard", by, ids: discarded, reason });
      return discarded;
    },
    removeConsumers: async (name, pattern) => {
      const removed = await removeStoredConsumers({ host, store }, name, pattern);
      const action = removedByOperator(by, name, removed);
      if (action !== undefined) await record(action);
      return removed;
    },
    purgeSome: async (bounds) => {
      const removed = await store.retain({ ...bounds, limit: PURGE_ROWS_MAX });
      if (removed > 0) await record({ action: "purge", by, removed, ...bounds });
      return removed;
    },
    cancelTimer: async (timerId) => {
      const [cancelled = false] = await store.changeDue([{ op: "cancel", kind: "timer", key: timerId }]);
      if (cancelled) await record({ action: "cancel", by, timerId });
      return cancelled;
    },
  };
}

/** Splits ids into lists that fit one request. */
export function inRequests(ids: readonly number[]): number[][] {
  const lists: number[][] = [];
  for (let from = 0; from < ids.length; from += REQUEUE_IDS_MAX) lists.push(ids.slice(from, from + REQUEUE_IDS_MAX));
  return lists;
}
