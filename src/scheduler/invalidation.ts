/**
 * The change channel (Scheduler v2 §6): every change of a document passes through `changed`, which stamps the addresses
 * that it touches and invalidates their live readers. It does not propagate further: the changes of a reader's run come
 * through the same channel.
 *
 * Effect of a change at path P:
 * - at P: all deep readers; the shallow ones if kind, key set, length, link or scalar differ;
 * - above P: all deep readers; the shallow readers of P's parent if a key was added or removed;
 * - below P: as at P, with the values before and after at that place; equal subtrees are skipped.
 *
 * Equality is structural. A value that is absent before and after is undefined in both and has not changed, because its
 * reader sees the same (decision 0006 gives the difference from the design, and the reason).
 */
import { equal } from "../message/equality.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import type { Notification, NotificationListener } from "../store/change.ts";
import { asLink, LINK_KEY } from "../store/document.ts";
import { isWithin, type Label, labelOfRead, type PlaceLabel } from "../store/label.ts";
import { childAt } from "../store/patch.ts";
import type { Replica } from "../store/replica.ts";
import { NONE } from "../store/small-list.ts";
import { labelSeen } from "./address-label.ts";
import type { Agenda } from "./agenda.ts";
import { addCause } from "./causes.ts";
import type { Gates } from "./gates.ts";
import type { Graph } from "./graph.ts";
import { linkedEdges } from "./graph-walk.ts";
import type { DocumentIndex, Edge, NodeAddress, SchedulerNode } from "./node.ts";
import { hasForeignOutput, isUnverified } from "./node-record.ts";
import type { TraceLog, TraceTopics } from "./trace.ts";

/** A place below a change, with its values before and after. */
interface Comparison {
  readonly address: NodeAddress;
  readonly before: Json | undefined;
  readonly after: Json | undefined;
  readonly isBelowLink: boolean;
}

/** Hears of rolled-back commits of a replica before their callers do. */
export interface RollbackListener {
  rolledBack(replica: Replica): void;
}

export class Invalidation {
  #rollbackListener: RollbackListener | undefined;
  /** Counted work: readers visited. */
  visited = 0;
  readonly #graph: Graph;
  readonly #agenda: Agenda;
  readonly #gates: Gates;
  readonly #trace: TraceLog;
  readonly #commitTrace: TraceLog;
  readonly #listeners = new Map<Replica, NotificationListener>();
  readonly #detach = new Map<Replica, () => void>();

  constructor(graph: Graph, agenda: Agenda, gates: Gates, trace: TraceTopics) {
    this.#graph = graph;
    this.#agenda = agenda;
    this.#gates = gates;
    this.#trace = trace.invalidate;
    this.#commitTrace = trace.commit;
  }

  set rollbackListener(listener: RollbackListener) {
    this.#rollbackListener = listener;
  }

  /** Listens to a replica; a second call has no effect. */
  attach(replica: Replica): void {
    if (this.#listeners.has(replica)) return;
    const listener: NotificationListener = (notification) => this.#notified(replica, notification);
    this.#listeners.set(replica, listener);
    this.#detach.set(replica, replica.subscribe(listener));
  }

  detach(replica: Replica): void {
    this.#detach.get(replica)?.();
    this.#detach.delete(replica);
    this.#listeners.delete(replica);
  }

  /** The listener of a replica, for a caller that has already reported the changes. */
  listener(replica: Replica): NotificationListener {
    this.attach(replica);
    return this.#listeners.get(replica) as NotificationListener;
  }

  dispose(): void {
    for (const replica of [...this.#detach.keys()]) this.detach(replica);
  }

  #notified(replica: Replica, notification: Notification): void {
    if (notification.kind === "revert") this.#rollbackListener?.rolledBack(replica);
    if (this.#commitTrace.on) this.#noteCommit(replica, notification);
    // Labels first, because the label of a change decides which nodes it may wake.
    for (const { before, after, ...ref } of notification.labels ?? NONE) {
      const index = replica.find(ref)?.attachment as DocumentIndex | undefined;
      if (index !== undefined) this.relabelled(index, before, after);
    }
    for (const ref of notification.unchanged ?? NONE) {
      const index = replica.find(ref)?.attachment as DocumentIndex | undefined;
      if (index !== undefined) this.arrived(index);
    }
    for (const { scope, id, path, before, after } of notification.changes) {
      const index = replica.find({ scope, id })?.attachment as DocumentIndex | undefined;
      if (index === undefined) continue;
      // A document that a resumed node took over may still have its earlier value.
      if (notification.kind === "pull" && before !== undefined) this.arrived(index);
      this.#changedAlong(index, path, before, after, notification.source, notification.changeGroup);
    }
  }

  /** Commits of turns and nodes do not come here; `turns.ts` notes them. */
  #noteCommit({ space }: Replica, { kind, commit }: Notification): void {
    if (commit === undefined) return;
    const because = [`${commit.session} ${commit.localSequence}`];
    this.#commitTrace.note({ node: space, kind: "committed", because, detail: kind });
  }

  /** A change at a path of which only a part may be indexed: readers above it are invalidated. */
  #changedAlong(
    index: DocumentIndex,
    path: readonly string[],
    before: Json | undefined,
    after: Json | undefined,
    source?: object,
    group?: string,
  ): void {
    let address = index.root;
    for (let i = 0; i < path.length; i++) {
      const child: NodeAddress | undefined = address.children?.get(path[i] as string);
      if (child === undefined) {
        const tick = ++this.#graph.tick;
        const keyCameOrWent = i === path.length - 1 && (before === undefined) !== (after === undefined);
        this.#above(address, keyCameOrWent, tick, source, group);
        return;
      }
      address = child;
    }
    this.changed(address, before, after, source, group);
  }

  /** The value at an address has changed. */
  changed(
    address: NodeAddress,
    before: Json | undefined,
    after: Json | undefined,
    source?: object,
    group?: string,
  ): void {
    const tick = ++this.#graph.tick;
    this.#at(address, before, after, tick, source, group);
    const isAlone = address.children === null && address.parent === null;
    if (!isAlone || before === undefined) this.#around(address, before, after, tick, source, group);
  }

  #around(
    address: NodeAddress,
    before: Json | undefined,
    after: Json | undefined,
    tick: number,
    source?: object,
    group?: string,
  ): void {
    const { children, parent, home } = address;
    if (children !== null) this.#below(address, before, after, tick, source, group);
    if (parent !== null) this.#above(parent, (before === undefined) !== (after === undefined), tick, source, group);
    else if (before === undefined) this.arrived(home, group);
  }

  /**
   * A document finished loading. Re-checks each live node that waits for it, or was resumed and read it, even if the
   * document does not exist. A dormant node is compared when it wakes. A resumed node whose output another process
   * replaced must run.
   */
  arrived(index: DocumentIndex, group?: string): void {
    for (const writer of index.writers) if (writer.live && hasForeignOutput(writer)) this.#invalid(writer, index.root);
    if (index.liveAddresses === 0) return;
    for (const edge of linkedEdges(index.root))
      if (isUnverified(edge.node) || edge.node.isWaiting) this.#mark(edge, undefined, group);
  }

  #at(
    address: NodeAddress,
    before: Json | undefined,
    after: Json | undefined,
    tick: number,
    source?: object,
    group?: string,
  ): void {
    const shape = differsShallow(before, after);
    address.stamp = tick;
    if (shape) address.shape = tick;
    for (let edge = address.readers; edge !== null; edge = edge.newer) {
      if (!edge.shallow || shape) this.#mark(edge, source, group);
    }
  }

  #above(from: NodeAddress, keyCameOrWent: boolean, tick: number, source?: object, group?: string): void {
    let shape = keyCameOrWent;
    for (let address: NodeAddress | null = from; address !== null; address = address.parent) {
      address.stamp = tick;
      if (shape) address.shape = tick;
      for (let edge = address.readers; edge !== null; edge = edge.newer) {
        if (!edge.shallow || shape) this.#mark(edge, source, group);
      }
      shape = false;
    }
  }

  #below(
    top: NodeAddress,
    before: Json | undefined,
    after: Json | undefined,
    tick: number,
    source?: object,
    group?: string,
  ): void {
    const open: Comparison[] = [{ address: top, before, after, isBelowLink: false }];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      // Below a link lies the target of the link: its reader must look again, although no value was written here.
      const isBelowLink = at.isBelowLink || isLink(at.before) || isLink(at.after);
      for (const child of (at.address.children as Map<string, NodeAddress>).values()) {
        const old = stepInto(at.before, child.step);
        const now = stepInto(at.after, child.step);
        this.visited++;
        if (!isBelowLink && (Object.is(old, now) || equal(old, now))) continue;
        this.#at(child, old, now, tick, source, group);
        if (child.children !== null) open.push({ address: child, before: old, after: now, isBelowLink });
      }
    }
  }

  /**
   * The labels of a document changed. Invalidates each reader of a place whose label differs. A node with a clearance
   * is invalidated only if the place came into its sight or left it.
   */
  relabelled(
    index: DocumentIndex,
    before: readonly PlaceLabel[],
    after: readonly PlaceLabel[],
    source?: SchedulerNode,
  ): void {
    const tick = ++this.#graph.tick;
    const open: NodeAddress[] = [index.root];
    for (let address = open.pop(); address !== undefined; address = open.pop()) {
      // The stamps make every dormant reader of the document look again.
      address.stamp = tick;
      address.shape = tick;
      for (let edge = address.readers; edge !== null; edge = edge.newer) {
        const { node, shallow } = edge;
        const { path } = address;
        const [old, now] = [labelOfRead(before, path, shallow), labelOfRead(after, path, shallow)];
        if (node !== source && differs(old, now, node.clearance)) this.#invalid(node, address);
      }
      // One by one: spreading a hundred thousand children into a call overflows the stack.
      if (address.children !== null) for (const child of address.children.values()) open.push(child);
    }
  }

  #mark(edge: Edge, source?: object, group?: string): void {
    this.visited++;
    const { node, address: cause } = edge;
    if (node === source || (node.extras !== null && isNotTold(edge, group))) return;
    this.#invalid(node, cause);
  }

  #invalid(node: SchedulerNode, cause: NodeAddress): void {
    if (node.status === "never-ran") {
      if (node.isWaiting) this.#agenda.offer(node);
      return;
    }
    node.status = "invalid";
    addCause(node, cause);
    if (this.#trace.on) this.#trace.note({ node: node.id, kind: "invalidated", because: cause.alone });
    if (node.extras !== null) this.#gates.invalidated(node);
    this.#agenda.offer(node);
  }
}

function isNotTold({ node, address, shallow }: Edge, group: string | undefined): boolean {
  if (node.changeGroup !== undefined && node.changeGroup === group) return true;
  // A node must not wake because of a change above its clearance, since waking would reveal the change.
  return node.clearance !== undefined && !isWithin(labelSeen(address, shallow), node.clearance);
}

/** Whether a reader with this clearance (undefined: with every one) notices the change of a label. */
function differs(before: Label, after: Label, clearance: Label | undefined): boolean {
  if (clearance !== undefined) return isWithin(before, clearance) !== isWithin(after, clearance);
  return !isWithin(before, after) || !isWithin(after, before);
}

function isLink(value: Json | undefined): boolean {
  return typeof value === "object" && value !== null && Object.hasOwn(value, LINK_KEY);
}

function stepInto(value: Json | undefined, step: string): Json | undefined {
  return typeof value === "object" && value !== null ? childAt(value, step) : undefined;
}

/**
 * Whether a shallow read tells the two values apart: links by their target, containers by kind, length and keys,
 * scalars by value.
 */
export function differsShallow(before: Json | undefined, after: Json | undefined): boolean {
  if (typeof before !== "object" || typeof after !== "object") return before !== after;
  return before !== after && differsInShape(before, after);
}

function differsInShape(before: Json, after: Json): boolean {
  if (Array.isArray(before) && Array.isArray(after)) return before.length !== after.length;
  if (!isJsonObject(before) || !isJsonObject(after)) return true;
  if (asLink(before) !== undefined || asLink(after) !== undefined) return !equal(before, after);
  const keys = Object.keys(before);
  return keys.length !== Object.keys(after).length || keys.some((key) => !Object.hasOwn(after, key));
}
