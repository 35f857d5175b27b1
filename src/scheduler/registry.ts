/**
 * The registered nodes: their identity and order. Registering costs index entries and nothing else: no data is read and
 * nothing runs until demand comes (§4.4).
 */
import { type NodeSpec, SchedulerNode } from "./node.ts";

export class Registry {
  readonly #nodes = new Map<string, SchedulerNode>();
  #ordinal = 0;

  /** Makes the record. An id that is taken gets a number, so that every node can be told apart. */
  create(spec: NodeSpec): SchedulerNode {
    const ordinal = ++this.#ordinal;
    const node = new SchedulerNode(this.#nodes.has(spec.id) ? { ...spec, id: `${spec.id}#${ordinal}` } : spec, ordinal);
    this.#nodes.set(node.id, node);
    return node;
  }

  delete(node: SchedulerNode): void {
    node.registered = false;
    this.#nodes.delete(node.id);
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
