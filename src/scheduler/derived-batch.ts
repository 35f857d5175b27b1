/**
 * One commit of derived values: the rows and outputs of nodes that can be written now, and what the others wait for. A row is written
 * only if what it says is true of what will be stored: every input is stored as the node saw it, or is in this very commit. A node that
 * is invalid and stays so is written as one that has to run: others have read what it gave. SPEC: I7.
 */
import { equal } from "../message/equality.ts";
import type { Json } from "../message/json.ts";
import { handOut } from "../store/admit.ts";
import { type BasisInput, type DocumentPatch, type NodeBasis, type ReadClaim, THIS_COMMIT } from "../store/commit.ts";
import { sequenceSeen } from "../store/commit-request.ts";
import { type DocumentRef, SHARED_SCOPE } from "../store/document.ts";
import { narrow } from "../store/narrow.ts";
import type { PathOperation } from "../store/path-operation.ts";
import type { DerivedRows, Replica } from "../store/replica.ts";
import type { DocumentIndex } from "./address.ts";
import {
  basisInput,
  type DigestMemo,
  digestOf,
  type ReadsByDocument,
  readsByDocument,
  settingsOf,
} from "./basis-row.ts";
import { RUNNING, type SchedulerNode } from "./node.ts";
import type { NodeRecord } from "./node-record.ts";

export interface WrittenNode {
  readonly node: SchedulerNode;
  /** Its output as it will be stored, as far as anybody knows. */
  readonly stored: NodeRecord["stored"];
}

interface Row {
  readonly digest: string;
  readonly open: boolean;
  readonly inputs: readonly BasisInput[];
}

/** A node that is left alone has changed again, or is gone: nothing true can be written of it now. */
export type Verdict = "added" | "waits" | "left-alone";

export class DerivedBatch {
  readonly entries: WrittenNode[] = [];
  /** There is more than fits into one commit. */
  isFull = false;
  /** Some node has read from commits of which nobody knows yet whether they last. */
  waitsForCommits = false;
  waitsForLoads = false;
  /** Some node has read from one that is not written and not, or not yet, in this commit. */
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

  /** A node that is gone for good: its row and its output go with it. */
  drop(name: string, output: DocumentRef | undefined): void {
    this.#basisRemoved.push(name);
    if (output !== undefined) this.#patch(output, [{ op: "delete", path: [] }]);
  }

  add(node: SchedulerNode): Verdict {
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
    const settings = settingsOf(node, record, row);
    this.#basis.push({ node: node.id, fingerprint, settings, ...(output === undefined ? {} : { output }), inputs });
  }

  /** What a node rests on that is up to date. */
  #observed(node: SchedulerNode, reads: ReadsByDocument): Row | "waits" {
    const inputs: BasisInput[] = [];
    let open = false;
    for (const [home, edges] of reads) {
      const sequence = this.#sequenceOf(home, node);
      if (sequence === "waits") return sequence;
      inputs.push(basisInput(home, edges, sequence === "not-stored" ? this.#replica.position : sequence));
      open ||= sequence === "not-stored";
    }
    return { digest: digestOf(reads, this.#memo), open, inputs };
  }

  /** As of which sequence the document is stored as it is here. */
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

  /** The row that is there with other settings; neither it nor the output is known to be otherwise. */
  #addAgain(node: SchedulerNode, record: NodeRecord): Verdict {
    const { observation } = record;
    if (observation === undefined) return "left-alone";
    const inputs = observation.inputs.map(({ scope, id, sequence, reads }) => ({ scope, id, sequence, reads }));
    const { seen, open = false } = observation.settings;
    // The output stays the one of the old row: another process may have replaced both since.
    this.#addRow(node, record, { digest: seen, open, inputs }, observation.output);
    const output = outputRef(node);
    if (output !== undefined) this.#claim(output);
    this.#include(node, record, record.stored);
    return "added";
  }

  /** Gives the sequence as of which the output is stored; undefined for a node without one. */
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
    // What is not put whole fits only what we know to be there.
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

  /** What it gave is labelled here and would lie in the store without: nothing of it stays there. */
  #mustNotBeKept(node: SchedulerNode, record: NodeRecord): Verdict {
    if (record.mayHaveRow) this.drop(node.id, outputRef(node));
    record.mayHaveRow = false;
    record.stored = undefined;
    return "left-alone";
  }

  /** It reads another space, of which the row can say nothing: after a restart it runs. */
  #cannotBeKept(node: SchedulerNode): Verdict {
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

/** The document that a node's result goes to, also while nobody has looked at it. */
export function outputRef({ id, output, outputIn }: SchedulerNode): DocumentRef | undefined {
  if (output !== undefined) return output.document;
  return outputIn === undefined ? undefined : { scope: SHARED_SCOPE, id };
}

function isLabelled({ output }: SchedulerNode): boolean {
  return output?.document.labels !== undefined && output.document.labels.places.length > 0;
}

/** It will run as soon as it may, and be written then. */
function isAboutToRun({ status, live, gate }: SchedulerNode): boolean {
  return status === "never-ran" || (status === "invalid" && live && !gate?.held);
}

/** The row of a node that has to run again when somebody looks: what it gave is kept for those who have read it. */
function behind(reads: ReadsByDocument): Row {
  return { digest: "", open: true, inputs: [...reads].map(([home, edges]) => basisInput(home, edges, 0)) };
}

/** Whether something that a dormant node has read is not what it was. */
function hasMoved(node: SchedulerNode): boolean {
  if (node.live) return false;
  for (let edge = node.reads; edge !== null; edge = edge.next) {
    if ((edge.shallow ? edge.address.shape : edge.address.stamp) > edge.seen) return true;
  }
  return false;
}

function difference(before: Json | undefined, after: Json | undefined): readonly PathOperation[] {
  if (equal(before, after)) return [];
  return (after === undefined ? undefined : narrow([], before, after)) ?? whole(after);
}

function whole(value: Json | undefined): readonly PathOperation[] {
  return [value === undefined ? { op: "delete", path: [] } : { op: "set", path: [], value }];
}
