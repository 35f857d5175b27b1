/**
 * Who may change a journal: the kernel that runs on it, asked over its socket; or, when none runs, this process, which holds the
 * directory's lock meanwhile so that none begins. Verbs that change things say what, and do not care which. SPEC: K44.
 */
import type { Host } from "../host/host.ts";
import { systemHost } from "../host/system-host.ts";
import { dataDirectory } from "../kernel/data-directory.ts";
import { InstanceLock } from "../kernel/instance-lock.ts";
import { type KernelStore, openStore } from "../kernel/open-store.ts";
import { recordOperatorAction } from "../kernel/operator-capability.ts";
import { PURGE_STEPS_MAX, REQUEUE_IDS_MAX, RETENTION_STEP_ROWS } from "../limits.ts";
import { connectIfRunning } from "./connection.ts";
import { existingDatabaseFile } from "./database-file.ts";
import { operatorName } from "./operator.ts";
import type { VerbCall } from "./verb.ts";

/** Which settled rows may go; a row goes when it is over either bound. */
export interface PurgeBounds {
  readonly settledBeforeMs?: number;
  readonly keepSettled?: number;
}

export interface JournalOwner {
  /** Gives dead letters up, at most `REQUEUE_IDS_MAX`; resolves with those that were failed. */
  discard(ids: readonly number[], reason: string): Promise<readonly number[]>;
  /** Puts failed rows back, at most `REQUEUE_IDS_MAX`; resolves with those that were failed. */
  requeue(ids: readonly number[]): Promise<readonly number[]>;
  /** Removes some of what may go; resolves with how many. Zero means that nothing is left to remove. */
  purgeSome(bounds: PurgeBounds): Promise<number>;
  cancelTimer(timerId: string): Promise<boolean>;
}

export async function withOwner<T>(call: VerbCall, work: (owner: JournalOwner) => Promise<T>): Promise<T> {
  const by = operatorName();
  const client = await connectIfRunning(call);
  if (client) {
    await using _ = client;
    return await work({
      requeue: async (ids) =>
        ((await client.command("Kernel.Requeue", { ids: [...ids], by })) as { requeued: number[] }).requeued,
      discard: async (ids, reason) =>
        ((await client.command("Kernel.Discard", { ids: [...ids], reason, by })) as { discarded: number[] }).discarded,
      purgeSome: async (bounds) =>
        ((await client.command("Kernel.Purge", { ...bounds, by })) as { removed: number }).removed,
      cancelTimer: async (timerId) =>
        ((await client.command("Kernel.CancelTimer", { timerId, by })) as { cancelled: boolean }).cancelled,
    });
  }
  const file = existingDatabaseFile(undefined, call.environment);
  using _lock = InstanceLock.take(dataDirectory(call.environment));
  const host = systemHost();
  await using store = await openStore(host, file);
  return await work(ownerOf(host, store, by));
}

function ownerOf(host: Host, store: KernelStore, by: string): JournalOwner {
  const record = (action: Parameters<typeof recordOperatorAction>[1]) => recordOperatorAction({ host, store }, action);
  return {
    requeue: async (ids) => {
      const requeued = await store.requeue(ids);
      if (requeued.length > 0) await record({ action: "requeue", by, ids: requeued });
      return requeued;
    },
    discard: async (ids, reason) => {
      const discarded = await store.conclude(ids, { from: "failed", ending: { outcome: "discarded", reason } });
      if (discarded.length > 0) await record({ action: "discard", by, ids: discarded, reason });
      return discarded;
    },
    purgeSome: async (bounds) => {
      const removed = await store.retain({ ...bounds, limit: PURGE_STEPS_MAX * RETENTION_STEP_ROWS });
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

/** Lists of at most what one request may name. */
export function inRequests(ids: readonly number[]): number[][] {
  const lists: number[][] = [];
  for (let from = 0; from < ids.length; from += REQUEUE_IDS_MAX) lists.push(ids.slice(from, from + REQUEUE_IDS_MAX));
  return lists;
}
