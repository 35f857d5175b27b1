/** All that a store has, as one value: to compare a copy with its original. */
import type { Store } from "../../../src/store/store.ts";

const ALL = 100_000;

/** `names`: the documents of each space. `idOf`: the number of a journal row in the other store. */
export async function contentsOf(
  store: Store,
  names: ReadonlyMap<string, readonly { readonly scope: string; readonly id: string }[]>,
  idOf: (id: number) => number = (id) => id,
) {
  const documents: unknown[] = [];
  for (const [space, refs] of names) {
    const { sequence, documents: loaded } = await store.load(space, refs);
    documents.push({ space, sequence, loaded });
  }
  const rows = await store.query({ limit: ALL });
  const due = await store.dueRows(Number.MAX_SAFE_INTEGER, ALL);
  const { consumers } = await store.consumers();
  return {
    documents,
    journal: rows.map((row) => ({ ...row, id: idOf(row.id) })),
    counts: await store.count(),
    due,
    consumers: consumers.map(({ leases, ...consumer }) => consumer),
    ok: (await store.verify()).ok,
  };
}
