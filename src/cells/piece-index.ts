/**
 * The index of a space's pieces: every piece that was started and not stopped, with its pattern, its owner and the
 * pieces that it owns. Only the index decides which pieces exist: a process resumes the pieces in it, and stops a piece
 * whose entry is removed. Nested pieces are built by the pieces they belong to and have no entry. SPEC: P2, P4, P6, P7,
 * P9.
 *
 * It has one document for each bucket, with the pieces whose ids hash to it. So a start copies and stores a few of ten
 * thousand entries, and no backend has to list documents. From the first use on all of them stay loaded, because
 * synchronous code reads the index.
 */
import type { Json } from "../message/json.ts";
import type { NodeAddress } from "../scheduler/node.ts";
import type { Change, Notification } from "../store/change.ts";
import { SHARED_SCOPE } from "../store/document.ts";
import type { BaseSpace } from "./base-space.ts";
import type { Cell } from "./cell.ts";
import { PieceError } from "./piece-inputs.ts";

/** Documents of the index. Files depend on it: with another number, existing pieces are not found. */
const BUCKETS = 256;
/** The whole index, as versions before the buckets wrote it; and the prefix of the buckets. */
const UNDIVIDED = "millrace/pieces";
const BUCKET_PREFIX = `${UNDIVIDED}/`;

/** The entry of a piece. */
export type PieceEntry = {
  /** The name of its pattern. */
  readonly pattern: string;
  /** The piece that launched it in a handler. It stops with that piece. */
  readonly owner?: string;
  /** The pieces that it has launched. */
  readonly owns: Readonly<Record<string, true>>;
};

export type PieceEntries = Readonly<Record<string, PieceEntry>>;

/** An entry as versions before the buckets wrote it. */
type UndividedEntry = Omit<PieceEntry, "owns">;

export class PieceIndex {
  readonly #space: BaseSpace;
  readonly #buckets: (Cell<PieceEntries | undefined> | undefined)[] = new Array(BUCKETS).fill(undefined);
  #ready: Promise<void> | undefined;

  constructor(space: BaseSpace) {
    this.#space = space;
  }

  /** Resolves when the index is loaded; it stays loaded. */
  ready(): Promise<void> {
    this.#ready ??= this.#bring().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }

  async #bring(): Promise<void> {
    const buckets = Array.from({ length: BUCKETS }, (_, at) => this.#bucket(at).address.document);
    await this.#space.replica(this.#space.name).load([...buckets, { scope: SHARED_SCOPE, id: UNDIVIDED }]);
    await this.#space.transact(() => this.#divide());
  }

  /** Converts the index of an older version. */
  #divide(): void {
    const undivided = this.#space.cell<Readonly<Record<string, UndividedEntry>>>(UNDIVIDED);
    const entries = Object.entries(undivided.get() ?? {});
    if (entries.length === 0) return;
    const owned = Map.groupBy(entries, ([, { owner }]) => owner);
    for (const [id, entry] of entries) {
      const owns = Object.fromEntries((owned.get(id) ?? []).map(([other]) => [other, true] as const));
      this.#put(id, { ...entry, owns });
    }
    undivided.delete();
  }

  /** Resolves when it is loaded with all commits of other processes until now. */
  async catchUp(): Promise<void> {
    await this.#space.replica(this.#space.name).catchUp();
    await this.ready();
  }

  /** All entries, by id. */
  async pull(): Promise<PieceEntries> {
    await this.ready();
    const all = this.#buckets.flatMap((bucket) => Object.entries((bucket?.address.value ?? {}) as PieceEntries));
    return Object.fromEntries(all.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** In the state of this process, with unconfirmed commits. Registers no read. */
  has(id: string, pattern?: string): boolean {
    const entry = this.#known(id);
    return entry !== undefined && (pattern === undefined || entry.pattern === pattern);
  }

  #known(id: string): PieceEntry | undefined {
    return entryIn(this.#bucketOf(id).address.value, id);
  }

  /** The pattern of a piece with an entry. Registers a read of that only. */
  patternOf(id: string): string | undefined {
    return this.#space.scheduler.parts.runner.read(this.#placeOf(id).child("pattern")) as string | undefined;
  }

  /** A piece keeps its first owner: a second launch only changes its inputs. */
  enter(id: string, pattern: string, owner?: string): void {
    const stored = this.patternOf(id);
    if (stored === pattern) return;
    if (stored !== undefined) {
      throw new PieceError(
        "PIECE_OTHER_PATTERN",
        `"${id}" is a piece of pattern "${stored}"; stop it before a piece of "${pattern}" takes its id`,
      );
    }
    this.#put(id, owner === undefined ? { pattern, owns: {} } : { pattern, owner, owns: {} });
    // A concurrent stop of the owner removes this place, so one of the two commits is stale.
    if (owner !== undefined) this.#space.scheduler.parts.runner.write(this.#ownedBy(owner).child(id), true);
  }

  /** Only the commit that creates a bucket depends on its absence, so concurrent starts do not conflict. */
  #put(id: string, entry: PieceEntry): void {
    const bucket = this.#bucketOf(id);
    if (bucket.address.value !== undefined) this.#space.scheduler.parts.runner.write(this.#placeOf(id), entry);
    else bucket.set({ ...bucket.get(), [id]: entry });
  }

  /** Removes a piece and the pieces that it owns. Reads their entries, so that a concurrent launch by one conflicts. */
  leave(id: string): void {
    const { scheduler } = this.#space;
    const read = (one: string) => scheduler.parts.runner.read(this.#placeOf(one)) as PieceEntry | undefined;
    const owner = read(id)?.owner;
    for (const one of withOwned(id, read)) if (read(one) !== undefined) scheduler.erase(this.#placeOf(one));
    if (owner !== undefined && this.patternOf(owner) !== undefined) scheduler.erase(this.#ownedBy(owner).child(id));
  }

  /** A piece and the pieces that it owns, in the state of this process. */
  withOwned(id: string): Iterable<string> {
    return withOwned(id, (one) => this.#known(one));
  }

  /** Calls back with pieces that other processes have removed. The returned function unsubscribes. */
  onOthers(listener: (id: string) => void): () => void {
    return this.#space.replica(this.#space.name).subscribe(({ kind, changes }: Notification) => {
      if (kind !== "integrate" && kind !== "pull") return;
      for (const change of changes) {
        if (change.scope !== SHARED_SCOPE || !change.id.startsWith(BUCKET_PREFIX)) continue;
        for (const id of takenOut(change)) listener(id);
      }
    });
  }

  #placeOf(id: string): NodeAddress {
    return this.#bucketOf(id).address.child(id);
  }

  #ownedBy(id: string): NodeAddress {
    return this.#placeOf(id).child("owns");
  }

  #bucketOf(id: string): Cell<PieceEntries | undefined> {
    return this.#bucket(bucketOf(id));
  }

  #bucket(at: number): Cell<PieceEntries | undefined> {
    const known = this.#buckets[at];
    if (known !== undefined) return known;
    const bucket = this.#space.cell<PieceEntries>(`${BUCKET_PREFIX}${at}`);
    bucket.address.hold();
    this.#buckets[at] = bucket;
    return bucket;
  }
}

/** FNV-1a of the id, folded. Stored, like the number of buckets. */
function bucketOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  return (hash ^ (hash >>> 16)) & (BUCKETS - 1);
}

function entryIn(bucket: Json | undefined, id: string): PieceEntry | undefined {
  const entries = (bucket ?? {}) as PieceEntries;
  return Object.hasOwn(entries, id) ? entries[id] : undefined;
}

/** The ids that are not in the index after a change of a bucket, and were before. */
function takenOut({ path, before, after }: Change): string[] {
  const [id] = path;
  if (id !== undefined) return path.length === 1 && after === undefined ? [id] : [];
  return Object.keys(before ?? {}).filter((one) => entryIn(after, one) === undefined);
}

/** A piece and all that it owns, those that they own too. */
function withOwned(id: string, entryOf: (id: string) => PieceEntry | undefined): Set<string> {
  const all = new Set([id]);
  for (const one of all) for (const other of Object.keys(entryOf(one)?.owns ?? {})) all.add(other);
  return all;
}
