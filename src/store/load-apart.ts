/**
 * Loading several documents so that one that is damaged fails alone: a request that meets stored bytes which have changed is made again in
 * halves. At most two requests for each document, few of them where few are damaged; others get in between. SPEC: S64, S68.
 *
 * Any other error is one of the store, whatever it is asked for: all that was asked for in that request has failed.
 */
import type { Host } from "../host/host.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import { type LoadResult, type Store, StoreError } from "./store.ts";

/** Where documents are loaded from. */
export interface LoadSource {
  readonly store: Store;
  readonly space: string;
  readonly host: Host;
}

export interface LoadHome {
  /** In the order of the result. */
  arrived(documents: readonly ReplicaDocument[], result: LoadResult): void;
  /** One that is damaged, or all of a request. What is thrown here ends the loading. */
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

/** Of a document, or of what it is read with. */
export function isDamage(error: unknown): boolean {
  return error instanceof StoreError && error.code === "STORE_CORRUPT";
}
