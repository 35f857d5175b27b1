/**
 * The index of a space's pieces: the document `millrace/pieces` names every piece that was started and not stopped, with its pattern and
 * its owner. It alone says which pieces live: a process takes them up by it, and lets go of one whose entry somebody has taken out.
 * Nested pieces are built by the pieces they belong to and are not in it. SPEC: P2, P4, P6, P7.
 */
import type { Json } from "../message/json.ts";
import type { Notification } from "../store/change.ts";
import { SHARED_SCOPE } from "../store/document.ts";
import type { Cell } from "./cell.ts";
import { PieceError } from "./pattern.ts";
import type { Space } from "./space.ts";

export const PIECES_DOCUMENT = "millrace/pieces";

/** What the index says of a piece: the name of its pattern, and the piece whose handler launched it and with which it stops. */
export type PieceEntry = { readonly pattern: string; readonly owner?: string };

export type PieceEntries = Readonly<Record<string, PieceEntry>>;

export class PieceIndex {
  readonly #space: Space;
  readonly #cell: Cell<PieceEntries>;

  constructor(space: Space) {
    this.#space = space;
    this.#cell = space.cell(PIECES_DOCUMENT);
    // Who lives is asked at any time, by code that cannot wait.
    this.#cell.address.hold();
  }

  pull(): Promise<PieceEntries | undefined> {
    return this.#cell.pull();
  }

  /** Resolves when it is here with what others have committed by now. */
  async catchUp(): Promise<void> {
    await this.#space.replica(this.#space.name).catchUp();
    await this.pull();
  }

  /** As it is known here now, with what is on its way; no read of whoever asks. */
  has(id: string, pattern?: string): boolean {
    const entry = ownEntry(this.#cell.address.value, id);
    return entry !== undefined && (pattern === undefined || entry.pattern === pattern);
  }

  /** A read of this entry alone. */
  entry(id: string): PieceEntry | undefined {
    return this.#space.scheduler.read(this.#cell.address.child(id)) as PieceEntry | undefined;
  }

  /** A piece keeps the owner that it was entered with: who launches it again only gives it other inputs. */
  enter(id: string, entry: PieceEntry): void {
    this.#requireSamePattern(id, entry.pattern);
    if (this.entry(id) !== undefined) return;
    // Only whoever makes the index rests on there being none: pieces that start at once do not stand in each other's way.
    const { address } = this.#cell;
    if (address.value !== undefined) this.#space.scheduler.write(address.child(id), entry);
    else this.#cell.set({ ...this.#cell.get(), [id]: entry });
  }

  /** Takes a piece out, and what it owns. Rests on the whole index: what is launched meanwhile may belong to it. */
  leave(id: string): void {
    const entries = this.#cell.get() ?? {};
    for (const one of withOwned(entries, id)) {
      if (Object.hasOwn(entries, one)) this.#space.scheduler.erase(this.#cell.address.child(one));
    }
  }

  /** A piece and what it owns, as far as is known here. */
  withOwned(id: string): Iterable<string> {
    return withOwned((this.#cell.address.value ?? {}) as PieceEntries, id);
  }

  /** Tells of ids that others may have taken out; undefined stands for any. Call what is returned to hear no more. */
  onOthers(listener: (id: string | undefined) => void): () => void {
    return this.#space.replica(this.#space.name).subscribe(({ kind, changes }: Notification) => {
      if (kind !== "integrate" && kind !== "pull") return;
      for (const { id, scope, path, after } of changes) {
        if (id === PIECES_DOCUMENT && scope === SHARED_SCOPE && (after === undefined || path.length === 0))
          listener(path[0]);
      }
    });
  }

  #requireSamePattern(id: string, wanted: string): void {
    const stored = this.entry(id)?.pattern;
    if (stored === undefined || stored === wanted) return;
    throw new PieceError(
      "PIECE_OTHER_PATTERN",
      `"${id}" is a piece of pattern "${stored}"; stop it before a piece of "${wanted}" takes its id`,
    );
  }
}

function ownEntry(index: Json | undefined, id: string): PieceEntry | undefined {
  const entries = (index ?? {}) as PieceEntries;
  return Object.hasOwn(entries, id) ? entries[id] : undefined;
}

/** A piece and all that it owns, those that they own too. */
function withOwned(entries: PieceEntries, id: string): Set<string> {
  const all = new Set([id]);
  const owned = Map.groupBy(Object.entries(entries), ([, { owner }]) => owner);
  for (const one of all) for (const [other] of owned.get(one) ?? []) all.add(other);
  return all;
}
