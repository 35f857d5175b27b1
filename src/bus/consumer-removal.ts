/** Removing consumers that are gone for good, in steps, so that no transaction is long. SPEC: J103. */
import type { Host } from "../host/host.ts";
import { RETENTION_STEP_ROWS } from "../limits.ts";
import type { Consumer, RemovalResult } from "../store/consumer.ts";
import type { Store } from "../store/store.ts";

/** The result of a request to remove a consumer. */
export interface RemovedConsumer extends Consumer {
  /** Events that waited for it. */
  readonly waiting: number;
  /** `running`: a live process runs it, so it stays. */
  readonly result: RemovalResult;
}

interface RemovalParts {
  readonly host: Host;
  readonly store: Store;
}

/** Removes the consumers of a name: of one pattern, or of all. */
export async function removeConsumers(parts: RemovalParts, name: string, of?: string): Promise<RemovedConsumer[]> {
  const { consumers } = await parts.store.consumers();
  const removed: RemovedConsumer[] = [];
  for (const { name: found, pattern, waiting } of consumers) {
    if (found !== name || (of !== undefined && of !== pattern)) continue;
    removed.push({ name, pattern, waiting, result: await removeConsumer(parts, { name, pattern }) });
  }
  return removed;
}

export async function removeConsumer(
  { host, store }: RemovalParts,
  consumer: Consumer,
  exceptLease?: number,
): Promise<RemovalResult> {
  for (;;) {
    const result = await store.removeConsumer({ ...consumer, exceptLease, limit: RETENTION_STEP_ROWS });
    if (result !== "partly") return result;
    await host.yield();
  }
}
