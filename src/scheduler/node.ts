/**
 * The node record: the scheduler's whole state of one computation or effect (Scheduler v2 §4.1). Components own groups
 * of fields, as the comments say.
 *
 * ```
 *   never-ran ──run──> clean ──an input changed──> invalid ──run──> clean …
 * ```
 * A node runs when it is not clean, live, eligible, and within the budget of the pass. A dormant node keeps its reads
 * with the tick that it has seen, and is not invalidated by changes; it is verified when demand returns.
 */
import { INSPECT } from "../message/inspect.ts";
import type { Json } from "../message/json.ts";
import { type Label, labelOf, PUBLIC } from "../store/label.ts";
import type { Replica } from "../store/replica.ts";
import type { DocumentTrie, TrieAddress } from "./address.ts";
import type { GateSettings, GateState, Observation, Persisted } from "./node-state.ts";

export type NodeAddress = TrieAddress<Edge, SchedulerNode>;
export type DocumentIndex = DocumentTrie<Edge, SchedulerNode>;

export type NodeKind = "computation" | "effect";
export type WhileLoading = "abandon" | "finish" | "show";
export type NodeStatus = "never-ran" | "clean" | "invalid";

/**
 * A registered read: in the node's list in read order and, while the node is live, in the address's list of readers.
 */
export class Edge {
  // Fields that runs and changes use come first, so that they share a cache line. `node`, `address` and `shallow`
  // change only when the graph reuses a dropped edge.
  address: NodeAddress;
  /** The node's next read. */
  next: Edge | null = null;
  shallow: boolean;
  node: SchedulerNode;
  /** Neighbours among the address's live readers, by the time of linking; `older` of the oldest is the newest. */
  newer: Edge | null = null;
  older: Edge | null = null;
  linked = false;
  /** While dormant: the graph's tick up to which the node knows the address. */
  seen = 0;

  constructor(node: SchedulerNode, address: NodeAddress, shallow: boolean) {
    this.address = address;
    this.shallow = shallow;
    this.node = node;
  }
}

/**
 * The argument of a node's function: access to its run (`NodeRunHandle`). Synchronous code does not need it, since
 * reads find the current run. Code after an await has lost that context and restores it with `within`.
 */
export interface RunHandle {
  readonly node: SchedulerNode;
  /** The addresses whose changes caused the run (I8). */
  readonly causes: readonly NodeAddress[];
  /** The label of the run's reads so far and of its captures (§10). */
  readonly label: Label;
  /**
   * Runs synchronous code as part of the run: its reads are registered, its writes are one commit. Code between two
   * awaits needs a call of its own.
   */
  within<T>(code: () => T): T;
  /** A logged read, for code that runs after an await. */
  read(address: NodeAddress, shallow?: boolean): Json | undefined;
}

/** The definition of a node for a scheduler. */
export interface NodeSpec {
  readonly kind: NodeKind;
  /** Durable name, unique among the registered nodes of its space; for people and for persistence. */
  readonly id: string;
  /** Runs the node. A computation's result goes to its primary output. May return a promise. */
  readonly run: (run: RunHandle) => unknown;
  /** Documents it writes: the primary output first, then static side-write targets. None for an effect. */
  readonly outputs?: readonly NodeAddress[];
  /**
   * In place of `outputs`: the output is the document with the node's name in this space, created at its first access.
   * Until then the node consists of its record only.
   */
  readonly outputIn?: Replica;
  /** Where a materializer may write; declaring it makes the node one (§4.3). */
  readonly envelope?: readonly NodeAddress[];
  /** Known inputs: they give order and demand before the first run has registered the real ones (§6.2). */
  readonly declaredReads?: readonly NodeAddress[];
  /** The node whose run creates this one. */
  readonly parent?: SchedulerNode;
  /** Changes of transactions in this group do not wake the node (a user's own edits). */
  readonly changeGroup?: string;
  readonly debounceMs?: number;
  readonly throttleMs?: number;
  readonly noAutoDebounce?: boolean;
  /** Keeps the result of a computation over a restart (§9). */
  readonly persisted?: Persisted | undefined;
  /**
   * The effect of a read of an unloaded document on a run. `abandon`: the run ends there, before it acts (an effect).
   * `finish`: it continues, to find all documents to load, and its result is dropped (a computation). `show`: the run
   * counts, and the node runs again when the document is loaded.
   */
  readonly whileLoading?: WhileLoading;
  /** The labels that it may read; undefined: all. See `information-flow.ts`. */
  readonly clearance?: readonly string[];
}

const NO_ADDRESSES: readonly NodeAddress[] = Object.freeze([]);

/** Less than every stamp: counts as changed. */
export const UNKNOWN = -1;

/** The slot of a node that is not queued. */
export const UNQUEUED = -1;
/** The slot of a node that runs, or awaits its asynchronous run: it is not queued before that run has ended. */
export const RUNNING = -2;

/** A node whose runs are visible by themselves: an effect, or a materializer. */
export function isProcess({ kind, envelope }: SchedulerNode): boolean {
  return kind === "effect" || envelope !== undefined;
}

/** The addresses whose changes made a node invalid; see `causes.ts`. */
export type Reason = NodeAddress | readonly NodeAddress[] | null;

/** Reads of resumed nodes that are only in their rows, and not in the graph; see `folded-reads.ts`. */
export interface FoldedReads {
  /** Enters the reads of the row into the graph. */
  enter(node: SchedulerNode, record: NodeRecord): void;
  /** Enters the reads of a node in doubt, and adds causes: the moved reads, or with `isEvery` all of them. */
  enterDoubtful(node: SchedulerNode, record: NodeRecord, isEvery: boolean): void;
  /** Releases the documents: the graph holds them now, or the node does not need them. */
  forget(record: NodeRecord): void;
}

/** The persistence state of one node; see `node-record.ts`. */
export class NodeRecord {
  /** Changes if its creator makes the node again from other code. */
  fingerprint: string;
  /** The gate settings of the registration. */
  readonly declared: Required<GateSettings>;
  phase: "asked" | "restored" | "missed" | "here" = "here";
  /** The contents of the row; while restored. */
  observation: Observation | undefined;
  /** Set while the reads are only in the row and not in the graph. */
  folded: FoldedReads | undefined;
  /** The present output may not be stored with a matching row. */
  unwritten = false;
  /** The stored output; undefined if unknown. */
  stored: { readonly value: Json | undefined } | undefined;
  /** The store may hold a row of the node, of this process or an earlier one. */
  mayHaveRow = true;
  /** Its runs create nodes: after a restart it must run once to create them again. */
  creates = false;
  /** Restored and not run since: nodes that its run creates are resumed too. */
  restoring = false;
  /** Its runs write side-writes, in commits of their own. */
  writes = false;
  /**
   * The nodes that were resumed together, in order of registration, and its index among them: a reader often reads them
   * in that order.
   */
  neighbours: readonly SchedulerNode[] = [];
  place = 0;

  constructor(fingerprint: string, declared: Required<GateSettings>) {
    this.fingerprint = fingerprint;
    this.declared = declared;
  }
}

/** The computation whose result is the document. */
export function computationAt(home: DocumentIndex): SchedulerNode | undefined {
  return home.writers.find(({ output }) => output?.home === home);
}

/** Fields that few nodes need. A node without any of them is smaller, and one null check tells. */
class NodeExtras {
  envelope: readonly NodeAddress[] | undefined;
  parent: SchedulerNode | undefined;
  changeGroup: string | undefined;
  clearance: Label | undefined;
  /** Owned by gates; created when one is needed. */
  gate: GateState | undefined;
  /** Owned by persistence; only of persisted nodes. */
  record: NodeRecord | undefined;
  whileLoading: WhileLoading | undefined;
  /** Its last run read documents that are not loaded. It is queued when one of them is. */
  isWaiting = false;
  /** A waiting computation: its output counts as not loaded. */
  isHidden = false;
  /** A materializer in the primary queue, because primary work waits for it (§4.3). */
  promoted = false;
  /** The last run of its creator that made it; and the graph's tick of its function's captures, or `UNKNOWN`. */
  madeIn = 0;
  caughtAt = 0;
}

/**
 * The fields are in about the order of their use in a run, so that they are in few cache lines: running a node is
 * mostly waiting for memory (`docs/decisions/0006`).
 */
export class SchedulerNode {
  // Status, owned by invalidation and runner.
  status: NodeStatus = "never-ran";
  /** Position in the work queue, or `UNQUEUED` or `RUNNING`; owned by settle. */
  slot = UNQUEUED;
  /** The causes that made it invalid (the trigger reads of §10), and those of its last run; owned by `causes.ts`. */
  reason: Reason = null;
  lastReason: Reason = null;
  matched = 0;
  /** The argument of its function; created by the first run. */
  handle: RunHandle | null = null;
  /** Replaced when its creator makes the node again. */
  run: (run: RunHandle) => unknown;
  /** Its reads in order; owned by graph. */
  reads: Edge | null = null;
  /** The place of a computation's result; undefined until the first access if `outputIn` is given. */
  output: NodeAddress | undefined;
  /** Null for most nodes; other modules use the accessors below. */
  extras: NodeExtras | null = null;
  /** Runs in the pass of its last run; owned by settle. */
  passRuns = 0;
  pass = 0;
  /** All runs, for introspection. */
  runs = 0;
  registered = true;
  /** The error of the last run; undefined if it did not throw. */
  error: unknown;
  /** The label of the run that created it and, for a process, of all its reads and triggers. */
  label: Label = PUBLIC;
  readonly kind: NodeKind;

  // Place in the graph, owned by graph.
  /** Greater than that of every node whose output it reads, except in circles. */
  height: number;
  /** Order of registration, which decides ties. */
  readonly ordinal: number;
  live = false;
  /** Linked edges on its outputs, plus the standing demands below. */
  demand = 0;
  /** Demand of its own: an effect, a materializer, a pull. */
  rooted = false;
  /** Created by the run of a live node, with its creating pass or first run still to come (§5.3). */
  provisional = false;

  readonly id: string;
  readonly outputIn: Replica | undefined;
  /** All documents that it writes, if these are not just the output. */
  readonly #outputs: readonly NodeAddress[] | undefined;

  constructor(spec: NodeSpec, ordinal: number) {
    this.id = spec.id;
    this.kind = spec.kind;
    this.run = spec.run;
    this.output = spec.kind === "computation" ? spec.outputs?.[0] : undefined;
    this.outputIn = spec.outputIn;
    this.#outputs = spec.outputs?.length === 1 && this.output !== undefined ? undefined : spec.outputs;
    this.ordinal = ordinal;
    this.height = ordinal;
    if (hasExtras(spec)) this.#specify(spec);
  }

  #specify({ envelope, parent, changeGroup, clearance, whileLoading }: NodeSpec): void {
    const extras = this.#ownExtras();
    extras.whileLoading = whileLoading;
    extras.envelope = envelope;
    extras.parent = parent;
    extras.changeGroup = changeGroup;
    extras.clearance = clearance === undefined ? undefined : labelOf(clearance);
  }

  #ownExtras(): NodeExtras {
    this.extras ??= new NodeExtras();
    return this.extras;
  }

  [INSPECT](): string {
    return `${this.kind} ${this.id}, ${this.status}`;
  }

  get envelope(): readonly NodeAddress[] | undefined {
    return this.extras === null ? undefined : this.extras.envelope;
  }

  get parent(): SchedulerNode | undefined {
    return this.extras === null ? undefined : this.extras.parent;
  }

  get changeGroup(): string | undefined {
    return this.extras === null ? undefined : this.extras.changeGroup;
  }

  get clearance(): Label | undefined {
    return this.extras === null ? undefined : this.extras.clearance;
  }

  get gate(): GateState | undefined {
    return this.extras === null ? undefined : this.extras.gate;
  }

  set gate(gate: GateState) {
    this.#ownExtras().gate = gate;
  }

  get record(): NodeRecord | undefined {
    return this.extras === null ? undefined : this.extras.record;
  }

  set record(record: NodeRecord | undefined) {
    this.#ownExtras().record = record;
  }

  get whileLoading(): WhileLoading {
    return this.extras?.whileLoading ?? (this.kind === "effect" ? "abandon" : "finish");
  }

  get isWaiting(): boolean {
    return this.extras === null ? false : this.extras.isWaiting;
  }

  set isWaiting(isWaiting: boolean) {
    this.#ownExtras().isWaiting = isWaiting;
  }

  get isHidden(): boolean {
    return this.extras === null ? false : this.extras.isHidden;
  }

  set isHidden(isHidden: boolean) {
    this.#ownExtras().isHidden = isHidden;
  }

  get promoted(): boolean {
    return this.extras?.promoted ?? false;
  }

  set promoted(promoted: boolean) {
    this.#ownExtras().promoted = promoted;
  }

  get madeIn(): number {
    return this.extras?.madeIn ?? 0;
  }

  get caughtAt(): number {
    return this.extras?.caughtAt ?? 0;
  }

  /** A run of its creator has made it, for the first time or again. */
  madeBy(run: number, caughtAt: number): void {
    const extras = this.#ownExtras();
    extras.madeIn = run;
    extras.caughtAt = caughtAt;
  }

  /** Documents it writes: the output first, then static side-write targets. */
  get outputs(): readonly NodeAddress[] {
    return this.#outputs ?? (this.output === undefined ? NO_ADDRESSES : this.output.alone);
  }
}

function hasExtras({ envelope, parent, changeGroup, clearance, whileLoading }: NodeSpec): boolean {
  const isOrdered = envelope !== undefined || parent !== undefined || changeGroup !== undefined;
  return isOrdered || clearance !== undefined || whileLoading !== undefined;
}
