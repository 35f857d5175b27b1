/**
 * The reads of resumed nodes that are not used yet. They stay in the rows of the store, and enter the graph when the
 * node wakes or its reads are asked for. Until then the node holds the documents that it read, without creating their
 * indexes. SPEC: I7.
 *
 * Entering them later misses no change: a dormant node is verified only when it wakes (`graph.ts`). It is in doubt if
 * one of its documents was loaded or changed here since the look-up, which the stamps still show then.
 */
import type { Replica } from "../store/replica.ts";
import { addCause } from "./causes.ts";
import type { Documents } from "./documents.ts";
import type { Graph } from "./graph.ts";
import type { Edge, FoldedReads, NodeRecord, SchedulerNode } from "./node.ts";
import type { Observation } from "./node-state.ts";

/** Less than every stamp: such a read has missed a change. */
const UNSEEN = -1;

/** The folded reads of the nodes that were looked up together. */
export class RowReads implements FoldedReads {
  readonly #graph: Graph;
  readonly #documents: Documents;
  readonly #replica: Replica;
  /** The graph's tick at the look-up. */
  readonly #since: number;

  constructor(parts: { graph: Graph; documents: Documents }, replica: Replica) {
    this.#graph = parts.graph;
    this.#documents = parts.documents;
    this.#replica = replica;
    this.#since = parts.graph.tick;
  }

  /** Folds the reads of the node's row; true if one of them may have changed since. */
  fold(record: NodeRecord): boolean {
    let inDoubt = false;
    record.folded = this;
    for (const input of inputsOf(record)) {
      const document = this.#replica.hold(input);
      // A document that was labelled here before it was loaded counts as changed.
      inDoubt ||= input.moved || (document !== undefined && (document.isKnown || document.labels !== undefined));
    }
    return inDoubt;
  }

  /** Enters the reads of the row into the graph. */
  enter(node: SchedulerNode, record: NodeRecord): void {
    // They replace the reads that the registration declared.
    this.#graph.dropReads(node, null);
    let tail: Edge | null = null;
    for (const input of inputsOf(record)) {
      const root = this.#documents.root(this.#replica, input);
      const hasMoved = input.moved || root.document.labels !== undefined || root.stamp > this.#since;
      for (const { path, depth } of input.reads) {
        tail = this.#graph.addRead(node, root.at(path), depth === "shallow", tail);
        if (hasMoved) tail.seen = UNSEEN;
      }
    }
    this.forget(record);
  }

  /** Enters the reads of a node in doubt, and adds causes: the moved reads, or with `isEvery` all of them. */
  enterDoubtful(node: SchedulerNode, record: NodeRecord, isEvery: boolean): void {
    this.enter(node, record);
    for (let edge = node.reads; edge !== null; edge = edge.next) {
      const { address, seen } = edge;
      if (isEvery || seen === UNSEEN || address.document.isKnown) addCause(node, address);
    }
  }

  /** Releases the documents: the graph holds them now, or the node does not need them. */
  forget(record: NodeRecord): void {
    record.folded = undefined;
    for (const input of inputsOf(record)) this.#replica.letGo(input);
  }
}

function inputsOf({ observation }: NodeRecord): Observation["inputs"] {
  if (observation === undefined) throw new Error("reads are folded only while the row is there that says them");
  return observation.inputs;
}
