/**
 * One space in memory: its sequence, documents, labels, basis rows of nodes and change log. Documents are stored as
 * values, not as patches. SPEC: S2-S5, S14, S17-S21.
 */
import { DOCUMENT_BYTES_MAX } from "../../limits.ts";
import type { Json } from "../../message/json.ts";
import type { Path } from "../../message/path.ts";
import {
  ADMITTED,
  type BasisInput,
  type CommitRequest,
  type DocumentPatch,
  type LabelWrite,
  type MembershipClaim,
  type NodeBasis,
  type Precondition,
  THIS_COMMIT,
} from "../commit.ts";
import type { DocumentHead, OversizedDocument } from "../commit-rules.ts";
import { type DocumentRef, documentKey } from "../document.ts";
import { compareIds } from "../document-list.ts";
import { DocumentMap } from "../document-map.ts";
import { ERASED_RESULT } from "../erase.ts";
import { applyOperations } from "../patch.ts";
import { type PathOperation, writeTouchesRead } from "../path-operation.ts";
import { madeAt } from "../receipt-name.ts";
import type {
  AddressLabels,
  FeedPage,
  ListedDocument,
  ListPage,
  ListRequest,
  LoadedDocument,
  LoadResult,
  RecordedBasis,
} from "../store.ts";
import { ChangeLog, LoggedPatch, type WriteTrail } from "./change-log.ts";
import type { CommitRecord } from "./commit-record.ts";
import { copyOperations, copyStored, jsonBytes, operationBytes } from "./json-copy.ts";

const HOUR_MS = 3_600_000;

interface EndingReceipts {
  readonly scope: string;
  readonly hour: number;
  ids: string[];
}

interface StoredDocument extends WriteTrail {
  /** Undefined for a tombstone. */
  value: Json | undefined;
  /** Sequence of the last commit that changed it; 0 before the first. */
  sequence: number;
  /** Upper bound of the text size: sizes of later patches are added to the last measurement. */
  bytes: number;
}

/** The patch of a commit for one document, and its size. */
export interface SizedPatch extends DocumentPatch {
  /** Bytes of the values and paths. */
  readonly bytes: number;
  /** Upper bound of the growth of the document's text, including escaped keys, quotes and commas. */
  readonly growth: number;
}

/** The result of a commit for one document, computed before any write, so that a bad patch leaves no trace. */
export class PreparedPatch extends LoggedPatch {
  /** The document; undefined if it is new. */
  declare trail: StoredDocument | undefined;
  value: Json | undefined;
  readonly bytes: number;

  constructor(
    { scope, id, growth }: SizedPatch,
    operations: readonly PathOperation[],
    document: StoredDocument | undefined,
  ) {
    super(scope, id, operations, document);
    this.value = applyOperations(document?.value, this.operations);
    this.bytes = isWhole(operations) ? growth : growth + (document?.bytes ?? 0);
    this.turns = (document?.value === undefined) !== (this.value === undefined);
  }
}

export class SpaceTable {
  /** Sequence of the last commit that changed a document or a label. */
  #sequence = 0;
  /** Including tombstones. */
  readonly #documents = new DocumentMap<StoredDocument>();
  /** By path as JSON text. */
  readonly #labels = new DocumentMap<Map<string, AddressLabels>>();
  readonly #basis = new Map<string, NodeBasis>();
  readonly #log: ChangeLog;
  /**
   * Sorted ids of documents with a value, by scope; created on demand and dropped when a document is created or
   * removed.
   */
  readonly #listed = new Map<string, readonly string[]>();
  /** Receipts that can expire, by the hour of their message's creation and by scope. */
  #ending: EndingReceipts[] = [];

  constructor(changesKept: number) {
    this.#log = new ChangeLog(changesKept);
  }

  get sequence(): number {
    return this.#sequence;
  }

  /** The log has every commit after this sequence. */
  get feedStart(): number {
    return this.#log.start;
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

  membersChanged({ scope, prefix, sequence }: MembershipClaim): boolean | undefined {
    return this.#log.membersChanged(scope, prefix, sequence);
  }

  /** The first patch that makes its document too large. */
  oversized(patches: readonly SizedPatch[]): OversizedDocument | undefined {
    for (const { scope, id, operations, growth } of patches) {
      if (isWhole(operations)) {
        if (growth > DOCUMENT_BYTES_MAX) return { scope, id, bytes: growth, isEstimate: false };
        continue;
      }
      const document = this.#documents.get({ scope, id });
      if (document === undefined || document.bytes + growth <= DOCUMENT_BYTES_MAX) continue;
      document.bytes = document.value === undefined ? 0 : jsonBytes(document.value);
      if (document.bytes + growth > DOCUMENT_BYTES_MAX)
        return { scope, id, bytes: document.bytes + growth, isEstimate: false };
    }
    return undefined;
  }

  list({ scope, prefix, after, limit }: ListRequest): ListPage {
    const ids = this.#listed.get(scope) ?? this.#list(scope);
    const documents: ListedDocument[] = [];
    let at = after === undefined || compareIds(after, prefix) < 0 ? placeOf(ids, prefix) : placeAfter(ids, after);
    for (; at < ids.length && documents.length < limit; at++) {
      const id = ids[at] as string;
      if (!id.startsWith(prefix)) break;
      const { sequence } = this.#documents.get({ scope, id }) as StoredDocument;
      documents.push({ id, sequence, labels: this.#labelsOf({ scope, id }) });
    }
    return { sequence: this.#sequence, documents };
  }

  #list(scope: string): readonly string[] {
    const ids: string[] = [];
    for (const [id, { value }] of this.#documents.of(scope)) if (value !== undefined) ids.push(id);
    ids.sort(compareIds);
    this.#listed.set(scope, ids);
    return ids;
  }

  load(refs: readonly DocumentRef[]): Omit<LoadResult, "history"> {
    const documents = refs.map((ref) => this.#loadOne(ref));
    const isLabelled = this.#labels.size > 0;
    return { sequence: this.#sequence, documents, ...(refs.length === 0 && isLabelled ? { isLabelled } : {}) };
  }

  changesSince(sequence: number, limit: number): Omit<FeedPage, "history"> {
    const commits = this.#log.after(sequence, limit);
    return { commits: commits ?? [], head: this.#sequence, gap: commits === undefined };
  }

  basis(nodes: readonly string[]): RecordedBasis[] {
    return nodes.flatMap((node) => {
      const basis = this.#basis.get(node);
      if (basis === undefined) return [];
      const inputs = basis.inputs.map((input) => ({ ...copyStored(input), moved: this.#hasMoved(input) }));
      return [{ ...copyStored(basis), inputs }];
    });
  }

  /** Throws `PatchError` if a patch does not fit its document. */
  prepare(patches: readonly SizedPatch[], { preconditions, admitted }: CommitRequest): readonly PreparedPatch[] {
    return patches.map((patch) => {
      // The precondition has just established that it is absent.
      const document = isRequiredAbsent(patch, preconditions) ? undefined : this.#documents.get(patch);
      const operations = admitted === ADMITTED ? patch.operations : copyOperations(patch.operations);
      return new PreparedPatch(patch, operations, document);
    });
  }

  /** Stores the space's part of a decided and prepared commit, and completes the record. */
  apply(request: CommitRequest, patches: readonly PreparedPatch[], record: CommitRecord): void {
    if (patches.length > 0 || request.labels.length > 0) this.#applyChanges(request, patches, record);
    record.sequence = this.#sequence;
    if (patches.length > 0) this.#noteEnds(request);
    for (const node of request.basisRemoved) this.#basis.delete(node);
    for (const basis of request.basis) this.#basis.set(basis.node, this.#dated(copyStored(basis)));
  }

  #applyChanges({ labels }: CommitRequest, patches: readonly PreparedPatch[], record: CommitRecord): void {
    this.#sequence++;
    record.patches = patches;
    for (const patch of patches) this.#log.follow(this.#put(patch), patch, record);
    this.#log.add(record);
    if (labels.length === 0) return;
    record.labels = copyStored(labels);
    for (const write of record.labels) this.#writeLabels(write);
  }

  #put(patch: PreparedPatch): StoredDocument {
    const sequence = this.#sequence;
    const { trail: document, value, bytes } = patch;
    // The log keeps operations, not values.
    patch.value = undefined;
    if (patch.turns) this.#listed.delete(patch.scope);
    if (document === undefined) {
      const made: StoredDocument = { value, sequence, bytes, newest: undefined };
      this.#documents.add(patch, made);
      return made;
    }
    document.value = value;
    document.sequence = sequence;
    document.bytes = bytes;
    return document;
  }

  /** Removes at most `limit` receipts of messages made before a time, and returns their number. */
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
        this.#listed.delete(ref.scope);
        this.#labels.delete(ref);
        removed.add(documentKey(ref));
        return false;
      });
    }
    this.#ending = this.#ending.filter(({ ids }) => ids.length > 0);
    if (removed.size > 0) this.#dropBasisOf(removed);
    return removed.size;
  }

  /** Documents, including tombstones. */
  documents(): IterableIterator<[DocumentRef, { readonly value: Json | undefined }]> {
    return this.#documents.entries();
  }

  /** Removes documents, replaces the values of receipts, and restarts the feed one sequence ahead. */
  erase(removed: readonly DocumentRef[], receipts: readonly DocumentRef[]): void {
    for (const ref of removed) {
      this.#documents.delete(ref);
      this.#labels.delete(ref);
    }
    for (const ref of receipts) {
      const document = this.#documents.get(ref);
      if (document !== undefined) document.value = ERASED_RESULT;
    }
    this.#listed.clear();
    this.#dropBasisOf(new Set(removed.map(documentKey)));
    this.#sequence++;
    this.#log.restart(this.#sequence);
  }

  /** An input that was removed can no longer be compared, so the basis rows that use it are dropped. */
  #dropBasisOf(removed: ReadonlySet<string>): void {
    for (const [node, { inputs }] of this.#basis)
      if (inputs.some((input) => removed.has(documentKey(input)))) this.#basis.delete(node);
  }

  /** Only for receipts that the commit writes: an absence claim alone creates no document. */
  #noteEnds({ preconditions, patches }: CommitRequest): void {
    for (const condition of preconditions) {
      if (condition.kind !== "absent" || condition.madeAtMs === undefined) continue;
      if (patches.some(({ scope, id }) => scope === condition.scope && id === condition.id))
        this.#noteEnd(condition, condition.madeAtMs);
    }
  }

  #noteEnd({ scope, id }: DocumentRef, madeAtMs: number): void {
    const hour = Math.floor(madeAtMs / HOUR_MS);
    // Last entry first: almost all receipts are of the current hour.
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
    return { scope: ref.scope, id: ref.id, value: copyStored(value), sequence, labels: this.#labelsOf(ref) };
  }

  #labelsOf(ref: DocumentRef): AddressLabels[] {
    const labels = this.#labels.get(ref);
    return labels === undefined ? [] : copyStored([...labels.values()]);
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
    return basis.output === THIS_COMMIT ? { ...basis, inputs, output: this.#sequence } : { ...basis, inputs };
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

/** Whether the operations begin by setting or removing the whole document. */
function isWhole([first]: readonly PathOperation[]): boolean {
  return first !== undefined && first.path.length === 0 && first.op !== "splice";
}

/** Index of the first id at or after `text`. */
function placeOf(ids: readonly string[], text: string): number {
  let [from, to] = [0, ids.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (compareIds(ids[middle] as string, text) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

function placeAfter(ids: readonly string[], id: string): number {
  const at = placeOf(ids, id);
  return ids[at] === id ? at + 1 : at;
}

/** Bytes of one escaped character, and of quotes, colon and comma around a key and its value. */
const ESCAPED_MAX = 6;
const AROUND_VALUE = 4;

/** The patches of a commit, one for each document, with their sizes. */
export function sizedPatches(patches: readonly DocumentPatch[]): readonly SizedPatch[] {
  return onePerDocument(patches).map(({ scope, id, operations }) => {
    let [bytes, growth] = [0, 0];
    for (const operation of operations) {
      bytes += operationBytes(operation);
      for (const step of operation.path) growth += ESCAPED_MAX * step.length;
      growth += AROUND_VALUE;
    }
    return { scope, id, operations, bytes, growth: growth + bytes };
  });
}

/** Merges the patches of each document, in order (S20). */
function onePerDocument(patches: readonly DocumentPatch[]): readonly DocumentPatch[] {
  // A replica never repeats a document; most commits have one or two patches.
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
