/**
 * Persistence of derived values (Scheduler v2 §9): which nodes are kept, when they are written (`write-behind.ts`) and how they come back
 * (`resume.ts`). A node has two ways to start: _fresh_ it has never run, whatever the store says; _resumed_ it goes on where its row ends.
 * SPEC: I7, R34-R39.
 *
 * Source writes, side-writes and receipts do not pass here: they are commits of their own.
 */
import type { Host } from "../host/host.ts";
import { PREFETCHED_MAX } from "../limits.ts";
import type { Replica } from "../store/replica.ts";
import type { Address } from "./address.ts";
import type { Agenda } from "./agenda.ts";
import type { Documents } from "./documents.ts";
import { enterReads } from "./folded-reads.ts";
import type { Gates } from "./gates.ts";
import type { Graph } from "./graph.ts";
import type { Introspection } from "./introspection.ts";
import type { NodeSpec, SchedulerNode } from "./node.ts";
import { type GateSettings, isResumed, NodeRecord, type Persisted } from "./node-record.ts";
import { Resume } from "./resume.ts";
import type { Turns } from "./turns.ts";
import { WriteBehind } from "./write-behind.ts";

/** Keeps everything from running while nodes are being resumed; the settle component. */
export interface Holder {
  hold(work: Promise<unknown>): void;
}

export class Persistence {
  readonly #host: Host;
  readonly #turns: Turns;
  readonly #agenda: Agenda;
  readonly #documents: Documents;
  readonly #introspection: Introspection;
  readonly #resume: Resume;
  readonly #spaces = new Map<Replica, WriteBehind>();
  /** Nodes that are to be looked up together, while their registration goes on. */
  #batch: SchedulerNode[] | undefined;
  #holder: Holder | undefined;
  /** Who met an output that is not here last, and how often in a row. */
  #reader: SchedulerNode | undefined;
  #misses = 0;

  constructor(parts: {
    host: Host;
    turns: Turns;
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

  // Starting -------------------------------------------------------------------------------------------------------------

  /** A node that is to be kept was registered. What a resumed node's first run makes is resumed like it. */
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
    // The row is of the other code; one that is yet to come is told apart by its fingerprint.
    if (record.phase === "restored") this.#disown(node, record);
    return true;
  }

  /**
   * What a node came to is of another function than the one that its creator has made now. True where it is what the node was resumed with, and the
   * creator's first run was merely repeated: what that had read in between was not here, and is not another since it was stored.
   */
  isKept(node: SchedulerNode, record: NodeRecord): boolean {
    if (node.runs === 0 && node.parent?.runs === 0 && record.phase !== "missed") return true;
    if (record.phase === "restored") this.#disown(node, record);
    return false;
  }

  /** It has to run, whatever its row says. */
  #disown(node: SchedulerNode, record: NodeRecord): void {
    enterReads(node);
    record.observation = undefined;
    record.phase = "missed";
  }

  /** What the code registers is resumed; resolves when it is installed. Until then nothing runs. */
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

  /** What runs create until the thread is let go of. */
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
        // They have started fresh: what they would have known is computed again.
        this.#introspection.report(error, undefined);
      }
    }
  }

  // Before the first run -------------------------------------------------------------------------------------------------

  /**
   * A resumed node is about to run for the first time. Undefined: it may. A promise: what it needs is being loaded. `unchanged`: there is
   * nothing to run for.
   */
  prepare(node: SchedulerNode, record: NodeRecord): Promise<unknown> | "unchanged" | undefined {
    if (!this.#resume.isHere(node)) {
      // Those that come next need theirs too: one load for all.
      for (const other of this.#agenda.primary) if (isResumed(other)) this.#resume.isHere(other);
      return Promise.all([...this.#spaces.keys(), replicaOf(node)].map((replica) => replica.loadsSettled()));
    }
    const wasDoubted = record.phase === "restored";
    if (!this.#resume.verify(node, record)) return undefined;
    if (wasDoubted) this.#space(node).add(node);
    return "unchanged";
  }

  /**
   * Resolves when what the node has read and is being loaded is here; undefined where there is nothing of that. One that has failed is not
   * waited for again: the run would begin it anew each time, for ever. It arrives as a change.
   */
  loadsOf(node: SchedulerNode): Promise<unknown> | undefined {
    for (let edge = node.reads; edge !== null; edge = edge.next) {
      const { document, replica } = edge.address.home;
      // The output of a node that waits itself is not on its way from the store.
      if (document.state === "loading" && !document.isKnown && !document.derived && document.loadError === undefined)
        return replica.loadsSettled();
    }
    return undefined;
  }

  /** Whether an output is one that nobody computes now because it is in the store as it was, and is not here yet. */
  isAwaited({ home }: Address): boolean {
    const { document, writers } = home;
    if (document.isKnown || document.loadError !== undefined) return false;
    return writers.some(({ record }) => record !== undefined && record.phase !== "here");
  }

  /** A run has met such an output: it is loaded, and each time twice as many of those that come after it. */
  missed(reader: SchedulerNode, { home }: Address): Promise<unknown> {
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

  // Writing --------------------------------------------------------------------------------------------------------------

  /** A node that is kept has run. */
  ran(node: SchedulerNode, record: NodeRecord): void {
    record.restoring = false;
    this.#space(node).add(node);
  }

  /** What is set about a node has changed. */
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

  /** The node is gone for good. */
  dropped(node: SchedulerNode): void {
    if (node.record !== undefined) this.#space(node).drop(node);
  }

  /** Writes what can be written now. */
  async flush(): Promise<void> {
    await Promise.all([...this.#spaces.values()].map((space) => space.flush()));
  }

  /** The space has closed. */
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

/** What most registrations say of gates: one for all. */
const UNGATED: Required<GateSettings> = { debounceMs: 0, throttleMs: 0, noAutoDebounce: false };

/** The space that a node's output is in. */
function replicaOf(node: SchedulerNode): Replica {
  if (node.outputIn !== undefined) return node.outputIn;
  const place = node.output ?? node.outputs[0] ?? node.envelope?.[0];
  if (place === undefined) throw new Error(`node ${node.id} writes nowhere, so there is nothing to keep`);
  return place.home.replica;
}
