/**
 * The pieces of a space that run in this process: starting, resuming, stopping them. The document `millrace/pieces` names every piece
 * that was started and not stopped, with its pattern, so that a process that opens the space can take them up again; nested pieces are
 * built by the pieces they belong to and are not in it. SPEC: P2, P4, P6.
 */
import type { Cell } from "./cell.ts";
import { type Pattern, PieceError, type PieceInputs, type PieceParts, requireInputs } from "./pattern.ts";
import { Piece, recordOf } from "./piece.ts";
import type { Space } from "./space.ts";

/** Names of patterns by the ids of their pieces. */
export const PIECES_DOCUMENT = "millrace/pieces";

export interface RunOptions {
  /** What the piece is called; a piece of this id that was started before is taken up again. A new id unless given. */
  readonly id?: string;
}

export interface Resumed {
  readonly pieces: readonly Piece[];
  /** Pieces that wait for a pattern that was not given, or whose pattern failed; they stay as they are stored. */
  readonly left: readonly { readonly id: string; readonly pattern: string; readonly reason: string }[];
}

export class Pieces {
  readonly #space: Space;
  readonly #index: Cell<Readonly<Record<string, string>>>;
  readonly #running = new Map<string, Piece>();

  constructor(space: Space) {
    this.#space = space;
    this.#index = space.cell(PIECES_DOCUMENT);
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
    const record = recordOf<Inputs>(this.#space, id);
    await Promise.all([record.pull(), this.#index.pull()]);
    let piece: Piece<Parts> | undefined;
    const build = () => {
      piece?.discard();
      this.#requireSamePattern(id, pattern.name, this.#index.key(id).get());
      this.#running.get(id)?.discard();
      piece = this.#add(Piece.build(this.#space, id, pattern, inputs));
      this.#enter(id, pattern.name);
      return piece;
    };
    try {
      return await this.#space.transact(build);
    } catch (error) {
      piece?.discard();
      throw error;
    }
  }

  /** Builds the pieces that were started and not stopped, those of the given patterns. Starts nothing anew. */
  async resume(patterns: readonly Pattern[]): Promise<Resumed> {
    const byName = new Map(patterns.map((pattern) => [pattern.name, pattern]));
    const index = Object.entries((await this.#index.pull()) ?? {}).filter(([id]) => !this.#running.has(id));
    const records = await Promise.all(index.map(([id]) => recordOf<object>(this.#space, id).pull()));
    const pieces: Piece[] = [];
    const left: { id: string; pattern: string; reason: string }[] = [];
    for (const [at, [id, name]] of index.entries()) {
      const built = this.#resumeOne(id, name, byName.get(name), records[at]?.inputs);
      if (built instanceof Piece) pieces.push(built);
      else left.push({ id, pattern: name, reason: built });
    }
    return { pieces, left };
  }

  /** The reason, where it cannot be. */
  #resumeOne(id: string, name: string, pattern: Pattern | undefined, inputs: object | undefined): Piece | string {
    if (pattern === undefined) return `no pattern "${name}" was given`;
    if (inputs === undefined) return "its record is gone";
    const space = this.#space;
    try {
      const build = () => this.#add(Piece.build(space, id, pattern, inputs));
      return space.scheduler.transact(space.replica(space.name), build).result;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** Takes it away now; resolves when it will not be resumed any more. */
  async stop(id: string): Promise<void> {
    this.#running.get(id)?.discard();
    await this.#index.pull();
    await this.#space.transact(() => {
      if (this.#index.key(id).get() !== undefined) this.#index.key(id).delete();
    });
  }

  #add<Parts extends PieceParts>(piece: Piece<Parts>): Piece<Parts> {
    this.#running.set(piece.id, piece);
    piece.onStop = () => {
      if (this.#running.get(piece.id) === piece) this.#running.delete(piece.id);
    };
    return piece;
  }

  #enter(id: string, pattern: string): void {
    // Only whoever makes the index rests on there being none: pieces that start at once do not stand in each other's way.
    if (this.#index.address.value !== undefined) this.#index.key(id).set(pattern);
    else this.#index.set({ ...this.#index.get(), [id]: pattern });
  }

  #requireSamePattern(id: string, wanted: string, stored: string | undefined): void {
    if (stored === undefined || stored === wanted) return;
    throw new PieceError(
      "PIECE_OTHER_PATTERN",
      `"${id}" is a piece of pattern "${stored}"; stop it before a piece of "${wanted}" takes its id`,
    );
  }
}
