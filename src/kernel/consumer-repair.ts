/**
 * Repairs of a store that no kernel has open. A running kernel uses its bus instead. SPEC: K95, K96.
 */
import { type RemovedConsumer, removeConsumers } from "../bus/consumer-removal.ts";
import { requeueFor } from "../bus/requeue.ts";
import type { Host } from "../host/host.ts";
import type { Store } from "../store/store.ts";

export type { RemovedConsumer };

/**
 * Removes the consumers of a name: of one pattern, or of all. The next kernel settles events that wait only for them.
 */
export function removeStoredConsumers(
  parts: { readonly host: Host; readonly store: Store },
  name: string,
  pattern?: string,
): Promise<RemovedConsumer[]> {
  return removeConsumers(parts, name, pattern);
}

/** Puts settled events back for one consumer. */
export function requeueStored(store: Store, ids: readonly number[], consumer?: string): Promise<readonly number[]> {
  return consumer === undefined ? store.requeue(ids) : requeueFor({ store }, ids, consumer);
}
