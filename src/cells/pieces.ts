/**
 * The pieces of a space that run in this process: starting, launching, resuming and stopping them. A piece runs here
 * while the index names it; any process may start or stop it. Calls of `start` and `stop` for one id run in the order
 * of the calls. SPEC: P2-P4, P6-P8.
 */
import { thrownText } from "../message/error-data.ts";
import type { NodeAddress } from "../scheduler/node.ts";
import { SHARED_SCOPE } from "../store/document.ts";
import type { BaseSpace } from "./base-space.ts";
import type { Cell } from "./cell.ts";
import { LinkedCell } from "./linked-cell.ts";
import {
  type Launched,
  type Launcher,
  type LaunchOptions,
  type Pattern,
  Piece,
  type PieceHome,
  type PieceParts,
  recordOf,
  type Shown,
} from "./piece.ts";
import { PieceIndex } from "./piece-index.ts";
import { PieceError, type PieceInputs, requireInputs, requirePieceId, storedInputs } from "./piece-inputs.ts";

/** Options of `space.run`. */
export interface RunOptions {
  /** Default: a new id. A piece of this id that was started before is resumed. */
  readonly id?: string;
}

/** The pieces that `space.resume` started again, and those that it could not. */
export interface Resumed {
  readonly pieces: readonly Piece[];
  /** Pieces whose pattern was not given, or failed; they stay as they are stored. */
  readonly left: readonly { readonly id: string; readonly pattern: string; readonly reason: string }[];
}

export class Pieces implements PieceHome, Launcher {
  readonly space: BaseSpace;
  readonly results = new Map<string, Cell<unknown>>();
  readonly #index: PieceIndex;
  readonly #running = new Map<string, Piece>();
  /** By id: the last call that has not ended. */
  readonly #turns = new Map<string, Promise<void>>();
  /** Unsubscribes from the index; set while pieces run. */
  #unlisten: (() => void) | undefined;

  constructor(space: BaseSpace) {
    this.space = space;
    this.#index = new PieceIndex(space);
  }

  get launcher(): Launcher {
    return this;
  }

  get running(): ReadonlyMap<string, Piece> {
    return this.#running;
  }

  /** The result of the piece at an address. */
  resultAt({ parent, home }: NodeAddress): Cell<unknown> | undefined {
    const { document, replica } = home;
    const isOwn = parent === null && document.scope === SHARED_SCOPE && replica.space === this.space.name;
    return isOwn ? this.results.get(document.id) : undefined;
  }

  /**
   * Resolves when the start is durable. A running piece of this pattern gets these inputs; a stored one is resumed with
   * them. If the commit is rejected, the earlier piece goes on.
   */
  async start<Inputs extends object, Parts extends PieceParts>(
    pattern: Pattern<Inputs, Parts>,
    inputs: PieceInputs<Inputs>,
    id: string,
  ): Promise<Piece<Parts>> {
    requirePieceId(id);
    requireInputs(pattern, inputs);
    return this.#inTurn(id, () => this.#start(pattern, inputs, id));
  }

  async #start<Inputs extends object, Parts extends PieceParts>(
    pattern: Pattern<Inputs, Parts>,
    inputs: PieceInputs<Inputs>,
    id: string,
  ): Promise<Piece<Parts>> {
    const record = recordOf<Inputs>(this.space, id);
    await Promise.all([record.pull(), this.#index.ready()]);
    const before = this.#running.get(id);
    let built: Piece<Parts> | undefined;
    const attempt = () => {
      this.#index.enter(id, pattern.name);
      record.set({ pattern: pattern.name, inputs: storedInputs(inputs) });
      const running = this.#running.get(id);
      const piece = running?.isOf(pattern) ? running : this.#build(id, pattern);
      if (piece !== running) built = piece;
      piece.write();
      return piece;
    };
    try {
      return await this.space.transact(attempt);
    } catch (error) {
      built?.discard();
      if (before !== undefined && !this.#running.has(id) && this.#index.has(id)) {
        this.#install(id, before.recipe, this.#writeChanged);
      }
      throw error;
    }
  }

  launch<Inputs extends object, Parts extends PieceParts>(
    pattern: Pattern<Inputs, Parts>,
    inputs: PieceInputs<Inputs>,
    { id = this.space.newId(), start = "with-commit" }: LaunchOptions,
    owner: Piece | undefined,
  ): Launched<Parts> {
    requirePieceId(id);
    requireInputs(pattern, inputs);
    let piece: Piece | undefined;
    const install = () => {
      // Refused or stopped meanwhile, or replaced by another piece, which stays.
      if (owner?.state === "stopped" || !this.#index.has(id, pattern.name) || this.#running.has(id)) return;
      const installed = this.#install(id, pattern as Pattern, this.#writeNew);
      if (installed instanceof Piece) piece = installed;
    };
    const isTied = this.space.scheduler.parts.events.launch({
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
    this.#requireLiving(owner);
    this.#index.enter(id, pattern.name, owner?.root);
    recordOf<Inputs>(this.space, id).set({ pattern: pattern.name, inputs: storedInputs(inputs) });
    const result = new LinkedCell<Shown<Parts>>(this.space.cell(id).address, this.space);
    return { id, result, asLink: () => result.asLink() };
  }

  /** Reads the owner's entry, without the other pieces that it owns: stopping the owner rejects the launch. */
  #requireLiving(owner: Piece | undefined): void {
    if (owner === undefined || (owner.state !== "stopped" && this.#index.patternOf(owner.root) !== undefined)) return;
    throw new PieceError(
      "PIECE_MISUSE",
      `piece "${owner.root}" has stopped, and its launches stop with it; launch with \`space.launch\` a piece that is to outlive it`,
    );
  }

  /** Builds a piece that has an entry and a record; returns the reason if that fails. */
  #install(id: string, pattern: Pattern, write: (piece: Piece) => Promise<void>): Piece | string {
    const { scheduler } = this.space;
    try {
      const piece = this.#build(id, pattern);
      const report = (error: unknown) => {
        if (piece.state === "running") scheduler.parts.introspection.report(error);
      };
      scheduler.parts.quiescence.background(write(piece).catch(report));
      return piece;
    } catch (error) {
      scheduler.parts.introspection.report(error);
      return thrownText(error);
    }
  }

  /** Writes at once. The write is rejected with the record if that is not confirmed yet. */
  readonly #writeNew = (piece: Piece): Promise<void> => this.#writeIfEntered(piece, () => piece.write());

  /** Writes only documents that differ: unchanged pieces are resumed without a commit. */
  readonly #writeChanged = async (piece: Piece): Promise<void> => {
    await piece.load();
    await this.#writeIfEntered(piece, () => piece.writeChanged());
  };

  #writeIfEntered(piece: Piece, write: () => void): Promise<void> {
    const record = recordOf(this.space, piece.id);
    return this.space.transact(() => {
      if (record.get() !== undefined && piece.state === "running") write();
    });
  }

  /** Builds the pieces of the given patterns that were started and not stopped. */
  async resume(patterns: readonly Pattern[]): Promise<Resumed> {
    const byName = new Map(patterns.map((pattern) => [pattern.name, pattern]));
    const index = await this.#index.pull();
    const waiting = Object.entries(index).filter(([id]) => !this.#running.has(id));
    const records = await Promise.all(waiting.map(([id]) => recordOf(this.space, id).pull()));
    const pieces: Piece[] = [];
    const left: { id: string; pattern: string; reason: string }[] = [];
    // All are built before a node runs, so that stored values which are still valid are reused.
    await this.space.restore(() => {
      for (const [at, [id, { pattern: name }]] of waiting.entries()) {
        // Stopped or started meanwhile.
        if (!this.#index.has(id, name) || this.#running.has(id)) continue;
        const built = this.#resumeOne(id, name, byName.get(name), records[at] !== undefined);
        if (built instanceof Piece) pieces.push(built);
        else left.push({ id, pattern: name, reason: built });
      }
    });
    return { pieces, left };
  }

  /** The piece; or the reason why it cannot be resumed. */
  #resumeOne(id: string, name: string, pattern: Pattern | undefined, isStored: boolean): Piece | string {
    if (pattern === undefined) return `no pattern "${name}" was given`;
    if (!isStored) return "its record is gone";
    return this.#install(id, pattern, this.#writeChanged);
  }

  /** Removes it now, and the pieces that it owns; resolves when none of them can be resumed any more. */
  async stop(id: string): Promise<void> {
    this.#discard(id);
    await this.#inTurn(id, async () => {
      // Without a delay if it is known, so that a launched piece does not begin. Else another process may have started
      // it.
      if (!this.#index.has(id)) await this.#index.catchUp();
      await this.space.transact(() => {
        this.#discard(id);
        this.#index.leave(id);
      });
    });
  }

  /** Removes all pieces that run here; they stay in the index. */
  close(): void {
    for (const piece of [...this.#running.values()].reverse()) piece.discard();
  }

  #discard(id: string): void {
    for (const one of this.#index.withOwned(id)) this.#running.get(one)?.discard();
  }

  /** Replaces a running piece of the id. */
  #build<Inputs extends object, Parts extends PieceParts>(id: string, pattern: Pattern<Inputs, Parts>): Piece<Parts> {
    this.#running.get(id)?.discard({ isReplaced: true });
    const piece = Piece.build(this, id, pattern);
    this.#running.set(id, piece);
    this.#unlisten ??= this.#index.onOthers((gone) => this.#letGo(gone));
    piece.onStop(() => {
      if (this.#running.get(id) === piece) this.#running.delete(id);
      if (this.#running.size > 0) return;
      this.#unlisten?.();
      this.#unlisten = undefined;
    });
    return piece;
  }

  /** Another process has removed a piece from the index: it ends here too. */
  #letGo(gone: string): void {
    // It may have been started again since.
    if (!this.#index.has(gone)) this.#running.get(gone)?.discard();
  }

  #inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(id);
    const turn = before === undefined ? work() : before.then(work);
    const settled = () => {
      if (this.#turns.get(id) === over) this.#turns.delete(id);
    };
    const over: Promise<void> = turn.then(settled, settled);
    this.#turns.set(id, over);
    return turn;
  }
}
