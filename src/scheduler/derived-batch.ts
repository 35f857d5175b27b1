/**
 * One commit of derived values: the rows and outputs of the nodes that can be written now, and the reasons why others
 * must wait. A row is written only if it is true of the stored data: every input is stored as the node saw it, or is in
 * this commit. A node that stays invalid is written as outdated, because other nodes have read its output. SPEC: I7.
 */
import { equal } from "../message/equality.ts";
import type { Json } from "../message/json.ts";
import { handOut } from "../store/admit.ts";
import { type BasisInput, type DocumentPatch, type NodeBasis, type ReadClaim, THIS_COMMIT } from "../store/commit.ts";
import { sequenceSeen } from "../store/commit-request.ts";
import { type DocumentRef, SHARED_SCOPE } from "../store/document.ts";
import { jsonDiff } from "../store/json-diff.ts";
import type { PathOperation } from "../store/path-operation.ts";
import type { DerivedRows, Replica } from "../store/replica.ts";
import {
  basisInput,
  type DigestMemo,
  nodeSettings,
  type ReadsByDocument,
  readsByDocument,
  readsDigest,
} from "./basis-row.ts";
import { type DocumentIndex, type NodeRecord, RUNNING, type SchedulerNode } from "./node.ts";

export interface WrittenNode {
  readonly node: SchedulerNode;
  /** The output as it will be stored; undefined if unknown. */
  readonly stored: NodeRecord["stored"];
}

interface Row {
  readonly digest: string;
  readonly open: boolean;
  readonly inputs: readonly BasisInput[];
}

/** `left-alone`: the node has changed again or is removed, so no true row can be written now. */
export type BatchVerdict = "added" | "waits" | "left-alone";

export class DerivedBatch {
  readonly entries: WrittenNode[] = [];
  /** The batch holds as much as fits into one commit. */
  isFull = false;
  /** A node read from commits whose outcome is not known yet. */
  waitsForCommits = false;
  waitsForLoads = false;
  /** A node read from one that is neither stored nor, so far, in this commit. */
  waitsForNodes = false;
  readonly #replica: Replica;
  readonly #patched = new Set<DocumentIndex>();
  readonly #patches: DocumentPatch[] = [];
  readonly #basis: NodeBasis[] = [];
  readonly #basisRemoved: string[] = [];
  readonly #reads: ReadClaim[] = [];
  readonly #memo: DigestMemo = new Map();

  constructor(replica: Replica) {
    this.#replica = replica;
  }

  get isEmpty(): boolean {
    return this.entries.length === 0 && this.#basisRemoved.length === 0;
  }

  rows(): DerivedRows {
    return { patches: this.#patches, basis: this.#basis, basisRemoved: this.#basisRemoved, reads: this.#reads };
  }

  /** Deletes the row and the output of a node that was removed for good. */
  drop(name: string, output: DocumentRef | undefined): void {
    this.#basisRemoved.push(name);
    if (output !== undefined) this.#patch(output, [{ op: "delete", path: [] }]);
  }

  add(node: SchedulerNode): BatchVerdict {
    const { record } = node;
    if (record === undefined || !node.registered) return "left-alone";
    if (record.phase === "restored") return this.#addAgain(node, record);
    if (node.slot === RUNNING) return "waits";
    if (record.phase !== "here" || isAboutToRun(node)) return "left-alone";
    if (isLabelled(node)) return this.#mustNotBeKept(node, record);
    if (record.writes && this.#replica.pendingCommits > 0) return this.#waitsForCommits();
    const reads = readsByDocument(node);
    for (const { replica } of reads.keys()) if (replica !== this.#replica) return this.#cannotBeKept(node);
    const row = node.status !== "clean" || hasMoved(node) ? behind(reads) : this.#observed(node, reads);
    if (row === "waits") return row;
    const output = this.#addOutput(node, record);
    this.#addRow(node, record, row, output);
    return "added";
  }

  #addRow(node: SchedulerNode, record: NodeRecord, { inputs, ...row }: Row, output: number | undefined): void {
    const { fingerprint } = record;
    const settings = nodeSettings(node, record, row);
    this.#basis.push({ node: node.id, fingerprint, settings, ...(output === undefined ? {} : { output }), inputs });
  }

  /** The row of a node that is up to date. */
  #observed(node: SchedulerNode, reads: ReadsByDocument): Row | "waits" {
    const inputs: BasisInput[] = [];
    let open = false;
    for (const [home, edges] of reads) {
      const sequence = this.#sequenceOf(home, node);
      if (sequence === "waits") return sequence;
      inputs.push(basisInput(home, edges, sequence === "not-stored" ? this.#replica.position : sequence));
      open ||= sequence === "not-stored";
    }
    return { digest: readsDigest(reads, this.#memo), open, inputs };
  }

  /** The sequence as of which the document is stored with its present value. */
  #sequenceOf(home: DocumentIndex, reader: SchedulerNode): number | "not-stored" | "waits" {
    const { document } = home;
    if (document.derived) return this.#sequenceOfDerived(home, reader);
    if (document.pending.length > 0) return this.#waitsForCommits();
    if (document.state === "loaded") return sequenceSeen(document, this.#replica.position);
    if (document.state === "loading") this.waitsForLoads = true;
    return "waits";
  }

  #sequenceOfDerived(home: DocumentIndex, reader: SchedulerNode): number | "not-stored" | "waits" {
    const writer = home.writers.find(({ output }) => output === home.root);
    if (writer?.record === undefined) return "not-stored";
    if (writer === reader || this.#patched.has(home)) return THIS_COMMIT;
    if (!writer.record.unwritten) return this.#replica.position;
    this.waitsForNodes = true;
    return "waits";
  }

  #waitsForCommits(): "waits" {
    this.waitsForCommits = true;
    return "waits";
  }

  /** Writes the existing row again with other settings; row and output are unchanged as far as this process knows. */
  #addAgain(node: SchedulerNode, record: NodeRecord): BatchVerdict {
    const { observation } = record;
    if (observation === undefined) return "left-alone";
    const inputs = observation.inputs.map(({ scope, id, sequence, reads }) => ({ scope, id, sequence, reads }));
    const { seen, open = false } = observation.settings;
    // The output reference stays that of the old row, because another process may have replaced both since.
    this.#addRow(node, record, { digest: seen, open, inputs }, observation.output);
    const output = outputRef(node);
    if (output !== undefined) this.#claim(output);
    this.#include(node, record, record.stored);
    return "added";
  }

  /** Returns the sequence as of which the output is stored; undefined for a node without output. */
  #addOutput(node: SchedulerNode, record: NodeRecord): number | undefined {
    const { output } = node;
    if (output === undefined) {
      this.#include(node, record, undefined);
      return undefined;
    }
    const { document, home } = output;
    const value = handOut(document.value);
    const stored = document.overwritten ? undefined : record.stored;
    document.overwritten = false;
    const operations = stored === undefined ? whole(value) : difference(stored.value, value);
    // A difference applies only to the stored value that it was made from.
    if (stored !== undefined && (operations.length === 0 || operations[0]?.path.length !== 0)) this.#claim(document);
    if (operations.length > 0) {
      this.#patch(document, operations);
      this.#patched.add(home);
    }
    this.#include(node, record, { value });
    return operations.length > 0 ? THIS_COMMIT : this.#replica.position;
  }

  #include(node: SchedulerNode, record: NodeRecord, stored: NodeRecord["stored"]): void {
    record.unwritten = false;
    record.mayHaveRow = true;
    this.entries.push({ node, stored });
  }

  /** The output is labelled here, and stored rows have no labels: the row is removed. */
  #mustNotBeKept(node: SchedulerNode, record: NodeRecord): BatchVerdict {
    if (record.mayHaveRow) this.drop(node.id, outputRef(node));
    record.mayHaveRow = false;
    record.stored = undefined;
    return "left-alone";
  }

  /** The node reads another space, which a row cannot describe: after a restart it runs. */
  #cannotBeKept(node: SchedulerNode): BatchVerdict {
    this.drop(node.id, outputRef(node));
    node.record = undefined;
    return "left-alone";
  }

  #claim({ scope, id }: DocumentRef): void {
    this.#reads.push({ scope, id, path: [], depth: "deep", sequence: this.#replica.position });
  }

  #patch({ scope, id }: DocumentRef, operations: readonly PathOperation[]): void {
    this.#patches.push({ scope, id, operations });
  }
}

/** The document of a node's output, also before it exists. */
export function outputRef({ id, output, outputIn }: SchedulerNode): DocumentRef | undefined {
  if (output !== undefined) return output.document;
  return outputIn === undefined ? undefined : { scope: SHARED_SCOPE, id };
}

function isLabelled({ output }: SchedulerNode): boolean {
  return output?.document.labels !== undefined && output.document.labels.places.length > 0;
}

/** The node will run as soon as it may, and is written then. */
function isAboutToRun({ status, live, gate }: SchedulerNode): boolean {
  return status === "never-ran" || (status === "invalid" && live && !gate?.held);
}

/** The row of an outdated node: its output is kept for nodes that have read it. */
function behind(reads: ReadsByDocument): Row {
  return { digest: "", open: true, inputs: [...reads].map(([home, edges]) => basisInput(home, edges, 0)) };
}

/** Whether a dormant node has inputs that changed. */
function hasMoved(node: SchedulerNode): boolean {
  if (node.live) return false;
  for (let edge = node.reads; edge !== null; edge = edge.next) {
    if ((edge.shallow ? edge.address.shape : edge.address.stamp) > edge.seen) return true;
  }
  return false;
}

function difference(before: Json | undefined, after: Json | undefined): readonly PathOperation[] {
  if (equal(before, after)) return [];
  return (after === undefined ? undefined : jsonDiff([], before, after)) ?? whole(after);
}

function whole(value: Json | undefined): readonly PathOperation[] {
  return [value === undefined ? { op: "delete", path: [] } : { op: "set", path: [], value }];
}
