/**
 * The pieces of a space that run in this process: starting, launching, resuming and stopping them. The document `millrace/pieces`
 * names every piece that was started and not stopped, with its pattern and its owner, so that a process that opens the space can take
 * them up again; nested pieces are built by the pieces they belong to and are not in it. SPEC: P2, P4, P6, P7.
 */
import type { Cell } from "./cell.ts";
import { type Pattern, PieceError, type PieceInputs, type PieceParts, requireInputs, storedInputs } from "./pattern.ts";
import { type Launched, type Launcher, type LaunchOptions, Piece, type PieceHome, recordOf } from "./piece.ts";
import type { Space } from "./space.ts";

export const PIECES_DOCUMENT = "millrace/pieces";

/** What the index says of a piece. */
interface Entry {
  readonly pattern: string;
  /** The piece whose handler launched it, and with which it stops. */
  readonly owner?: string;
}

export interface RunOptions {
  /** What the piece is called; a piece of this id that was started before is taken up again. A new id unless given. */
  readonly id?: string;
}

export interface Resumed {
  readonly pieces: readonly Piece[];
  /** Pieces that wait for a pattern that was not given, or whose pattern failed; they stay as they are stored. */
  readonly left: readonly { readonly id: string; readonly pattern: string; readonly reason: string }[];
}

export class Pieces implements PieceHome, Launcher {
  readonly space: Space;
  readonly #index: Cell<Readonly<Record<string, Entry>>>;
  readonly #running = new Map<string, Piece>();

  constructor(space: Space) {
    this.space = space;
    this.#index = space.cell(PIECES_DOCUMENT);
  }

  get launcher(): Launcher {
    return this;
  }

  get running(): ReadonlyMap<string, Piece> {
    return this.#running;
  }

  /** Resolves when the start is durable. What was stored under the id is taken up again, with these inputs. */
  async start<Inputs extends object, Parts extends PieceParts>(
    pattern: Pattern<Inputs, Parts>,
    inputs: PieceInputs<Inputs>,
    id: string,
  ): Promise<Piece<Parts>> {
    requireInputs(pattern, inputs);
    const record = recordOf<Inputs>(this.space, id);
    await Promise.all([record.pull(), this.#index.pull()]);
    let piece: Piece<Parts> | undefined;
    const build = () => {
      piece?.discard();
      this.#requireSamePattern(id, pattern.name);
      this.#running.get(id)?.discard();
      record.set({ pattern: pattern.name, inputs: storedInputs(inputs) });
      this.#enter(id, { pattern: pattern.name });
      piece = this.#build(id, pattern);
      piece.showResult();
      return piece;
    };
    try {
      return await this.space.transact(build);
    } catch (error) {
      piece?.discard();
      throw error;
    }
  }

  launch<Inputs extends object, Parts extends PieceParts>(
    pattern: Pattern<Inputs, Parts>,
    inputs: PieceInputs<Inputs>,
    { id = this.space.newId(), start = "with-commit" }: LaunchOptions,
    owner: Piece | undefined,
  ): Launched<Parts> {
    requireInputs(pattern, inputs);
    let piece: Piece<Parts> | undefined;
    const install = () => {
      // Stopped meanwhile, or another has taken its place: that one stays.
      if (owner?.state === "stopped" || this.#running.has(id)) return;
      piece = this.#install(id, pattern);
    };
    const isTied = this.space.scheduler.launch({
      started: start === "with-commit" ? install : () => {},
      confirmed: start === "after-commit" ? install : () => {},
      cancelled: () => piece?.discard(),
    });
    if (!isTied) {
      throw new PieceError(
        "PIECE_MISUSE",
        "a piece is launched by a handler or a transaction; elsewhere start it with `run`",
      );
    }
    this.#requireSamePattern(id, pattern.name);
    recordOf<Inputs>(this.space, id).set({ pattern: pattern.name, inputs: storedInputs(inputs) });
    this.#enter(id, owner === undefined ? { pattern: pattern.name } : { pattern: pattern.name, owner: owner.id });
    const result = this.space.cell<never>(id);
    owner?.onStop(() => piece?.discard());
    return { id, result, asLink: () => result.asLink() };
  }

  /** A piece whose record is stored, or about to be. Its result falls with the record. */
  #install<Inputs extends object, Parts extends PieceParts>(
    id: string,
    pattern: Pattern<Inputs, Parts>,
  ): Piece<Parts> | undefined {
    const { scheduler } = this.space;
    try {
      const piece = this.#build(id, pattern);
      const record = recordOf(this.space, id);
      const show = this.space.transact(() => {
        if (record.get() !== undefined && piece.state === "running") piece.showResult();
      });
      const report = (error: unknown) => {
        if (piece.state === "running") scheduler.report(error);
      };
      scheduler.background(show.catch(report));
      return piece;
    } catch (error) {
      scheduler.report(error);
      return undefined;
    }
  }

  /** Builds the pieces that were started and not stopped, those of the given patterns. Starts nothing anew. */
  async resume(patterns: readonly Pattern[]): Promise<Resumed> {
    const byName = new Map(patterns.map((pattern) => [pattern.name, pattern]));
    const index = (await this.#index.pull()) ?? {};
    const waiting = Object.entries(index).filter(([id]) => !this.#running.has(id));
    const records = await Promise.all(waiting.map(([id]) => recordOf(this.space, id).pull()));
    const pieces: Piece[] = [];
    const left: { id: string; pattern: string; reason: string }[] = [];
    // All of them before any of them runs: what a piece computed before is taken up where it is still true.
    await this.space.restore(() => {
      for (const [at, [id, { pattern: name }]] of waiting.entries()) {
        const built = this.#resumeOne(id, name, byName.get(name), records[at] !== undefined);
        if (built instanceof Piece) pieces.push(built);
        else left.push({ id, pattern: name, reason: built });
      }
    });
    for (const piece of pieces) {
      const owner = index[piece.id]?.owner;
      if (owner !== undefined) this.#running.get(owner)?.onStop(() => piece.discard());
    }
    return { pieces, left };
  }

  /** The reason, where it cannot be. */
  #resumeOne(id: string, name: string, pattern: Pattern | undefined, isStored: boolean): Piece | string {
    if (pattern === undefined) return `no pattern "${name}" was given`;
    if (!isStored) return "its record is gone";
    return this.#install(id, pattern) ?? "its pattern failed";
  }

  /** Takes it away now, and the pieces it owns; resolves when none of them will be resumed any more. */
  async stop(id: string): Promise<void> {
    this.#running.get(id)?.discard();
    await this.#index.pull();
    await this.space.transact(() => {
      const index = this.#index.get() ?? {};
      for (const owned of withOwned(index, id)) if (index[owned] !== undefined) this.#index.key(owned).delete();
    });
  }

  #build<Inputs extends object, Parts extends PieceParts>(id: string, pattern: Pattern<Inputs, Parts>): Piece<Parts> {
    const piece = Piece.build(this, id, pattern);
    this.#running.set(id, piece);
    piece.onStop(() => {
      if (this.#running.get(id) === piece) this.#running.delete(id);
    });
    return piece;
  }

  #enter(id: string, entry: Entry): void {
    // Only whoever makes the index rests on there being none: pieces that start at once do not stand in each other's way.
    if (this.#index.address.value !== undefined) this.#index.key(id).set(entry);
    else this.#index.set({ ...this.#index.get(), [id]: entry });
  }

  #requireSamePattern(id: string, wanted: string): void {
    const stored = this.#index.key(id).get()?.pattern;
    if (stored === undefined || stored === wanted) return;
    throw new PieceError(
      "PIECE_OTHER_PATTERN",
      `"${id}" is a piece of pattern "${stored}"; stop it before a piece of "${wanted}" takes its id`,
    );
  }
}

/** A piece and all that it owns, those that they own too. */
function withOwned(index: Readonly<Record<string, Entry>>, id: string): Set<string> {
  const all = new Set([id]);
  for (const owned of all) {
    for (const [other, { owner }] of Object.entries(index)) if (owner === owned) all.add(other);
  }
  return all;
}
