/**
 * The registered nodes, by id and in order. Registering only adds index entries: it reads no data and runs no node
 * (§4.4).
 */
import { type NodeSpec, SchedulerNode } from "./node.ts";

const NONE: readonly SchedulerNode[] = Object.freeze([]);

export class Registry {
  readonly #nodes = new Map<string, SchedulerNode>();
  /** The registered nodes that a node has created. */
  readonly #children = new Map<SchedulerNode, Set<SchedulerNode>>();
  #ordinal = 0;

  /** Creates the record. A taken id gets a number, so that ids are unique. */
  create(spec: NodeSpec): SchedulerNode {
    const ordinal = ++this.#ordinal;
    const node = new SchedulerNode(this.#nodes.has(spec.id) ? { ...spec, id: `${spec.id}#${ordinal}` } : spec, ordinal);
    this.#nodes.set(node.id, node);
    if (node.parent?.registered) this.#adopt(node.parent, node);
    return node;
  }

  #adopt(parent: SchedulerNode, child: SchedulerNode): void {
    const children = this.#children.get(parent);
    if (children === undefined) this.#children.set(parent, new Set([child]));
    else children.add(child);
  }

  delete(node: SchedulerNode): void {
    node.registered = false;
    this.#nodes.delete(node.id);
    if (node.parent !== undefined) this.#children.get(node.parent)?.delete(node);
  }

  /** Removes and returns the nodes that a node has created. */
  takeChildren(parent: SchedulerNode): Iterable<SchedulerNode> {
    const children = this.#children.get(parent) ?? NONE;
    this.#children.delete(parent);
    return children;
  }

  find(id: string): SchedulerNode | undefined {
    return this.#nodes.get(id);
  }

  all(): Iterable<SchedulerNode> {
    return this.#nodes.values();
  }

  get size(): number {
    return this.#nodes.size;
  }
}
