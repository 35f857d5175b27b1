/**
 * The reads of nodes that were resumed and that nobody has looked at: they stay in the rows that the store gave, and are entered into the graph
 * when the node wakes, or somebody asks for them. Until then each node holds the documents it has read, and makes none of them: what
 * it rests on is looked at again when others write it, and stays here once it is. SPEC: I7.
 *
 * Nothing is lost by coming later. A dormant node is told of nothing and is verified when it wakes (`graph.ts`): it is in doubt if a document
 * it has read has come to be known here, or was changed here since the look-up, and that can still be seen then.
 */
import type { Replica } from "../store/replica.ts";
import type { Observation } from "./basis-row.ts";
import { addCause } from "./causes.ts";
import type { Documents } from "./documents.ts";
import type { Graph } from "./graph.ts";
import type { Edge, SchedulerNode } from "./node.ts";
import type { NodeRecord } from "./node-record.ts";

/** Before every stamp: a read that has seen this has missed something. */
const UNSEEN = -1;

/** Those of the nodes that were looked up together. */
export class FoldedReads {
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

  /** The node's row says what it has read; true if that may be something else by now. */
  fold(record: NodeRecord): boolean {
    let inDoubt = false;
    record.folded = this;
    for (const input of inputsOf(record)) {
      const document = this.#replica.hold(input);
      // One that this process's code has labelled before it was loaded is known to be another.
      inDoubt ||= input.moved || (document !== undefined && (document.isKnown || document.labels !== undefined));
    }
    return inDoubt;
  }

  /** Enters what the row says was read. */
  enter(node: SchedulerNode, record: NodeRecord): void {
    // What was declared at the registration is replaced by what is known.
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

  /** Enters the reads of a node that is in doubt, with what makes it so; every one of them if that is more than what has moved. */
  enterDoubtful(node: SchedulerNode, record: NodeRecord, isEvery: boolean): void {
    this.enter(node, record);
    for (let edge = node.reads; edge !== null; edge = edge.next) {
      const { address, seen } = edge;
      if (isEvery || seen === UNSEEN || address.document.isKnown) addCause(node, address);
    }
  }

  /** The node holds what it has read otherwise, or does not need it any more. */
  forget(record: NodeRecord): void {
    record.folded = undefined;
    for (const input of inputsOf(record)) this.#replica.letGo(input);
  }
}

function inputsOf({ observation }: NodeRecord): Observation["inputs"] {
  if (observation === undefined) throw new Error("reads are folded only while the row is there that says them");
  return observation.inputs;
}

/** Whoever asks for the reads of a node that may sleep asks here first. */
export function enterReads(node: SchedulerNode): void {
  const { record } = node;
  if (record?.folded !== undefined) record.folded.enter(node, record);
}
