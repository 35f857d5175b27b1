/**
 * The change channel (Scheduler v2 §6): every change of a document, whoever made it, passes through `changed`, which stamps the
 * addresses it touches and marks their live readers invalid. Nothing transitive happens here: what a reader's run changes
 * comes through the same channel.
 *
 * What a change at path P means for an address:
 * - at P: a deep reader always; a shallow one if kind, key set, length, link or scalar differ;
 * - above P: deep readers always; the shallow ones of P's parent if a key came or went;
 * - below P: as at P, with the values on either side at that place; equal subtrees are not entered.
 *
 * Equality is structural. A value that is reached on neither side is undefined on both and has not changed: the reader would see
 * the same (0006 says where this differs from the design, and why).
 */
import { equal } from "../message/equality.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import type { Notification, NotificationListener } from "../store/change.ts";
import { asLink, LINK_KEY } from "../store/document.ts";
import { NONE } from "../store/few.ts";
import { isWithin, type Label, labelOfRead, type PlaceLabel } from "../store/label.ts";
import { childOf } from "../store/patch.ts";
import type { Replica } from "../store/replica.ts";
import type { Address, DocumentIndex } from "./address.ts";
import { labelSeen } from "./address-label.ts";
import type { Agenda } from "./agenda.ts";
import { addCause } from "./causes.ts";
import type { Gates } from "./gates.ts";
import type { Graph } from "./graph.ts";
import { linkedEdges } from "./graph-walk.ts";
import type { Edge, SchedulerNode } from "./node.ts";
import { hasForeignOutput, isUnverified } from "./node-record.ts";
import type { Trace, TraceLog } from "./trace.ts";

/** A place below a change, with its values on either side. */
interface Comparison {
  readonly address: Address;
  readonly before: Json | undefined;
  readonly after: Json | undefined;
  readonly isBelowLink: boolean;
}

/** Hears that commits of a replica have fallen, before those who made them do. */
export interface FallListener {
  fell(replica: Replica): void;
}

export class Invalidation {
  #falls: FallListener | undefined;
  /** Counted work: readers looked at. */
  visited = 0;
  readonly #graph: Graph;
  readonly #agenda: Agenda;
  readonly #gates: Gates;
  readonly #trace: TraceLog;
  readonly #commitTrace: TraceLog;
  readonly #listeners = new Map<Replica, NotificationListener>();
  readonly #detach = new Map<Replica, () => void>();

  constructor(graph: Graph, agenda: Agenda, gates: Gates, trace: Trace) {
    this.#graph = graph;
    this.#agenda = agenda;
    this.#gates = gates;
    this.#trace = trace.invalidate;
    this.#commitTrace = trace.commit;
  }

  set falls(listener: FallListener) {
    this.#falls = listener;
  }

  /** Listens to a replica; asking twice is fine. */
  attach(replica: Replica): void {
    if (this.#listeners.has(replica)) return;
    const listener: NotificationListener = (notification) => this.#notified(replica, notification);
    this.#listeners.set(replica, listener);
    this.#detach.set(replica, replica.subscribe(listener));
  }

  /** Listens no longer. */
  detach(replica: Replica): void {
    this.#detach.get(replica)?.();
    this.#detach.delete(replica);
    this.#listeners.delete(replica);
  }

  /** The listener of a replica, for whoever has told the changes directly already. */
  listener(replica: Replica): NotificationListener {
    this.attach(replica);
    return this.#listeners.get(replica) as NotificationListener;
  }

  dispose(): void {
    for (const replica of [...this.#detach.keys()]) this.detach(replica);
  }

  #notified(replica: Replica, notification: Notification): void {
    if (notification.kind === "revert") this.#falls?.fell(replica);
    if (this.#commitTrace.on) this.#noteCommit(replica, notification);
    // Labels first: what a change is labelled with now decides whom it may wake.
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
      // A document that a resumed node has taken over may still show its value of before.
      if (notification.kind === "pull" && before !== undefined) this.arrived(index);
      this.#changedAlong(index, path, before, after, notification.source, notification.changeGroup);
    }
  }

  /** Commits of turns and nodes do not pass here; `turns.ts` notes them. */
  #noteCommit({ space }: Replica, { kind, commit }: Notification): void {
    if (commit === undefined) return;
    const because = [`${commit.session} ${commit.localSequence}`];
    this.#commitTrace.note({ node: space, kind: "committed", because, detail: kind });
  }

  /** A change at a path that may be known only part of the way: whoever reads above it is told. */
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
      const child: Address | undefined = address.children?.get(path[i] as string);
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
  changed(address: Address, before: Json | undefined, after: Json | undefined, source?: object, group?: string): void {
    const tick = ++this.#graph.tick;
    this.#at(address, before, after, tick, source, group);
    const isAlone = address.children === null && address.parent === null;
    if (!isAlone || before === undefined) this.#around(address, before, after, tick, source, group);
  }

  #around(
    address: Address,
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
   * A document finished loading. Every node that waits for it, or was resumed and read it, hears of it, also if it does not exist;
   * a dormant one is compared when it wakes. A resumed node whose output another process has replaced must run.
   */
  arrived(index: DocumentIndex, group?: string): void {
    for (const writer of index.writers) if (writer.live && hasForeignOutput(writer)) this.#invalid(writer, index.root);
    if (index.liveAddresses === 0) return;
    for (const edge of linkedEdges(index.root))
      if (isUnverified(edge.node) || edge.node.isWaiting) this.#mark(edge, undefined, group);
  }

  #at(
    address: Address,
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

  #above(from: Address, keyCameOrWent: boolean, tick: number, source?: object, group?: string): void {
    let shape = keyCameOrWent;
    for (let address: Address | null = from; address !== null; address = address.parent) {
      address.stamp = tick;
      if (shape) address.shape = tick;
      for (let edge = address.readers; edge !== null; edge = edge.newer) {
        if (!edge.shallow || shape) this.#mark(edge, source, group);
      }
      shape = false;
    }
  }

  #below(
    top: Address,
    before: Json | undefined,
    after: Json | undefined,
    tick: number,
    source?: object,
    group?: string,
  ): void {
    const open: Comparison[] = [{ address: top, before, after, isBelowLink: false }];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      // Below a link lies what it leads to: a reader there has to look again, though nothing is written here.
      const isBelowLink = at.isBelowLink || isLink(at.before) || isLink(at.after);
      for (const child of (at.address.children as Map<string, Address>).values()) {
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
   * A document is labelled otherwise. Whoever reads a place of which the label is another is invalid; a node with a clearance only if
   * the place came into its sight or went out of it, since all else is none of its business.
   */
  relabelled(
    index: DocumentIndex,
    before: readonly PlaceLabel[],
    after: readonly PlaceLabel[],
    source?: SchedulerNode,
  ): void {
    const tick = ++this.#graph.tick;
    const open: Address[] = [index.root];
    for (let address = open.pop(); address !== undefined; address = open.pop()) {
      // Dormant readers of the document look again, whichever place it was.
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
    if (node === source || (node.particulars !== null && isNotTold(edge, group))) return;
    this.#invalid(node, cause);
  }

  #invalid(node: SchedulerNode, cause: Address): void {
    if (node.status === "never-ran") {
      if (node.isWaiting) this.#agenda.offer(node);
      return;
    }
    node.status = "invalid";
    addCause(node, cause);
    if (this.#trace.on) this.#trace.note({ node: node.id, kind: "invalidated", because: cause.alone });
    if (node.particulars !== null) this.#gates.invalidated(node);
    this.#agenda.offer(node);
  }
}

function isNotTold({ node, address, shallow }: Edge, group: string | undefined): boolean {
  if (node.changeGroup !== undefined && node.changeGroup === group) return true;
  // A change that it may not know of must not show in its being woken.
  return node.clearance !== undefined && !isWithin(labelSeen(address, shallow), node.clearance);
}

/** Whether a reader with this clearance, or with every one, notices that a place is labelled otherwise. */
function differs(before: Label, after: Label, clearance: Label | undefined): boolean {
  if (clearance !== undefined) return isWithin(before, clearance) !== isWithin(after, clearance);
  return !isWithin(before, after) || !isWithin(after, before);
}

function isLink(value: Json | undefined): boolean {
  return typeof value === "object" && value !== null && Object.hasOwn(value, LINK_KEY);
}

function stepInto(value: Json | undefined, step: string): Json | undefined {
  return typeof value === "object" && value !== null ? childOf(value, step) : undefined;
}

/** Whether a shallow read tells the two apart: links as a whole, containers by kind, length and keys, the rest by value. */
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
