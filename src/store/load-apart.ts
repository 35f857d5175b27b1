/**
 * Loads several documents so that a damaged one fails alone: a request that finds damaged bytes is repeated in halves.
 * At most two requests per document, few if little is damaged, and other work runs in between. SPEC: S64, S68.
 *
 * Any other error concerns the store: all documents of that request have failed.
 */
import type { Host } from "../host/host.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import { type LoadResult, type Store, StoreError } from "./store.ts";

/** The source of loads. */
export interface LoadSource {
  readonly store: Store;
  readonly space: string;
  readonly host: Host;
}

export interface LoadHome {
  /** In the order of the result. */
  arrived(documents: readonly ReplicaDocument[], result: LoadResult): void;
  /** A damaged document, or all documents of a request. An exception here ends the loading. */
  failed(documents: readonly ReplicaDocument[], error: unknown): void;
}

export async function loadApart(
  source: LoadSource,
  documents: readonly ReplicaDocument[],
  home: LoadHome,
): Promise<void> {
  const { store, space, host } = source;
  let result: LoadResult;
  try {
    result = await store.load(space, documents);
  } catch (error) {
    if (documents.length < 2 || !isDamage(error)) return home.failed(documents, error);
    const middle = documents.length >> 1;
    for (const half of [documents.slice(0, middle), documents.slice(middle)]) {
      await host.yield();
      await loadApart(source, half, home);
    }
    return;
  }
  home.arrived(documents, result);
}

/** Damage of a document, or of the data it is read with. */
export function isDamage(error: unknown): boolean {
  return error instanceof StoreError && error.code === "STORE_CORRUPT";
}
