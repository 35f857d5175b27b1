/**
 * One space in memory: its sequence, documents, labels, node basis rows and change log. Values are kept evaluated, since there
 * is no disk whose cost would have to follow the size of the change. SPEC: S2-S5, S14, S17-S21.
 */
import type { Json } from "../../message/json.ts";
import type { Path } from "../../message/path.ts";
import {
  type BasisInput,
  type CommitRequest,
  type DocumentPatch,
  type LabelWrite,
  type NodeBasis,
  THIS_COMMIT,
} from "../commit.ts";
import type { DocumentHead } from "../commit-rules.ts";
import { type DocumentRef, documentKey } from "../document.ts";
import { applyOperations } from "../patch.ts";
import { writeTouchesRead } from "../path-operation.ts";
import type { AddressLabels, FeedPage, LoadedDocument, LoadResult, RecordedBasis } from "../store.ts";
import { ChangeLog } from "./change-log.ts";
import { copyJson } from "./json-copy.ts";

interface StoredDocument {
  /** Undefined in a tombstone. */
  readonly value: Json | undefined;
  /** Sequence of the last commit that changed it. */
  readonly sequence: number;
}

/** What a commit makes of the documents it changes: made before anything is stored, so that a bad patch leaves no trace. */
export interface PreparedDocuments {
  readonly patches: readonly DocumentPatch[];
  /** By document key. */
  readonly values: ReadonlyMap<string, Json | undefined>;
}

export class SpaceTable {
  /** Of the last commit that changed a document or a label. */
  #sequence = 0;
  /** By document key, tombstones included. */
  readonly #documents = new Map<string, StoredDocument>();
  /** By document key, then by path as JSON text. */
  readonly #labels = new Map<string, Map<string, AddressLabels>>();
  readonly #basis = new Map<string, NodeBasis>();
  readonly #log: ChangeLog;

  constructor(changesKept: number) {
    this.#log = new ChangeLog(changesKept);
  }

  get sequence(): number {
    return this.#sequence;
  }

  get documentCount(): number {
    return this.#documents.size;
  }

  head(ref: DocumentRef): DocumentHead | undefined {
    return this.#documents.get(documentKey(ref));
  }

  writtenSince(ref: DocumentRef, sequence: number, exceptSession: string): Path[] | undefined {
    return this.#log.writtenSince(ref, sequence, exceptSession);
  }

  load(refs: readonly DocumentRef[]): LoadResult {
    return { sequence: this.#sequence, documents: refs.map((ref) => this.#loadOne(ref)) };
  }

  changesSince(sequence: number, limit: number): FeedPage {
    const commits = this.#log.after(sequence, limit);
    return { commits: commits ?? [], head: this.#sequence, gap: commits === undefined };
  }

  basis(nodes: readonly string[]): RecordedBasis[] {
    return nodes.flatMap((node) => {
      const basis = this.#basis.get(node);
      if (basis === undefined) return [];
      const inputs = basis.inputs.map((input) => ({ ...copyJson(input), moved: this.#hasMoved(input) }));
      return [{ ...copyJson(basis), inputs }];
    });
  }

  /** Throws `PatchError` when a patch does not fit its document. */
  prepare(patches: readonly DocumentPatch[]): PreparedDocuments {
    const copies = copyJson(onePerDocument(patches));
    const values = new Map<string, Json | undefined>();
    for (const patch of copies) {
      const key = documentKey(patch);
      values.set(key, applyOperations(this.#documents.get(key)?.value, patch.operations));
    }
    return { patches: copies, values };
  }

  /** Stores the space's share of a commit that was decided and prepared. */
  apply(request: CommitRequest, prepared: PreparedDocuments): void {
    if (prepared.patches.length > 0 || request.labels.length > 0) {
      const sequence = ++this.#sequence;
      for (const [key, value] of prepared.values) this.#documents.set(key, { value, sequence });
      const { session, localSequence } = request;
      const labels = copyJson(request.labels);
      this.#log.add({ sequence, session, localSequence, patches: prepared.patches, labels });
      for (const write of labels) this.#writeLabels(write);
    }
    for (const node of request.basisRemoved) this.#basis.delete(node);
    for (const basis of request.basis) this.#basis.set(basis.node, this.#dated(copyJson(basis)));
  }

  problems(): string[] {
    return this.#log.problems(this.#sequence);
  }

  #loadOne({ scope, id }: DocumentRef): LoadedDocument {
    const key = documentKey({ scope, id });
    const { value, sequence } = this.#documents.get(key) ?? { value: undefined, sequence: 0 };
    const labels = [...(this.#labels.get(key)?.values() ?? [])];
    return { scope, id, value: copyJson(value), sequence, labels: copyJson(labels) };
  }

  #writeLabels(write: LabelWrite): void {
    const key = documentKey(write);
    const pathKey = JSON.stringify(write.path);
    const ofDocument = this.#labels.get(key) ?? new Map<string, AddressLabels>();
    if (write.labels.length === 0) ofDocument.delete(pathKey);
    else ofDocument.set(pathKey, { path: [...write.path], labels: [...write.labels] });
    if (ofDocument.size === 0) this.#labels.delete(key);
    else this.#labels.set(key, ofDocument);
  }

  #dated(basis: NodeBasis): NodeBasis {
    const inputs = basis.inputs.map((input) =>
      input.sequence === THIS_COMMIT ? { ...input, sequence: this.#sequence } : input,
    );
    return { ...basis, inputs };
  }

  #hasMoved(input: BasisInput): boolean {
    const head = this.#documents.get(documentKey(input))?.sequence ?? 0;
    if (head <= input.sequence) return false;
    const written = this.#log.writtenSince(input, input.sequence, undefined);
    if (written === undefined) return true;
    return input.reads.some(({ path, depth }) => written.some((write) => writeTouchesRead(write, path, depth)));
  }
}

/** A commit has one patch for each document it changes: the operations of all that name it, in order (rule S20). */
function onePerDocument(patches: readonly DocumentPatch[]): DocumentPatch[] {
  const byKey = new Map<string, DocumentPatch>();
  for (const patch of patches) {
    const earlier = byKey.get(documentKey(patch));
    const operations = [...(earlier?.operations ?? []), ...patch.operations];
    byKey.set(documentKey(patch), { ...patch, operations });
  }
  return [...byKey.values()];
}
