/**
 * The node record: everything the scheduler knows about one computation or effect stands here and nowhere else
 * (Scheduler v2 §4.1). Fields have a fixed shape; components own groups of them as the headings say.
 *
 * ```
 *   never-ran ──run──> clean ──something it read changed──> invalid ──run──> clean …
 * ```
 * A node runs when it is not clean, live, eligible, and has budget left in the pass. Dormant nodes keep their reads as
 * (address, tick seen) and are told of nothing; they are verified when demand comes.
 */
import { INSPECT } from "../message/inspect.ts";
import { type Label, labelOf, PUBLIC } from "../store/label.ts";
import type { Replica } from "../store/replica.ts";
import type { Address } from "./address.ts";
import { causesIn, causesOf, type Reason } from "./causes.ts";
import type { GateState } from "./gates.ts";
import type { NodeRecord, Persisted } from "./node-record.ts";
import type { RunHandle } from "./run-handle.ts";

export type NodeKind = "computation" | "effect";
export type WhileLoading = "abandon" | "finish" | "show";
export type NodeStatus = "never-ran" | "clean" | "invalid";

/** A read that a node registered; in the node's list in read order and, while the node is live, in the address's list. */
export class Edge {
  // First what a run and a change look at, so that it is fetched together. The node, the address and the depth are written again only
  // when the graph uses a dropped edge for another read.
  address: Address;
  /** The node's next read. */
  next: Edge | null = null;
  shallow: boolean;
  node: SchedulerNode;
  /** Neighbours among the address's live readers, by when they were linked; the oldest has the newest for its older. */
  newer: Edge | null = null;
  older: Edge | null = null;
  linked = false;
  /** While dormant: the graph's tick up to which the node knows the address. */
  seen = 0;

  constructor(node: SchedulerNode, address: Address, shallow: boolean) {
    this.address = address;
    this.shallow = shallow;
    this.node = node;
  }
}

export interface NodeSpec {
  readonly kind: NodeKind;
  /** Durable name, unique among the registered nodes of its space; for people and for persistence. */
  readonly id: string;
  /** Runs the node. A computation's result goes to its primary output. May return a promise. */
  readonly run: (run: RunHandle) => unknown;
  /** Documents it writes: the primary output first, then static side-write targets. None for an effect. */
  readonly outputs?: readonly Address[];
  /**
   * In place of `outputs`: the output is the document of the node's name there, and is made when somebody looks at it. A node that
   * nobody has looked at is its record and nothing else.
   */
  readonly outputIn?: Replica;
  /** Where a materializer may write; declaring it makes the node one (§4.3). */
  readonly envelope?: readonly Address[];
  /** Known inputs; they order and demand before the first run has shown the real ones (§6.2). */
  readonly declaredReads?: readonly Address[];
  /** The node whose run creates this one. */
  readonly parent?: SchedulerNode;
  /** Changes of transactions in this group do not wake the node (a user's own edits). */
  readonly changeGroup?: string;
  readonly debounceMs?: number;
  readonly throttleMs?: number;
  readonly noAutoDebounce?: boolean;
  /** What it computes is kept over a restart (§9); only for a computation. */
  readonly persisted?: Persisted | undefined;
  /**
   * What a read of a document that is not loaded does to a run. `abandon`: the run ends there, before it acts (an effect).
   * `finish`: it goes on, to find all that has to be loaded, and its result is dropped (a computation). `show`: it counts, and the
   * node runs again when the document is known.
   */
  readonly whileLoading?: WhileLoading;
  /** What it may know; without one, everything. See `information-flow.ts`. */
  readonly clearance?: readonly string[];
}

const NO_ADDRESSES: readonly Address[] = Object.freeze([]);

/** Before every stamp: whatever there is has changed since. */
export const UNKNOWN = -1;

/** The slot of a node that is not queued. */
export const UNQUEUED = -1;
/** The slot of a node that runs, or awaits its asynchronous run: it is not queued before that has ended. */
export const RUNNING = -2;

/** A node whose runs show by themselves, whatever it reads: an effect, or a materializer. */
export function isProcess({ kind, envelope }: SchedulerNode): boolean {
  return kind === "effect" || envelope !== undefined;
}

/** What few nodes have. It stands apart: a node with nothing of it is smaller, and one look tells. */
class Particulars {
  envelope: readonly Address[] | undefined;
  parent: SchedulerNode | undefined;
  changeGroup: string | undefined;
  clearance: Label | undefined;
  /** Owned by gates; absent until one is needed. */
  gate: GateState | undefined;
  /** Owned by persistence; only of nodes that are kept. */
  record: NodeRecord | undefined;
  whileLoading: WhileLoading | undefined;
  /** Its last run has read documents that are not known. It is not queued before one of them is. */
  isWaiting = false;
  /** A computation that waits: its output counts as not loaded. */
  isHidden = false;
  /** A materializer that primary work waits for: it stands in the primary queue (§4.3). */
  promoted = false;
  /** The run of its creator that made it, or made it again, last; and the graph's tick as of which its function has caught what it has, or `UNKNOWN`. */
  madeIn = 0;
  caughtAt = 0;
}

/**
 * First what every run touches, in about that order: the processor fetches it in few pieces, and running a node is mostly waiting for
 * memory (`docs/decisions/0006`).
 */
export class SchedulerNode {
  // Status, owned by invalidation and runner.
  status: NodeStatus = "never-ran";
  /** Position in the work queue, or `UNQUEUED` or `RUNNING`; owned by settle. */
  slot = UNQUEUED;
  /** What made it invalid (the trigger reads of §10), and what it ran for last; owned by `causes.ts`. */
  reason: Reason = null;
  lastReason: Reason = null;
  met = 0;
  /** What its function gets; made by the first run. */
  handle: RunHandle | null = null;
  /** Another one once its creator has made the node again. */
  run: (run: RunHandle) => unknown;
  /** What it has read, in that order; owned by graph. */
  reads: Edge | null = null;
  /** Where a computation's result goes; undefined also while nobody has looked at it (`outputIn`). */
  output: Address | undefined;
  /** Absent while there is nothing particular about the node; the accessors below are what others use. */
  particulars: Particulars | null = null;
  /** How often it ran in the pass in which it ran last; owned by settle. */
  passRuns = 0;
  pass = 0;
  /** All runs, for introspection. */
  runs = 0;
  registered = true;
  /** What its function threw at the last run; undefined after a run that did not. */
  error: unknown;
  /** What the node itself carries: that of the run that made it and, for a process, all that it has read and was triggered by. */
  label: Label = PUBLIC;
  readonly kind: NodeKind;

  // Place in the graph, owned by graph.
  /** Greater than that of every node whose output it reads, cycles aside. */
  height: number;
  /** Order of registration, persistent while the node is registered; decides ties. */
  readonly ordinal: number;
  live = false;
  /** Linked edges on its outputs, plus the standing demands below. */
  demand = 0;
  /** Demand of its own: an effect, a materializer, a pull. */
  rooted = false;
  /** Created by the run of a live node and not yet through its creating pass and first run (§5.3). */
  provisional = false;

  readonly id: string;
  readonly outputIn: Replica | undefined;
  /** All that it writes, where that is more than the output or not the output. */
  readonly #outputs: readonly Address[] | undefined;

  constructor(spec: NodeSpec, ordinal: number) {
    this.id = spec.id;
    this.kind = spec.kind;
    this.run = spec.run;
    this.output = spec.kind === "computation" ? spec.outputs?.[0] : undefined;
    this.outputIn = spec.outputIn;
    this.#outputs = spec.outputs?.length === 1 && this.output !== undefined ? undefined : spec.outputs;
    this.ordinal = ordinal;
    this.height = ordinal;
    if (isParticular(spec)) this.#specify(spec);
  }

  #specify({ envelope, parent, changeGroup, clearance, whileLoading }: NodeSpec): void {
    const particulars = this.#particular();
    particulars.whileLoading = whileLoading;
    particulars.envelope = envelope;
    particulars.parent = parent;
    particulars.changeGroup = changeGroup;
    particulars.clearance = clearance === undefined ? undefined : labelOf(clearance);
  }

  #particular(): Particulars {
    this.particulars ??= new Particulars();
    return this.particulars;
  }

  [INSPECT](): string {
    return `${this.kind} ${this.id}, ${this.status}`;
  }

  /** Addresses whose changes made it invalid. */
  get causes(): readonly Address[] {
    return causesOf(this);
  }

  /** Why it ran last. */
  get lastCauses(): readonly Address[] {
    return causesIn(this.lastReason);
  }

  get envelope(): readonly Address[] | undefined {
    return this.particulars === null ? undefined : this.particulars.envelope;
  }

  get parent(): SchedulerNode | undefined {
    return this.particulars === null ? undefined : this.particulars.parent;
  }

  get changeGroup(): string | undefined {
    return this.particulars === null ? undefined : this.particulars.changeGroup;
  }

  get clearance(): Label | undefined {
    return this.particulars === null ? undefined : this.particulars.clearance;
  }

  get gate(): GateState | undefined {
    return this.particulars === null ? undefined : this.particulars.gate;
  }

  set gate(gate: GateState) {
    this.#particular().gate = gate;
  }

  get record(): NodeRecord | undefined {
    return this.particulars === null ? undefined : this.particulars.record;
  }

  set record(record: NodeRecord | undefined) {
    this.#particular().record = record;
  }

  get whileLoading(): WhileLoading {
    return this.particulars?.whileLoading ?? (this.kind === "effect" ? "abandon" : "finish");
  }

  get isWaiting(): boolean {
    return this.particulars === null ? false : this.particulars.isWaiting;
  }

  set isWaiting(isWaiting: boolean) {
    this.#particular().isWaiting = isWaiting;
  }

  get isHidden(): boolean {
    return this.particulars === null ? false : this.particulars.isHidden;
  }

  set isHidden(isHidden: boolean) {
    this.#particular().isHidden = isHidden;
  }

  get promoted(): boolean {
    return this.particulars?.promoted ?? false;
  }

  set promoted(promoted: boolean) {
    this.#particular().promoted = promoted;
  }

  get madeIn(): number {
    return this.particulars?.madeIn ?? 0;
  }

  get caughtAt(): number {
    return this.particulars?.caughtAt ?? 0;
  }

  /** A run of its creator has made it, or made it again. */
  madeBy(run: number, caughtAt: number): void {
    const particulars = this.#particular();
    particulars.madeIn = run;
    particulars.caughtAt = caughtAt;
  }

  /** Documents it writes: the output first, then static side-write targets. */
  get outputs(): readonly Address[] {
    return this.#outputs ?? (this.output === undefined ? NO_ADDRESSES : this.output.alone);
  }
}

function isParticular({ envelope, parent, changeGroup, clearance, whileLoading }: NodeSpec): boolean {
  const isOrdered = envelope !== undefined || parent !== undefined || changeGroup !== undefined;
  return isOrdered || clearance !== undefined || whileLoading !== undefined;
}
