/**
 * Interned addresses: one object per path that a node reads or a cell holds, in a trie per document. Two addresses are
 * equal if they are the same object. A change at a path finds its readers by walking up to the root and down the trie.
 *
 * Lifetime: a registered read (`edges`) and a writing node hold the document, so it stays loaded. A cell does not hold
 * it: its address is removed with the document, or when a document has too many addresses without readers. Then `gone`
 * is set, and the cell finds its place again with `Documents.again`. Both happen between tasks, so an address is valid
 * until its user yields.
 *
 * Dormant readers are verified by two stamps: `stamp` moves when the value at the address changes (deep), `shape` when
 * the result of a shallow read changes. Live readers are in the list and are invalidated at once.
 *
 * The trie does not use its readers (`R`) and writers (`W`); `node.ts` defines both, and the types `Address` and
 * `DocumentIndex`.
 */
import { ADDRESSES_UNREAD_MAX } from "../limits.ts";
import type { Json } from "../message/json.ts";
import { type Path, pathText } from "../message/path.ts";
import { childAt } from "../store/patch.ts";
import type { Replica } from "../store/replica.ts";
import type { Attachment, ReplicaDocument } from "../store/replica-document.ts";

const ROOT: Path = Object.freeze([]);
const NO_WRITERS: readonly never[] = Object.freeze([]);

/**
 * The scheduler's record of a document: its address trie, its writers, and the number of addresses with live readers.
 */
export class DocumentTrie<R, W> implements Attachment {
  readonly replica: Replica;
  readonly document: ReplicaDocument;
  readonly root: TrieAddress<R, W>;
  /** Nodes with the document among their outputs; usually none or one. */
  writers: readonly W[] = NO_WRITERS;
  /** The graph's tick at the last plain read that brought the document up to date; see `outside-reads.ts`. */
  upToDateAt = 0;
  /** Addresses with live readers; while there are none, a change need not search the trie. */
  liveAddresses = 0;
  /**
   * The last unit that wrote here, and the level of its writes; -1 if it wrote at several levels. See `write-unit.ts`.
   */
  turn = 0;
  turnLevel = -1;
  /** Addresses that may still be added before the next sweep of addresses without readers. */
  #room = ADDRESSES_UNREAD_MAX;
  /** Addresses of streams: a sweep keeps them. */
  #ofStreams: Set<TrieAddress<R, W>> | undefined;

  constructor(replica: Replica, document: ReplicaDocument) {
    this.replica = replica;
    this.document = document;
    this.root = new TrieAddress(this, null, "");
  }

  added(): void {
    if (this.#room-- === 0) this.replica.whenUnused(() => this.#sweep());
  }

  /** Keeps the address of a stream, and its document. */
  addStream(address: TrieAddress<R, W>): void {
    this.#ofStreams ??= new Set();
    this.#ofStreams.add(address);
    address.hold();
  }

  removeStream(address: TrieAddress<R, W>): void {
    if (this.#ofStreams?.delete(address)) address.letGo();
  }

  /** The replica has dropped the document: none of its addresses is valid. */
  dropped(): void {
    for (const address of this.#outwards()) address.gone = true;
  }

  /** Removes the addresses without readers at or below them. */
  #sweep(): void {
    let kept = 0;
    for (const address of this.#outwards().reverse()) {
      const isNeeded = address.edges > 0 || this.#ofStreams?.has(address);
      if (isNeeded || address.children !== null || address.parent === null) kept++;
      else address.forget();
    }
    // The room is at least the number of kept addresses, so that sweeping costs a constant per address.
    this.#room = Math.max(ADDRESSES_UNREAD_MAX, kept);
  }

  /** All addresses, each before its children. */
  #outwards(): TrieAddress<R, W>[] {
    const all = [this.root];
    for (const { children } of all) if (children !== null) for (const child of children.values()) all.push(child);
    return all;
  }
}

export class TrieAddress<R, W> {
  // The fields that every read and change use come first, so that they share a cache line.
  /** A copy of `home.document`, which saves a step in every read. */
  readonly document: ReplicaDocument;
  readonly parent: TrieAddress<R, W> | null;
  /** Removed from the trie: new reads use another object. */
  gone = false;
  /** The last run that logged a deep read here, so that a second read in the same run costs one comparison. */
  deepRun = 0;
  /** Live readers, oldest first. They are invalidated in that order, which is mostly the order of their runs. */
  readers: R | null = null;
  /** The graph's tick at the last change of the value here, deep. */
  stamp = 0;
  /** The graph's tick at the last change that a shallow read sees. */
  shape = 0;
  children: Map<string, TrieAddress<R, W>> | null = null;
  readonly home: DocumentTrie<R, W>;
  readonly step: string;
  /** Steps from the root, which has 0. */
  readonly level: number;
  /** The last unit that wrote here, and the index of its record; see `write-unit.ts`. */
  turn = 0;
  turnRecord = 0;
  shallowRun = 0;
  /**
   * Reads by live and dormant nodes; while there are any at or below the address, it stays, and so does the document.
   */
  edges = 0;
  #alone: readonly TrieAddress<R, W>[] | undefined;

  constructor(home: DocumentTrie<R, W>, parent: TrieAddress<R, W> | null, step: string) {
    this.home = home;
    this.document = home.document;
    this.parent = parent;
    this.step = step;
    this.level = parent === null ? 0 : parent.level + 1;
  }

  /** A cached list with this address only, for nodes with one cause or one output. */
  get alone(): readonly TrieAddress<R, W>[] {
    this.#alone ??= [this];
    return this.#alone;
  }

  /** The address one step down, created if needed. */
  child(step: string): TrieAddress<R, W> {
    this.children ??= new Map();
    let child = this.children.get(step);
    if (child === undefined) {
      child = new TrieAddress(this.home, this, step);
      this.children.set(step, child);
      this.home.added();
    }
    return child;
  }

  at(path: Path): TrieAddress<R, W> {
    let address: TrieAddress<R, W> = this;
    for (const step of path) address = address.child(step);
    return address;
  }

  get path(): Path {
    if (this.parent === null) return ROOT;
    const path: string[] = [];
    for (let address: TrieAddress<R, W> = this; address.parent !== null; address = address.parent)
      path.push(address.step);
    return path.reverse();
  }

  get value(): Json | undefined {
    return this.parent === null ? this.document.value : valueBelow(this.parent, this.step);
  }

  /** Keeps the document loaded until `letGo`. */
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

  /** For error messages: `document path`. */
  toString(): string {
    const { scope, id } = this.home.document;
    const document = scope === "space" ? id : `${scope}:${id}`;
    return this.parent === null ? document : `${document} ${pathText(this.path)}`;
  }
}

function valueBelow(
  { parent, document, step: ownStep }: TrieAddress<unknown, unknown>,
  step: string,
): Json | undefined {
  const container = parent === null ? document.value : valueBelow(parent, ownStep);
  return typeof container === "object" && container !== null ? childAt(container, step) : undefined;
}
