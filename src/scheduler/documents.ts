/**
 * The documents that the scheduler has indexed, by space, and the computations that write them. The output of a
 * computation is created at the first access (decision 0006): a request for a document's address finds the computation
 * by name.
 *
 * Not here: the values of documents, and their readers (`graph.ts`).
 */
import { type DocumentRef, SHARED_SCOPE } from "../store/document.ts";
import type { Replica } from "../store/replica.ts";
import type { Graph } from "./graph.ts";
import type { Invalidation } from "./invalidation.ts";
import { computationAt, type DocumentIndex, type NodeAddress, type NodeSpec, type SchedulerNode } from "./node.ts";
import { isResumed } from "./node-record.ts";
import type { Registry } from "./registry.ts";

const NONE: readonly never[] = Object.freeze([]);

export class Documents {
  readonly #registry: Registry;
  readonly #graph: Graph;
  readonly #invalidation: Invalidation;
  readonly #replicas = new Set<Replica>();
  readonly #keptFor = new Map<SchedulerNode, readonly NodeAddress[]>();

  constructor(parts: { registry: Registry; graph: Graph; invalidation: Invalidation }) {
    this.#registry = parts.registry;
    this.#graph = parts.graph;
    this.#invalidation = parts.invalidation;
  }

  /** The address of a document's root. Loads no document. */
  root(replica: Replica, ref: DocumentRef): NodeAddress {
    this.#known(replica);
    const index = this.#graph.index(replica, ref);
    if (index.writers.length === 0 && ref.scope === SHARED_SCOPE) this.#firstAccess(index);
    return index.root;
  }

  /** The current address for one that a sweep may have removed. */
  again({ home, path }: NodeAddress): NodeAddress {
    return this.root(home.replica, home.document).at(path);
  }

  #known(replica: Replica): void {
    if (this.#replicas.has(replica)) return;
    this.#invalidation.attach(replica);
    this.#replicas.add(replica);
  }

  /** The first access to a document, which may be the output of a computation without an output yet. */
  #firstAccess({ replica, document, root }: DocumentIndex): void {
    const node = this.#registry.find(document.id);
    if (node !== undefined && node.outputIn === replica && node.output === undefined) this.#place(node, root);
  }

  // Outputs
  // --------------------------------------------------------------------------------------------------------------

  outputOf(node: SchedulerNode): NodeAddress | undefined {
    if (node.output !== undefined || node.outputIn === undefined) return node.output;
    return this.root(node.outputIn, { scope: SHARED_SCOPE, id: node.id });
  }

  /** The computation that writes the document of this id. If another node had that name, its output exists already. */
  computationOf(replica: Replica, id: string): SchedulerNode | undefined {
    const named = this.#registry.find(id);
    if (named?.outputIn === replica) return named;
    const index = replica.find({ scope: SHARED_SCOPE, id })?.attachment as DocumentIndex | undefined;
    return index === undefined ? undefined : computationAt(index);
  }

  /** Registers a new node's outputs. An output that cannot be found by the node's name later is created now. */
  claim(node: SchedulerNode, { outputs, outputIn, id }: NodeSpec): void {
    if (node.output !== undefined) this.#takeOver(node, node.output);
    for (const output of outputs ?? NONE) this.#graph.addWriter(node, output.home);
    for (const place of node.envelope ?? NONE) this.#graph.addEnvelope(place);
    if (outputIn !== undefined && node.output === undefined) this.#placeUnlessUnseen(node, outputIn, id);
  }

  /** The node is not registered any more: its outputs and envelope have no owner. */
  release(node: SchedulerNode): void {
    if (node.isHidden && node.output !== undefined) {
      node.output.document.madeHere();
      this.#invalidation.arrived(node.output.home);
    }
    for (const output of node.outputs) this.#graph.removeWriter(node, output.home);
    for (const place of node.envelope ?? NONE) this.#graph.removeEnvelope(place);
    if (this.#keptFor.size === 0) return;
    for (const address of this.#keptFor.get(node) ?? NONE) address.letGo();
    this.#keptFor.delete(node);
  }

  /** Keeps a document that no store has, as long as the node that may read it is registered. */
  keepFor(node: SchedulerNode, address: NodeAddress): void {
    if (!node.registered) return;
    address.hold();
    this.#keptFor.set(node, [...(this.#keptFor.get(node) ?? NONE), address]);
  }

  /**
   * A node without an output is found by its name, so the name must be its own. A node that a run created runs at once.
   */
  #placeUnlessUnseen(node: SchedulerNode, replica: Replica, id: string): void {
    const ref = { scope: SHARED_SCOPE, id };
    const isKnown = replica.find(ref)?.attachment !== undefined;
    if (!isKnown && node.id === id && node.parent === undefined) return this.#known(replica);
    const output = this.root(replica, ref);
    // The call may have placed it, if the node has the document's name.
    if (node.output === undefined) this.#place(node, output);
  }

  #place(node: SchedulerNode, output: NodeAddress): void {
    node.output = output;
    this.#takeOver(node, output);
    this.#graph.addWriter(node, output.home);
  }

  /** A computation's output starts as absent here. For a resumed node it is the stored document. */
  #takeOver(node: SchedulerNode, { document, home }: NodeAddress): void {
    if (isResumed(node)) {
      // Readers wait until the node is looked up. They have seen this value, so it is compared with the row even if no
      // node reads it again.
      if (document.state === "loaded" && document.pending.length === 0) {
        document.state = "absent";
        home.replica.touch(document);
      }
    } else if (document.state !== "loaded") {
      document.madeHere();
      this.#invalidation.arrived(home);
    }
    document.derived = true;
  }

  forget(replica: Replica): void {
    this.#replicas.delete(replica);
  }

  // Spaces
  // ---------------------------------------------------------------------------------------------------------------

  /** Resolves when no commit is pending. */
  async settled(): Promise<void> {
    await Promise.all([...this.#replicas].map((replica) => replica.settled()));
  }

  get hasPendingCommits(): boolean {
    return [...this.#replicas].some((replica) => replica.pendingCommits > 0);
  }

  /** Resolves when no load is outstanding. */
  async loadsSettled(): Promise<void> {
    await Promise.all([...this.#replicas].map((replica) => replica.loadsSettled()));
  }

  /** Grows whenever a read starts a load. */
  get loadGeneration(): number {
    let loads = 0;
    for (const replica of this.#replicas) loads += replica.loadGeneration;
    return loads;
  }
}
