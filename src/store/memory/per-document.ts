/**
 * One entry for each document. A commit or a basis may name a document several times; what is stored, and handed out again,
 * names it once (rules S18, S20).
 */
import type { BasisInput, DocumentPatch } from "../commit.ts";
import { type DocumentRef, documentKey } from "../document.ts";

/** The operations of one document follow each other in the order of the patches. */
export function onePatchPerDocument(patches: readonly DocumentPatch[]): DocumentPatch[] {
  return onePerDocument(patches, (a, b) => ({ ...a, operations: [...a.operations, ...b.operations] }));
}

/** Everything that was read of a document, as of the older sequence. */
export function oneInputPerDocument(inputs: readonly BasisInput[]): BasisInput[] {
  return onePerDocument(inputs, (a, b) => ({
    ...a,
    sequence: Math.min(a.sequence, b.sequence),
    reads: [...a.reads, ...b.reads],
  }));
}

function onePerDocument<T extends DocumentRef>(list: readonly T[], join: (earlier: T, later: T) => T): T[] {
  const byKey = new Map<string, T>();
  for (const item of list) {
    const key = documentKey(item);
    const earlier = byKey.get(key);
    byKey.set(key, earlier === undefined ? item : join(earlier, item));
  }
  return [...byKey.values()];
}
