/**
 * Persistence of derived values (Scheduler v2 §9): which nodes are persisted, when they are written (`write-behind.ts`)
 * and how they are resumed (`resume.ts`). A _fresh_ node has never run, whatever the store contains; a _resumed_ node
 * continues from its row. SPEC: I7, R34-R39.
 *
 * Source writes, side-writes and receipts are commits of their own and do not pass here.
 */
import type { Host } from "../host/host.ts";
import { PREFETCHED_MAX } from "../limits.ts";
import type { Replica } from "../store/replica.ts";
import type { Agenda } from "./agenda.ts";
import type { Documents } from "./documents.ts";
import type { Gates } from "./gates.ts";
import type { Graph } from "./graph.ts";
import type { Introspection } from "./introspection.ts";
import { type NodeAddress, NodeRecord, type NodeSpec, type SchedulerNode } from "./node.ts";
import { enterReads, isResumed } from "./node-record.ts";
import type { GateSettings, Persisted } from "./node-state.ts";
import { Resume } from "./resume.ts";
import type { WriteTurns } from "./turns.ts";
import { WriteBehind } from "./write-behind.ts";

/** Keeps every node from running while nodes are being resumed; implemented by the settle component. */
export interface Holder {
  hold(work: Promise<unknown>): void;
}

export class Persistence {
  readonly #host: Host;
  readonly #turns: WriteTurns;
  readonly #agenda: Agenda;
  readonly #documents: Documents;
  readonly #introspection: Introspection;
  readonly #resume: Resume;
  readonly #spaces = new Map<Replica, WriteBehind>();
  /** Nodes to look up together, while their registration continues. */
  #batch: SchedulerNode[] | undefined;
  #holder: Holder | undefined;
  /** The last reader of an output that was not loaded, and its number of such reads in a row. */
  #reader: SchedulerNode | undefined;
  #misses = 0;

  constructor(parts: {
    host: Host;
    turns: WriteTurns;
    graph: Graph;
    agenda: Agenda;
    documents: Documents;
    gates: Gates;
    introspection: Introspection;
  }) {
    this.#host = parts.host;
    this.#turns = parts.turns;
    this.#agenda = parts.agenda;
    this.#documents = parts.documents;
    this.#introspection = parts.introspection;
    this.#resume = new Resume(parts);
  }

  set holder(holder: Holder) {
    this.#holder = holder;
  }

  // Starting
  // -------------------------------------------------------------------------------------------------------------

  /** Registers a node for persistence. Nodes that a resumed node's first run creates are resumed too. */
  register(node: SchedulerNode, { persisted, debounceMs, throttleMs, noAutoDebounce }: NodeSpec): void {
    const creator = node.parent?.record;
    if (creator !== undefined) creator.creates = true;
    if (persisted === undefined) return;
    const isGated = debounceMs !== undefined || throttleMs !== undefined || noAutoDebounce !== undefined;
    node.record = new NodeRecord(
      persisted.fingerprint,
      isGated
        ? { debounceMs: debounceMs ?? 0, throttleMs: throttleMs ?? 0, noAutoDebounce: noAutoDebounce ?? false }
        : UNGATED,
    );
    if (this.#batch === undefined && creator?.restoring) this.#openBatch();
    if (this.#batch === undefined) return;
    node.record.phase = "asked";
    this.#batch.push(node);
  }

  /** A node was made again by its creator; true if from other code. */
  remade(node: SchedulerNode, record: NodeRecord, persisted: Persisted | undefined): boolean {
    if (persisted === undefined || persisted.fingerprint === record.fingerprint) return false;
    record.fingerprint = persisted.fingerprint;
    // The row belongs to the old code; a row that is still to come is refused by its fingerprint.
    if (record.phase === "restored") this.#disown(node, record);
    return true;
  }

  /**
   * Whether a node's result stays valid although its creator has now made it from another function. True for a resumed
   * result if the creator's first run was merely repeated: the inputs that it waited for are as they were stored.
   */
  isKept(node: SchedulerNode, record: NodeRecord): boolean {
    if (node.runs === 0 && node.parent?.runs === 0 && record.phase !== "missed") return true;
    if (record.phase === "restored") this.#disown(node, record);
    return false;
  }

  /** Discards the row, so that the node must run. */
  #disown(node: SchedulerNode, record: NodeRecord): void {
    enterReads(node);
    record.observation = undefined;
    record.phase = "missed";
  }

  /** Resumes the nodes that the code registers; resolves when they are installed. No node runs until then. */
  resume<T>(build: () => T): Promise<T> {
    const outer = this.#batch;
    this.#batch = [];
    try {
      const result = build();
      const installed = this.#install(this.#batch).then(() => result);
      this.#holder?.hold(installed);
      return installed;
    } finally {
      this.#batch = outer;
    }
  }

  /** Collects the nodes that runs create until the current task ends. */
  #openBatch(): void {
    const nodes: SchedulerNode[] = [];
    this.#batch = nodes;
    const closed = new Promise<void>((resolve) => {
      this.#host.microtask(() => {
        this.#batch = undefined;
        resolve();
      });
    });
    this.#holder?.hold(closed.then(() => this.#install(nodes)));
  }

  async #install(nodes: readonly SchedulerNode[]): Promise<void> {
    const spaces = Map.groupBy(nodes, replicaOf);
    for (const [replica, ofSpace] of spaces) {
      try {
        await this.#resume.install(replica, ofSpace);
      } catch (error) {
        // They started fresh, so their values are computed again.
        this.#introspection.report(error, undefined);
      }
    }
  }

  // Before the first run
  // -------------------------------------------------------------------------------------------------

  /**
   * Called before the first run of a resumed node. Undefined: it may run. A promise: its inputs are being loaded.
   * `hidden`: it waits for the run of another node. `unchanged`: it need not run.
   */
  prepare(node: SchedulerNode, record: NodeRecord): Promise<unknown> | "hidden" | "unchanged" | undefined {
    const missing = this.#resume.missing(node);
    if (missing === "hidden") return missing;
    if (missing === "loading") {
      // Requests the inputs of queued nodes too, so that one load serves all.
      for (const other of this.#agenda.primary) if (isResumed(other)) this.#resume.missing(other);
      return Promise.all([...this.#spaces.keys(), replicaOf(node)].map((replica) => replica.loadsSettled()));
    }
    const wasDoubted = record.phase === "restored";
    if (!this.#resume.verify(node, record)) return undefined;
    if (wasDoubted) this.#space(node).add(node);
    return "unchanged";
  }

  /**
   * Resolves when the node's loading inputs have been loaded; undefined if none is loading. A failed load is not waited
   * for again, because the run would retry it forever. If the document loads later, it arrives as a change.
   */
  loadsOf(node: SchedulerNode): Promise<unknown> | undefined {
    for (let edge = node.reads; edge !== null; edge = edge.next) {
      const { document, replica } = edge.address.home;
      // The output of a waiting node is not loaded from the store.
      if (document.state === "loading" && !document.isKnown && !document.derived && document.loadError === undefined)
        return replica.loadsSettled();
    }
    return undefined;
  }

  /** Whether an output is not computed now, because its stored value is still valid and not loaded yet. */
  isAwaited({ home }: NodeAddress): boolean {
    const { document, writers } = home;
    if (document.isKnown || document.loadError !== undefined) return false;
    return writers.some(({ record }) => record !== undefined && record.phase !== "here");
  }

  /** A run read such an output. Loads it and its successors, twice as many each time. */
  missed(reader: SchedulerNode, { home }: NodeAddress): Promise<unknown> {
    this.#misses = reader === this.#reader ? this.#misses + 1 : 1;
    this.#reader = reader;
    const record = home.writers.find((writer) => writer.record !== undefined)?.record;
    const from = record === undefined ? 0 : record.place + 1;
    const next = record?.neighbours.slice(from, from + Math.min(PREFETCHED_MAX, 2 ** this.#misses));
    for (const node of next ?? []) {
      const output = this.#documents.outputOf(node);
      if (output?.document.state === "absent") output.home.replica.touch(output.document);
    }
    return home.replica.loadsSettled();
  }

  // Writing
  // --------------------------------------------------------------------------------------------------------------

  /** A persisted node has run. */
  ran(node: SchedulerNode, record: NodeRecord): void {
    record.restoring = false;
    this.#space(node).add(node);
  }

  /** A setting of the node changed. */
  changed(node: SchedulerNode): void {
    if (node.record !== undefined && node.record.phase !== "asked") this.#space(node).add(node);
  }

  removed(node: SchedulerNode): void {
    if (this.#reader === node) this.#reader = undefined;
    const { record } = node;
    if (record === undefined) return;
    record.folded?.forget(record);
    this.#space(node).remove(node);
  }

  /** The node was removed for good. */
  dropped(node: SchedulerNode): void {
    if (node.record !== undefined) this.#space(node).drop(node);
  }

  /** Writes the rows that can be written now. */
  async flush(): Promise<void> {
    await Promise.all([...this.#spaces.values()].map((space) => space.flush()));
  }

  forget(replica: Replica): void {
    this.#spaces.get(replica)?.close();
    this.#spaces.delete(replica);
  }

  get written(): number {
    return [...this.#spaces.values()].reduce((sum, { written }) => sum + written, 0);
  }

  get unwritten(): number {
    return [...this.#spaces.values()].reduce((sum, { size }) => sum + size, 0);
  }

  dispose(): void {
    for (const space of this.#spaces.values()) space.close();
  }

  #space(node: SchedulerNode): WriteBehind {
    const replica = replicaOf(node);
    let space = this.#spaces.get(replica);
    if (space === undefined) {
      space = new WriteBehind(replica, { host: this.#host, turns: this.#turns, introspection: this.#introspection });
      this.#spaces.set(replica, space);
    }
    return space;
  }
}

/** The settings of most registrations, shared. */
const UNGATED: Required<GateSettings> = { debounceMs: 0, throttleMs: 0, noAutoDebounce: false };

/** The space of a node's output. */
function replicaOf(node: SchedulerNode): Replica {
  if (node.outputIn !== undefined) return node.outputIn;
  const place = node.output ?? node.outputs[0] ?? node.envelope?.[0];
  if (place === undefined) throw new Error(`node ${node.id} writes nowhere, so it cannot be persisted`);
  return place.home.replica;
}
