/**
 * One space in memory: its sequence, documents, labels, node basis rows and change log. Values are kept evaluated, since there
 * is no disk whose cost would have to follow the size of the change. SPEC: S2-S5, S14, S17-S21.
 */
import type { Json } from "../../message/json.ts";
import type { Path } from "../../message/path.ts";
import {
  ADMITTED,
  type BasisInput,
  type CommitRequest,
  type DocumentPatch,
  type LabelWrite,
  type NodeBasis,
  type Precondition,
  THIS_COMMIT,
} from "../commit.ts";
import type { DocumentHead } from "../commit-rules.ts";
import { type DocumentRef, documentKey } from "../document.ts";
import { DocumentMap } from "../document-map.ts";
import { applyOperations } from "../patch.ts";
import { type PathOperation, writeTouchesRead } from "../path-operation.ts";
import { madeAt } from "../receipt-name.ts";
import type { AddressLabels, FeedPage, LoadedDocument, LoadResult, RecordedBasis } from "../store.ts";
import { ChangeLog, LoggedPatch, type WriteTrail } from "./change-log.ts";
import type { CommitRecord } from "./commit-record.ts";
import { copyJson, copyOperations } from "./json-copy.ts";

const HOUR_MS = 3_600_000;

interface EndingReceipts {
  readonly scope: string;
  readonly hour: number;
  ids: string[];
}

interface StoredDocument extends WriteTrail {
  /** Undefined in a tombstone. */
  value: Json | undefined;
  /** Sequence of the last commit that changed it; 0 before the first. */
  sequence: number;
}

/** What a commit makes of a document that it changes: made before anything is stored, so that a bad patch leaves no trace. */
export class PreparedPatch extends LoggedPatch {
  /** The document; undefined for one that was not there before. */
  declare trail: StoredDocument | undefined;
  value: Json | undefined;

  constructor({ scope, id }: DocumentRef, operations: readonly PathOperation[], document: StoredDocument | undefined) {
    super(scope, id, operations, document);
    this.value = applyOperations(document?.value, this.operations);
  }
}

export class SpaceTable {
  /** Of the last commit that changed a document or a label. */
  #sequence = 0;
  /** Tombstones included. */
  readonly #documents = new DocumentMap<StoredDocument>();
  /** By path as JSON text. */
  readonly #labels = new DocumentMap<Map<string, AddressLabels>>();
  readonly #basis = new Map<string, NodeBasis>();
  readonly #log: ChangeLog;
  /** Receipts with an end, by the hour in which what they are of was made, and by scope. */
  #ending: EndingReceipts[] = [];

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
    return this.#documents.get(ref);
  }

  writtenSince(ref: DocumentRef, sequence: number, exceptSession: string): readonly Path[] | undefined {
    return this.#log.writtenSince(this.#documents.get(ref), sequence, exceptSession);
  }

  load(refs: readonly DocumentRef[]): LoadResult {
    const documents = refs.map((ref) => this.#loadOne(ref));
    const isLabelled = this.#labels.size > 0;
    return { sequence: this.#sequence, documents, ...(refs.length === 0 && isLabelled ? { isLabelled } : {}) };
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
  prepare({ patches, preconditions, admitted }: CommitRequest): readonly PreparedPatch[] {
    return onePerDocument(patches).map((patch) => {
      // What must be absent has just been looked for.
      const document = isRequiredAbsent(patch, preconditions) ? undefined : this.#documents.get(patch);
      const operations = admitted === ADMITTED ? patch.operations : copyOperations(patch.operations);
      return new PreparedPatch(patch, operations, document);
    });
  }

  /** Stores the space's share of a commit that was decided and prepared; the record says of it what it came to. */
  apply(request: CommitRequest, patches: readonly PreparedPatch[], record: CommitRecord): void {
    if (patches.length > 0 || request.labels.length > 0) this.#applyChanges(request, patches, record);
    record.sequence = this.#sequence;
    if (patches.length > 0) this.#noteEnds(request);
    for (const node of request.basisRemoved) this.#basis.delete(node);
    for (const basis of request.basis) this.#basis.set(basis.node, this.#dated(copyJson(basis)));
  }

  #applyChanges({ labels }: CommitRequest, patches: readonly PreparedPatch[], record: CommitRecord): void {
    this.#sequence++;
    record.patches = patches;
    for (const patch of patches) this.#log.follow(this.#put(patch), patch, record);
    this.#log.add(record);
    if (labels.length === 0) return;
    record.labels = copyJson(labels);
    for (const write of record.labels) this.#writeLabels(write);
  }

  #put(patch: PreparedPatch): StoredDocument {
    const sequence = this.#sequence;
    const { trail: document, value } = patch;
    // The log keeps what was written, not what came of it.
    patch.value = undefined;
    if (document === undefined) {
      const made: StoredDocument = { value, sequence, newest: undefined };
      this.#documents.add(patch, made);
      return made;
    }
    document.value = value;
    document.sequence = sequence;
    return document;
  }

  /** Removes receipts of what was made before a time, at most `limit`; resolves with how many went. */
  forgetReceipts(madeBeforeMs: number, limit: number, isNeeded: (name: string) => boolean): number {
    const removed = new Set<string>();
    const mayGo = ({ scope, id }: DocumentRef) => {
      const { sequence } = this.#documents.get({ scope, id }) ?? { sequence: 0 };
      const isOld = (madeAt(id) as number) < madeBeforeMs && sequence <= this.#log.start;
      return removed.size < limit && isOld && !isNeeded(id);
    };
    for (const receipts of this.#ending) {
      if (receipts.hour * HOUR_MS >= madeBeforeMs) continue;
      receipts.ids = receipts.ids.filter((id) => {
        const ref = { scope: receipts.scope, id };
        if (!mayGo(ref)) return true;
        this.#documents.delete(ref);
        this.#labels.delete(ref);
        removed.add(documentKey(ref));
        return false;
      });
    }
    this.#ending = this.#ending.filter(({ ids }) => ids.length > 0);
    if (removed.size > 0) this.#dropBasisOf(removed);
    return removed.size;
  }

  /** What a node has read of a document that is not there any more cannot be compared with anything. */
  #dropBasisOf(removed: ReadonlySet<string>): void {
    for (const [node, { inputs }] of this.#basis)
      if (inputs.some((input) => removed.has(documentKey(input)))) this.#basis.delete(node);
  }

  /** Of receipts that the commit leaves: that one is not there says nothing of who may make it later. */
  #noteEnds({ preconditions, patches }: CommitRequest): void {
    for (const condition of preconditions) {
      if (condition.kind !== "absent" || condition.madeAtMs === undefined) continue;
      if (patches.some(({ scope, id }) => scope === condition.scope && id === condition.id))
        this.#noteEnd(condition, condition.madeAtMs);
    }
  }

  #noteEnd({ scope, id }: DocumentRef, madeAtMs: number): void {
    const hour = Math.floor(madeAtMs / HOUR_MS);
    // The last one first: nearly all are of this hour.
    for (let at = this.#ending.length - 1; at >= 0; at--) {
      const receipts = this.#ending[at] as EndingReceipts;
      if (receipts.hour !== hour || receipts.scope !== scope) continue;
      receipts.ids.push(id);
      return;
    }
    this.#ending.push({ scope, hour, ids: [id] });
  }

  problems(): string[] {
    return this.#log.problems(this.#sequence);
  }

  #loadOne(ref: DocumentRef): LoadedDocument {
    const { value, sequence = 0 } = this.#documents.get(ref) ?? {};
    const labels = [...(this.#labels.get(ref)?.values() ?? [])];
    return { scope: ref.scope, id: ref.id, value: copyJson(value), sequence, labels: copyJson(labels) };
  }

  #writeLabels(write: LabelWrite): void {
    const pathKey = JSON.stringify(write.path);
    let ofDocument = this.#labels.get(write);
    if (ofDocument === undefined) {
      ofDocument = new Map();
      this.#labels.add(write, ofDocument);
    }
    if (write.labels.length === 0) ofDocument.delete(pathKey);
    else ofDocument.set(pathKey, { path: [...write.path], labels: [...write.labels] });
    if (ofDocument.size === 0) this.#labels.delete(write);
  }

  #dated(basis: NodeBasis): NodeBasis {
    const inputs = basis.inputs.map((input) =>
      input.sequence === THIS_COMMIT ? { ...input, sequence: this.#sequence } : input,
    );
    return { ...basis, inputs };
  }

  #hasMoved(input: BasisInput): boolean {
    if (this.#labels.get(input) !== undefined) return true;
    const document = this.#documents.get(input);
    if (document === undefined || document.sequence <= input.sequence) return false;
    const written = this.#log.writtenSince(document, input.sequence, undefined);
    if (written === undefined) return true;
    return input.reads.some(({ path, depth }) => written.some((write) => writeTouchesRead(write, path, depth)));
  }
}

function isRequiredAbsent(ref: DocumentRef, preconditions: readonly Precondition[]): boolean {
  for (const condition of preconditions) if (condition.kind === "absent" && isSame(condition, ref)) return true;
  return false;
}

/** A commit has one patch for each document it changes: the operations of all that name it, in order (rule S20). */
function onePerDocument(patches: readonly DocumentPatch[]): readonly DocumentPatch[] {
  // A replica makes them so; most commits are one or two.
  if (patches.length < 2 || (patches.length === 2 && !isSame(patches[0] as DocumentRef, patches[1] as DocumentRef)))
    return patches;
  const merged = new DocumentMap<{ scope: string; id: string; operations: PathOperation[] }>();
  for (const { scope, id, operations } of patches) {
    const earlier = merged.get({ scope, id });
    if (earlier === undefined) merged.add({ scope, id }, { scope, id, operations: [...operations] });
    else for (const operation of operations) earlier.operations.push(operation);
  }
  return [...merged.values()];
}

function isSame(a: DocumentRef, b: DocumentRef): boolean {
  return a.id === b.id && a.scope === b.scope;
}
