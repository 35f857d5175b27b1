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
import { type Label, labelOf, PUBLIC } from "../store/label.ts";
import type { Replica } from "../store/replica.ts";
import type { Address } from "./address.ts";
import type { GateState } from "./gates.ts";
import type { NodeRecord, Persisted } from "./node-record.ts";
import type { Run } from "./run.ts";

export type NodeKind = "computation" | "effect";
export type NodeStatus = "never-ran" | "clean" | "invalid";

/** A read that a node registered; in the node's list in read order and, while the node is live, in the address's list. */
export class Edge {
  // Written again only when the graph uses a dropped edge for another read.
  node: SchedulerNode;
  address: Address;
  shallow: boolean;
  /** While dormant: the graph's tick up to which the node knows the address. */
  seen = 0;
  linked = false;
  /** The node's next read. */
  next: Edge | null = null;
  /** Neighbours among the address's live readers, by when they were linked; the oldest has the newest for its older. */
  newer: Edge | null = null;
  older: Edge | null = null;

  constructor(node: SchedulerNode, address: Address, shallow: boolean) {
    this.node = node;
    this.address = address;
    this.shallow = shallow;
  }
}

export interface NodeSpec {
  readonly kind: NodeKind;
  /** Durable name, unique among the registered nodes of its space; for people and for persistence. */
  readonly id: string;
  /** Runs the node. A computation's result goes to its primary output. May return a promise. */
  readonly run: (run: Run) => unknown;
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
  readonly persisted?: Persisted;
  /** What it may know; without one, everything. See `information-flow.ts`. */
  readonly clearance?: readonly string[];
}

/** Shared by all nodes without causes, so that a node at rest owns no array. */
export const NO_CAUSES: readonly Address[] = Object.freeze([]);
const NO_ADDRESSES: readonly Address[] = Object.freeze([]);

/** The slot of a node that is not queued. */
export const UNQUEUED = -1;
/** The slot of a node that runs, or awaits its asynchronous run: it is not queued before that has ended. */
export const RUNNING = -2;

/** One more reason to run. A single one is shared by all that have it, so that most invalidations allocate nothing. */
export function addCause(node: SchedulerNode, cause: Address): void {
  if (node.causes.length === 0) node.causes = cause.alone;
  else addAnother(node, cause);
}

/** Lists of one or two are shared, and nobody changes them; a longer one is the node's own until a run takes it. */
function addAnother(node: SchedulerNode, cause: Address): void {
  const { causes } = node;
  if (causes.length === 1) {
    const first = causes[0] as Address;
    if (first !== cause) node.causes = pairOf(first, cause, node.lastCauses);
  } else if (causes.length === 2) {
    if (causes[0] !== cause && causes[1] !== cause) node.causes = [...causes, cause];
  } else if (isMissing(causes, cause)) {
    (causes as Address[]).push(cause);
  }
}

/** Causes that are looked through one by one. */
const LISTED_MAX = 16;
/** What is in longer lists: a node that reads a hundred thousand places may be told of each. */
const members = new WeakMap<readonly Address[], Set<Address>>();

/** Whether the list lacks the cause, which the caller adds then. */
function isMissing(causes: readonly Address[], cause: Address): boolean {
  if (causes.length > LISTED_MAX) return isMissingInLong(causes, cause);
  for (let i = causes.length - 1; i >= 0; i--) if (causes[i] === cause) return false;
  return true;
}

function isMissingInLong(causes: readonly Address[], cause: Address): boolean {
  const known = members.get(causes) ?? new Set(causes);
  if (known.has(cause)) return false;
  members.set(causes, known.add(cause));
  return true;
}

/** Takes the causes for a run. */
export function takeCauses(node: SchedulerNode): readonly Address[] {
  const { causes } = node;
  node.causes = NO_CAUSES;
  node.lastCauses = causes;
  if (causes.length > LISTED_MAX) members.delete(causes);
  return causes;
}

/** What runs for two causes mostly runs for the same two the next time. */
function pairOf(first: Address, second: Address, known: readonly Address[]): readonly Address[] {
  return known.length === 2 && known[0] === first && known[1] === second ? known : [first, second];
}

/** Gives back the causes that a run took, because it is repeated; each stands there once. */
export function restoreCauses(node: SchedulerNode, causes: readonly Address[]): void {
  if (causes.length === 0) return;
  node.causes = node.causes.length === 0 ? [...causes] : [...new Set([...causes, ...node.causes])];
}

/** A node whose runs show by themselves, whatever it reads: an effect, or a materializer. */
export function isProcess({ kind, envelope }: SchedulerNode): boolean {
  return kind === "effect" || envelope !== undefined;
}

export class SchedulerNode {
  // Static.
  readonly id: string;
  readonly kind: NodeKind;
  readonly run: (run: Run) => unknown;
  /** Where a computation's result goes; undefined also while nobody has looked at it (`outputIn`). */
  output: Address | undefined;
  readonly outputIn: Replica | undefined;
  /** All that it writes, where that is more than the output or not the output. */
  readonly #outputs: readonly Address[] | undefined;
  readonly envelope: readonly Address[] | undefined;
  readonly parent: SchedulerNode | undefined;
  readonly changeGroup: string | undefined;
  /** Order of registration, persistent while the node is registered; decides ties. */
  readonly ordinal: number;

  // Information flow, owned by it.
  readonly clearance: Label | undefined;
  /** What the node itself carries: that of the run that made it and, for a process, all that it has read and was triggered by. */
  label: Label = PUBLIC;

  // Status, owned by invalidation and runner.
  status: NodeStatus = "never-ran";
  registered = true;
  /** Addresses whose changes made it invalid (the trigger reads of §10); taken by the run, given back when it is repeated. */
  causes: readonly Address[] = NO_CAUSES;
  /** Why it ran last. */
  lastCauses: readonly Address[] = NO_CAUSES;
  /** What its function threw at the last run; undefined after a run that did not. */
  error: unknown;

  // Reads and place in the graph, owned by graph.
  reads: Edge | null = null;
  /** Greater than that of every node whose output it reads, cycles aside. */
  height: number;
  live = false;
  /** Linked edges on its outputs, plus the standing demands below. */
  demand = 0;
  /** Demand of its own: an effect, a materializer, a pull. */
  rooted = false;
  /** Created by the run of a live node and not yet through its creating pass and first run (§5.3). */
  provisional = false;

  // Place in the work, owned by settle.
  /** Position in the work queue's heap, or one of the two below it. */
  slot = UNQUEUED;
  /** A materializer that primary work waits for: it stands in the primary queue (§4.3). */
  promoted = false;
  passRuns = 0;
  pass = 0;

  // Gates, owned by gates; absent until one is needed.
  gate: GateState | undefined;

  // Persistence, owned by it; only of nodes that are kept.
  record: NodeRecord | undefined;

  // Counts, for introspection.
  runs = 0;

  constructor(spec: NodeSpec, ordinal: number) {
    this.id = spec.id;
    this.kind = spec.kind;
    this.run = spec.run;
    this.output = spec.kind === "computation" ? spec.outputs?.[0] : undefined;
    this.outputIn = spec.outputIn;
    this.#outputs = spec.outputs?.length === 1 && this.output !== undefined ? undefined : spec.outputs;
    this.envelope = spec.envelope;
    this.parent = spec.parent;
    this.changeGroup = spec.changeGroup;
    this.clearance = spec.clearance === undefined ? undefined : labelOf(spec.clearance);
    this.ordinal = ordinal;
    this.height = ordinal;
  }

  /** Documents it writes: the output first, then static side-write targets. */
  get outputs(): readonly Address[] {
    return this.#outputs ?? (this.output === undefined ? NO_ADDRESSES : this.output.alone);
  }
}
