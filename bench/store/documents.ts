/** The documents of the store benchmarks, and commits that write them. */
import type { CommitRequest, DocumentPatch } from "../../src/store/commit.ts";
import { type DocumentRef, SHARED_SCOPE } from "../../src/store/document.ts";
import type { Store } from "../../src/store/store.ts";
import { pieces } from "./events.ts";

export const SPACE = "shop";
/** Documents written by one commit while setting up. */
const PATCHES_PER_COMMIT = 500;

export function documentRef(name: string | number): DocumentRef {
  return { scope: SHARED_SCOPE, id: `document-${name}` };
}

/** A small document, as most are. */
export function smallDocument(number: number) {
  return { number, name: `customer ${number}`, address: { street: "Mill Lane 3", city: "Delft" }, tags: ["a", "b"] };
}

/** A document of so many keys. */
export function wideDocument(keys: number): Record<string, { readonly count: number }> {
  return Object.fromEntries(Array.from({ length: keys }, (_, index) => [`key-${index}`, { count: 0 }]));
}

/** Writes documents, one commit at a time. */
export class DocumentWriter {
  readonly #store: Store;
  #made = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  async commit(patches: readonly DocumentPatch[]): Promise<void> {
    const outcome = await this.#store.commit(requestOf(++this.#made, patches));
    if (outcome.kind !== "committed") throw new Error(`a commit was rejected: ${outcome.message}`);
  }

  async makeSmall(count: number): Promise<readonly DocumentRef[]> {
    const refs = Array.from({ length: count }, (_, number) => documentRef(number));
    const patches = refs.map((ref, number): DocumentPatch => {
      return { ...ref, operations: [{ op: "set", path: [], value: smallDocument(number) }] };
    });
    for (const some of pieces(patches, PATCHES_PER_COMMIT)) await this.commit(some);
    return refs;
  }

  async makeWide(ref: DocumentRef, keys: number): Promise<void> {
    await this.commit([{ ...ref, operations: [{ op: "set", path: [], value: wideDocument(keys) }] }]);
  }

  /** Changes the value at one key of a wide document. */
  async changeKey(ref: DocumentRef, key: number, count: number): Promise<void> {
    await this.commit([{ ...ref, operations: [{ op: "set", path: [`key-${key}`, "count"], value: count }] }]);
  }
}

function requestOf(localSequence: number, patches: readonly DocumentPatch[]): CommitRequest {
  return {
    space: SPACE,
    session: "bench",
    localSequence,
    digest: `digest-${localSequence}`,
    reads: [],
    patches,
    preconditions: [],
    dependsOn: [],
    entries: [],
    settlements: [],
    due: [],
    basis: [],
    basisRemoved: [],
    labels: [],
  };
}
