/**
 * A piece: a pattern that runs in a space. It owns what its pattern made, under names below its own id, and takes all of it away when
 * it stops. SPEC: P2-P5.
 *
 * ```
 *   building ──built──> running ──stop──> stopped        (building ──failed──> stopped)
 * ```
 * Its documents: `<id>` is the result, a record of links to the parts; `<id>/piece` says which pattern it is and holds the inputs.
 */
import type { Json } from "../message/json.ts";
import type { Run } from "../scheduler/run.ts";
import { Cell, type CellOptions } from "./cell.ts";
import type { Computed } from "./computed.ts";
import type { ListOptions } from "./list-children.ts";
import { type Pattern, PieceError, type PieceInputs, type PieceParts, type Shown, storedInputs } from "./pattern.ts";
import type { NodeOptions, Space } from "./space.ts";

/** What is stored about a piece. */
export interface PieceRecord<Inputs = unknown> {
  readonly pattern: string;
  readonly inputs: Inputs;
}

export class Piece<Parts extends PieceParts = PieceParts> {
  readonly id: string;
  /** The name of its pattern. */
  readonly pattern: string;
  /** A record of links to what the pattern gives; whoever holds a link to it sees the piece from outside. */
  readonly result: Cell<Shown<Parts>>;
  readonly #space: Space;
  /** What takes away what was made, in the order in which it was made. */
  readonly #undo: (() => void)[] = [];
  #parts: Parts | undefined;
  #state: "building" | "running" | "stopped" = "building";
  #effects = 0;
  /** Called once, when it stops. */
  #onStop: () => void = () => {};

  /**
   * Builds a piece and writes its record and its result, as part of the transaction or run that it is called in. What failed to
   * build leaves nothing.
   */
  static build<Inputs extends object, Parts extends PieceParts>(
    space: Space,
    id: string,
    pattern: Pattern<Inputs, Parts>,
    inputs: PieceInputs<Inputs>,
  ): Piece<Parts> {
    const piece = new Piece<Parts>(space, id, pattern.name);
    const record = recordOf<Inputs>(space, id);
    put(record, { pattern: pattern.name, inputs: storedInputs(inputs) }, space);
    try {
      const inputsCell = new Cell<Inputs>(record.address.child("inputs"), space, { schema: pattern.schema });
      piece.#parts = pattern.build(inputsCell, piece);
      put(piece.result, shown(piece.#parts), space);
    } catch (error) {
      piece.discard();
      const reason = error instanceof Error ? error.message : String(error);
      throw new PieceError("PATTERN_FAILED", `pattern "${pattern.name}" failed to build piece "${id}": ${reason}`, {
        cause: error,
      });
    }
    piece.#state = "running";
    return piece;
  }

  private constructor(space: Space, id: string, pattern: string) {
    this.id = id;
    this.pattern = pattern;
    this.#space = space;
    this.result = space.cell<Shown<Parts>>(id);
  }

  get state(): "building" | "running" | "stopped" {
    return this.#state;
  }

  /** What the pattern gave: the cells and streams themselves, for use in this process. */
  get parts(): Parts {
    if (this.#parts === undefined) throw new PieceError("PIECE_MISUSE", `piece "${this.id}" is still being built`);
    return this.#parts;
  }

  /** A value that points to the result. */
  asLink(): Json {
    return this.result.asLink();
  }

  // For the pattern ------------------------------------------------------------------------------------------------------------

  /** A cell of the piece's own. */
  cell<T = unknown>(name: string, options: CellOptions<T> = {}): Cell<T> {
    return this.#space.cell<T>(this.#named(name), options);
  }

  computed<T>(name: string, compute: (run: Run) => T | Promise<T>, options?: NodeOptions): Computed<Awaited<T>> {
    const made = this.#space.computed(this.#named(name), compute, options);
    this.#undo.push(() => made.dispose());
    return made;
  }

  effect(run: (run: Run) => unknown, options: NodeOptions & { readonly name?: string } = {}): () => void {
    const { name = `effect ${++this.#effects}`, ...rest } = options;
    const cancel = this.#space.effect(run, { ...rest, id: this.#named(name) });
    this.#undo.push(cancel);
    return cancel;
  }

  ifElse<T>(name: string, condition: Cell<unknown>, then: Cell<T>, otherwise: Cell<T>): Cell<T> {
    return this.#withNode(this.#space.ifElse(this.#named(name), condition, then, otherwise));
  }

  map<E, R>(
    name: string,
    list: Cell<readonly E[]>,
    each: (element: Cell<E>) => R,
    options?: ListOptions<E>,
  ): Cell<readonly R[]> {
    return this.#withNode(this.#space.map(this.#named(name), list, each, options));
  }

  filter<E>(
    name: string,
    list: Cell<readonly E[]>,
    keep: (element: Cell<E>) => boolean,
    options?: ListOptions<E>,
  ): Cell<readonly E[]> {
    return this.#withNode(this.#space.filter(this.#named(name), list, keep, options));
  }

  flatMap<E, R>(
    name: string,
    list: Cell<readonly E[]>,
    each: (element: Cell<E>) => readonly R[],
    options?: ListOptions<E>,
  ): Cell<readonly R[]> {
    return this.#withNode(this.#space.flatMap(this.#named(name), list, each, options));
  }

  /** A nested piece: it is built with this one and stops with it. */
  run<Inputs extends object, Parts extends PieceParts>(
    name: string,
    pattern: Pattern<Inputs, Parts>,
    inputs: PieceInputs<Inputs>,
  ): Piece<Parts> {
    const nested = Piece.build(this.#space, this.#named(name), pattern, inputs);
    this.#undo.push(() => nested.discard());
    return nested;
  }

  /** The node that has this cell for its output goes with the piece. */
  #withNode<T>(output: Cell<T>): Cell<T> {
    const { scheduler } = this.#space;
    const node = scheduler.find(output.address.home.document.id);
    if (node) this.#undo.push(() => scheduler.remove(node));
    return output;
  }

  #named(name: string): string {
    if (this.#state !== "building") {
      throw new PieceError("PIECE_MISUSE", `piece "${this.id}" is built; its pattern makes its parts while it builds`);
    }
    return `${this.id}/${name}`;
  }

  // Life -----------------------------------------------------------------------------------------------------------------------

  set onStop(listener: () => void) {
    this.#onStop = listener;
  }

  /** Takes away what runs in this process, the latest first; what is stored stays as it is. */
  discard(): void {
    if (this.#state === "stopped") return;
    this.#state = "stopped";
    for (const undo of this.#undo.splice(0).reverse()) undo();
    this.#onStop();
  }
}

/** Where a piece's record lies. */
export function recordOf<Inputs>(space: Space, id: string): Cell<PieceRecord<Inputs>> {
  return space.cell<PieceRecord<Inputs>>(`${id}/piece`);
}

/** A computation that makes a piece derives its documents; anybody else writes them. */
function put<T>(cell: Cell<T>, value: T, { scheduler }: Space): void {
  if (scheduler.running?.kind === "computation") scheduler.derive(cell.address, value);
  else cell.set(value);
}

/** Parts as the result shows them: what has a place is shown by a link to it. */
function shown<Parts extends PieceParts>(parts: Parts): Shown<Parts> {
  const links = Object.entries(parts).map(([name, part]) => [name, isPlaced(part) ? part.asLink() : part]);
  return Object.fromEntries(links) as Shown<Parts>;
}

function isPlaced(part: unknown): part is { asLink(): Json } {
  return typeof part === "object" && part !== null && "asLink" in part && typeof part.asLink === "function";
}
