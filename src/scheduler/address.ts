/**
 * Interned addresses: one object per path that somebody reads or holds, in a trie per document. Comparing two addresses is
 * comparing pointers, and a change at a path finds its readers by walking up to the root and down the trie, never
 * over the readers of other paths.
 *
 * Who holds on to what. A read that a node has registered (`edges`) and a node that writes hold the document, which then stays here. A cell
 * holds nothing: its address goes with the document, or by itself when there are too many in one document that nobody reads at. It is
 * `gone` then, and the cell finds its place again (`Documents.again`). Both happen only between two stretches of code, so an address
 * that was asked for is good until its user lets go of the thread.
 *
 * Each address carries the two stamps by which dormant readers are verified: `stamp` moves when the value here (deep) changes,
 * `shape` when what a shallow read sees changes. Live readers stand in the list and are told at once.
 */
import { ADDRESSES_UNREAD_MAX } from "../limits.ts";
import type { Json } from "../message/json.ts";
import { type Path, pathText } from "../message/path.ts";
import { childOf } from "../store/patch.ts";
import type { Replica } from "../store/replica.ts";
import type { Attachment, ReplicaDocument } from "../store/replica-document.ts";
import type { Edge, SchedulerNode } from "./node.ts";

const ROOT: Path = Object.freeze([]);
const NO_WRITERS: readonly SchedulerNode[] = Object.freeze([]);

/** A document as the scheduler knows it: the root of its addresses, who writes it, at how many of them live nodes read. */
export class DocumentIndex implements Attachment {
  readonly replica: Replica;
  readonly document: ReplicaDocument;
  readonly root: Address;
  /** Nodes that have the document among their outputs; usually one or none. */
  writers: readonly SchedulerNode[] = NO_WRITERS;
  /** The graph's tick at the last read of plain code that brought the document up to date; see `outside-reads.ts`. */
  lookedAt = 0;
  /** Addresses in the trie at which live nodes read; while there are none, there is nobody to look for. */
  liveAddresses = 0;
  /** The unit that wrote here last, and the one level at which it did; -1 when it wrote at several. See `write-unit.ts`. */
  turn = 0;
  turnLevel = -1;
  /** Addresses that may still be made before those are looked for that nobody reads at. */
  #room = ADDRESSES_UNREAD_MAX;
  /** Addresses by which streams are found: they stay, though nobody reads at them. */
  #ofStreams: Set<Address> | undefined;

  constructor(replica: Replica, document: ReplicaDocument) {
    this.replica = replica;
    this.document = document;
    this.root = new Address(this, null, "");
  }

  /** The computation whose result this document is. */
  get computation(): SchedulerNode | undefined {
    return this.writers.find(({ output }) => output?.home === this);
  }

  /** An address was made. */
  made(): void {
    if (this.#room-- === 0) this.replica.whenUnused(() => this.#sweep());
  }

  /** A stream is found by this address: it stays, and so does the document. */
  addStream(address: Address): void {
    this.#ofStreams ??= new Set();
    this.#ofStreams.add(address);
    address.hold();
  }

  removeStream(address: Address): void {
    if (this.#ofStreams?.delete(address)) address.letGo();
  }

  /** The document is not the replica's any more: all of them lead nowhere. */
  dropped(): void {
    for (const address of this.#outwards()) address.gone = true;
  }

  /** Forgets the addresses at which, and below which, nobody reads. */
  #sweep(): void {
    let kept = 0;
    for (const address of this.#outwards().reverse()) {
      const isNeeded = address.edges > 0 || this.#ofStreams?.has(address);
      if (isNeeded || address.children !== null || address.parent === null) kept++;
      else address.forget();
    }
    // As many again as there are: an address is looked at once or twice in its life.
    this.#room = Math.max(ADDRESSES_UNREAD_MAX, kept);
  }

  /** All of them, each before those below it. */
  #outwards(): Address[] {
    const all = [this.root];
    for (const { children } of all) if (children !== null) for (const child of children.values()) all.push(child);
    return all;
  }
}

export class Address {
  // First what every read and every change looks at, so that it is fetched together.
  /** The home's, one step nearer: every read and every output goes there. */
  readonly document: ReplicaDocument;
  readonly parent: Address | null;
  /** Nobody keeps it any more: whoever reads here now is told by another. */
  gone = false;
  /** The run that logged a deep read here last, so that reading twice in one run costs one comparison. */
  deepRun = 0;
  /** Live readers, the oldest of them; changes are told in the order in which readers came, which is mostly the order to run. */
  readers: Edge | null = null;
  /** The graph's tick at the last change of the value here, deep. */
  stamp = 0;
  /** The graph's tick at the last change that a shallow read here would see. */
  shape = 0;
  children: Map<string, Address> | null = null;
  readonly home: DocumentIndex;
  readonly step: string;
  /** Steps from the root; 0 for the root itself. */
  readonly level: number;
  /** The unit that wrote here last, and the index of its record; see `write-unit.ts`. */
  turn = 0;
  turnRecord = 0;
  shallowRun = 0;
  /** Edges of any node, live or dormant; while there are some, here or below, the address stays, and so does the document. */
  edges = 0;
  #alone: readonly Address[] | undefined;

  constructor(home: DocumentIndex, parent: Address | null, step: string) {
    this.home = home;
    this.document = home.document;
    this.parent = parent;
    this.step = step;
    this.level = parent === null ? 0 : parent.level + 1;
  }

  /** The list of this address alone, made once: for nodes of which it is the only cause, or the only output. */
  get alone(): readonly Address[] {
    this.#alone ??= [this];
    return this.#alone;
  }

  /** The address one step down, made if nobody knew it yet. */
  child(step: string): Address {
    this.children ??= new Map();
    let child = this.children.get(step);
    if (child === undefined) {
      child = new Address(this.home, this, step);
      this.children.set(step, child);
      this.home.made();
    }
    return child;
  }

  at(path: Path): Address {
    let address: Address = this;
    for (const step of path) address = address.child(step);
    return address;
  }

  get path(): Path {
    if (this.parent === null) return ROOT;
    const path: string[] = [];
    for (let address: Address = this; address.parent !== null; address = address.parent) path.push(address.step);
    return path.reverse();
  }

  /** The current value, as it lies in the document. */
  get value(): Json | undefined {
    return this.parent === null ? this.document.value : valueBelow(this.parent, this.step);
  }

  /** One more needs the document to be here, as long as it does not say otherwise. */
  hold(): void {
    this.document.observers++;
  }

  letGo(): void {
    this.document.observers--;
  }

  forget(): void {
    const { parent, step } = this;
    this.gone = true;
    parent?.children?.delete(step);
    if (parent?.children?.size === 0) parent.children = null;
  }

  /** For people: `space/document/path`. */
  toString(): string {
    const { scope, id } = this.home.document;
    const document = scope === "space" ? id : `${scope}:${id}`;
    return this.parent === null ? document : `${document} ${pathText(this.path)}`;
  }
}

function valueBelow({ parent, document, step: ownStep }: Address, step: string): Json | undefined {
  const container = parent === null ? document.value : valueBelow(parent, ownStep);
  return typeof container === "object" && container !== null ? childOf(container, step) : undefined;
}
