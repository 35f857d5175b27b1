/**
 * How tests make a log long: batches of a hundred rows, some twenty pages each, on a store that copies its log early.
 */
import { systemHost } from "../../../src/host/system-host.ts";
import type { JournalEntry } from "../../../src/store/journal.ts";
import type { Store } from "../../../src/store/store.ts";
import { append, entry } from "../conformance/requests.ts";

export const CHECKPOINT_PAGES = 50;
const host = systemHost();

/** One batch after another, without a rest. */
export async function fill(store: Store, batches: number): Promise<void> {
  for (let batch = 0; batch < batches; batch++) await append(store, ...freshEntries(100));
}

export function freshEntries(count: number): JournalEntry[] {
  return Array.from({ length: count }, () => entry({ id: host.id() }));
}
