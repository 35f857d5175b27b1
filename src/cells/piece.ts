/**
 * A piece: a pattern that runs in a space. It owns the nodes and cells that its pattern made, under names below its own
 * id, and removes the nodes when it stops. SPEC: P2-P5.
 *
 * ```
 *   building ──built──> running ──stop──> stopped        (building ──failed──> stopped)
 * ```
 * Its documents: `<id>` is the result, a record of links to the parts; `<id>/piece` has the pattern's name and the
 * inputs. Building does not write. `write` stores the documents, those of nested pieces too, in the caller's
 * transaction.
 */

import { equal } from "../message/equality.ts";
import { thrownText } from "../message/error-data.ts";
import { INSPECT } from "../message/inspect.ts";
import type { Json } from "../message/json.ts";
import type { NodeAddress, RunHandle } from "../scheduler/node.ts";
import type { BaseSpace, NodeOptions } from "./base-space.ts";
import { Cell, type CellOptions, type ListCell } from "./cell.ts";
import type { Computed } from "./computed.ts";
import { LinkedRecord, type RecordPart } from "./linked-cell.ts";
import type { LinkTargets } from "./links.ts";
import type { Each, ListOptions } from "./list-children.ts";
import { filter, flatMap, map } from "./lists.ts";
import { isRecordName, PieceError, type PieceInputs, storedInputs } from "./piece-inputs.ts";
import type { Described, StandardSchema } from "./schema.ts";
import { type HandleOptions, Stream, type StreamHandler } from "./stream.ts";
import type { Frozen, Initial, Stored } from "./value-types.ts";

/** The result of a pattern, by name: cells and nested pieces, shown by links, and plain values. */
export type PieceParts = Readonly<Record<string, unknown>>;

/** A named part of a program that can be started many times, each time with its own inputs. */
export interface Pattern<Inputs extends object = object, Parts extends PieceParts = PieceParts> {
  /** The stored name; a piece is resumed by the pattern of this name. */
  readonly name: string;
  /** Checks the inputs that are values and not cells. */
  readonly schema: StandardSchema<Inputs> | undefined;
  build(inputs: Cell<Inputs>, piece: Piece): Parts;
  /** For `tx.start`: starts a piece in the space of the running transaction. */
  launchIn(space: object, inputs: PieceInputs<Inputs>, options?: LaunchOptions): Launched<Parts>;
}

/** The type of a piece's result: values of cells, also of nested pieces, and the links of streams. */
export type Shown<Parts> = {
  readonly [Name in keyof Parts]?: Parts[Name] extends Cell<infer Value>
    ? Value
    : Parts[Name] extends Piece<infer Nested>
      ? Shown<Nested>
      : Parts[Name] extends Stream<infer _>
        ? Json
        : Parts[Name];
};

/** The stored record of a piece. */
export interface PieceRecord<Inputs = unknown> {
  readonly pattern: string;
  readonly inputs: Inputs;
}

/**
 * A piece that a handler or a transaction has launched. It runs if that commit succeeds; links to it can be made now.
 */
export interface Launched<Parts extends PieceParts = PieceParts> {
  readonly id: string;
  readonly result: Cell<Shown<Parts>>;
  asLink(): Json;
}

/** Options of `launch`, of a space or a piece. */
export interface LaunchOptions {
  /** Default: derived from the handled event. */
  readonly id?: string;
  /**
   * `with-commit` starts when the commit is applied here, and stops if it is rejected. `after-commit` starts when the
   * commit is durable.
   */
  readonly start?: "with-commit" | "after-commit";
}

/** The surroundings of a piece. */
export interface PieceHome {
  readonly space: BaseSpace;
  readonly launcher: Launcher;
  /** Results of running pieces, nested ones too, by id. */
  readonly results: Map<string, Cell<unknown>>;
}

/** Starts pieces that exist only if a commit succeeds; see `pieces.ts`. */
export interface Launcher {
  launch<Inputs extends object, Parts extends PieceParts>(
    pattern: Pattern<Inputs, Parts>,
    inputs: PieceInputs<Inputs>,
    options: LaunchOptions,
    owner: Piece | undefined,
  ): Launched<Parts>;
}

interface StoredDocument {
  readonly cell: Cell<unknown>;
  readonly value: unknown;
}

/** A running instance of a pattern. */
export class Piece<Parts extends PieceParts = PieceParts> {
  readonly id: string;
  /** The name of its pattern. */
  readonly pattern: string;
  /** The pattern's result for readers outside: a record of links, which reads as the values of their targets. */
  readonly result: Cell<Shown<Parts>>;
  readonly recipe: Pattern;
  /** The id of the outermost piece that it is nested in; its own, if it is not. */
  readonly root: string;
  readonly #home: PieceHome;
  /** Documents to store for it and for nested pieces, in the order of creation. */
  readonly #documents: StoredDocument[] = [];
  /** Functions that remove the created parts, in the order of creation. */
  readonly #undo: ((isReplaced: boolean) => void)[] = [];
  #parts: Parts | undefined;
  #state: "building" | "running" | "stopped" = "building";
  #effects = 0;

  /** Calls the pattern; the inputs are stored. A build that fails leaves no node. */
  static build<Inputs extends object, Parts extends PieceParts>(
    home: PieceHome,
    id: string,
    pattern: Pattern<Inputs, Parts>,
    root: string = id,
  ): Piece<Parts> {
    const piece = new Piece<Parts>(home, id, pattern as Pattern, root);
    try {
      piece.#parts = pattern.build(inputsAt(recordOf<Inputs>(home.space, id), home.space, pattern), piece);
    } catch (error) {
      piece.discard();
      const reason = thrownText(error);
      const message = `pattern "${pattern.name}" failed to build piece "${id}": ${reason}`;
      throw new PieceError("PATTERN_FAILED", message, { cause: error });
    }
    piece.#documents.push({ cell: piece.result, value: shown(piece.#parts) });
    piece.#state = "running";
    home.results.set(id, piece.result);
    return piece;
  }

  private constructor(home: PieceHome, id: string, recipe: Pattern, root: string) {
    this.id = id;
    this.pattern = recipe.name;
    this.recipe = recipe;
    this.root = root;
    this.#home = home;
    const { address } = home.space.cell(id);
    this.result = new LinkedRecord<Shown<Parts>>(address, home.space, (name) => recordPart(this.#parts?.[name]));
  }

  get state(): "building" | "running" | "stopped" {
    return this.#state;
  }

  [INSPECT](): string {
    return `Piece ${this.id} of ${this.pattern}, ${this.#state}`;
  }

  /** The parts that the pattern returned: the cells and streams themselves, for use in this process. */
  get parts(): Parts {
    if (this.#parts === undefined) throw new PieceError("PIECE_MISUSE", `piece "${this.id}" is still being built`);
    return this.#parts;
  }

  isOf<Inputs extends object, Other extends PieceParts>(pattern: Pattern<Inputs, Other>): this is Piece<Other> {
    return Object.is(this.recipe, pattern);
  }

  /** Writes the documents, in the caller's transaction. */
  write(): void {
    for (const { cell, value } of this.#documents) cell.set(value);
  }

  /** Resolves when the stored documents are loaded. */
  load(): Promise<void> {
    const { space } = this.#home;
    return space.replica(space.name).load(this.#documents.map(({ cell }) => cell.address.document));
  }

  /** Writes the documents that differ from the stored ones. */
  writeChanged(): void {
    for (const { cell, value } of this.#documents) if (!equal(cell.getRaw(), value)) cell.set(value);
  }

  /** A value that points to the result. */
  asLink(): Json {
    return this.result.asLink();
  }

  // For the pattern
  // ------------------------------------------------------------------------------------------------------------------

  /** A cell of the piece's own. */
  cell<T = unknown>(name: string): Cell<Stored<T> | undefined>;
  cell<T = unknown>(name: string, initial: undefined, options?: CellOptions<T>): Cell<Stored<T> | undefined>;
  cell<T>(name: string, initial: Initial<T>, options?: CellOptions<T>): Cell<Stored<T>>;
  cell<T>(name: string, initial?: Initial<T>, options?: CellOptions<T>): Cell<Stored<T> | undefined> {
    return this.#home.space.cell(this.#named(name), initial as undefined, options) as Cell<Stored<T> | undefined>;
  }

  computed<T>(
    name: string,
    compute: (run: RunHandle) => T | Promise<T>,
    options?: NodeOptions,
  ): Computed<Frozen<Awaited<T>>> {
    const made = this.#home.space.computed(this.#named(name), compute, options);
    this.#undo.push(() => made.dispose());
    return made;
  }

  effect(run: (run: RunHandle) => unknown, options: NodeOptions & { readonly name?: string } = {}): () => void {
    const { name = `effect ${++this.#effects}`, ...rest } = options;
    const cancel = this.#home.space.effect(run, { ...rest, id: this.#named(name) });
    this.#undo.push(cancel);
    return cancel;
  }

  ifElse<T>(name: string, condition: Cell<unknown>, then: Cell<T>, otherwise: Cell<T>): Cell<T> {
    return this.#withNode(this.#home.space.ifElse(this.#named(name), condition, then, otherwise));
  }

  map<E, R>(name: string, list: ListCell<E>, each: Each<E, R>, options?: ListOptions<E>): Cell<readonly R[]> {
    return this.#withNode(map(this.#home.space, this.#named(name), list, each, options));
  }

  filter<E>(name: string, list: ListCell<E>, keep: Each<E, boolean>, options?: ListOptions<E>): Cell<readonly E[]> {
    return this.#withNode(filter(this.#home.space, this.#named(name), list, keep, options));
  }

  flatMap<E, R>(
    name: string,
    list: ListCell<E>,
    each: Each<E, readonly R[]>,
    options?: ListOptions<E>,
  ): Cell<readonly R[]> {
    return this.#withNode(flatMap(this.#home.space, this.#named(name), list, each, options));
  }

  /** A nested piece: it is built with this one and stops with it. */
  run<Inputs extends object, Parts extends PieceParts>(
    name: string,
    pattern: Pattern<Inputs, Parts>,
    inputs: PieceInputs<Inputs>,
  ): Piece<Parts> {
    const id = this.#named(name);
    const record = { pattern: pattern.name, inputs: storedInputs(inputs) };
    const nested = Piece.build(this.#home, id, pattern, this.root);
    this.#undo.push((isReplaced) => nested.discard({ isReplaced }));
    this.#documents.push({ cell: recordOf(this.#home.space, id), value: record }, ...nested.#documents);
    return nested;
  }

  /** An input of the piece; its handler ends with the piece. */
  stream<Schema extends StandardSchema>(name: string, schema: Schema): Stream<Described<Schema>>;
  stream<T = unknown>(name: string): Stream<T>;
  stream<T>(name: string, schema?: StandardSchema<T>): Stream<T> {
    const { space } = this.#home;
    const { address } = space.cell(this.#named(name));
    const stream = new PieceStream<T>(address, space, schema, (remove) => this.#undo.push(remove));
    // Removed after its handlers, which are registered later.
    this.#undo.push((isReplaced) => {
      if (!isReplaced) space.scheduler.parts.events.closeStream(stream.address, `piece "${this.id}" has stopped`);
    });
    return stream;
  }

  /**
   * For handlers: launches a piece that belongs to this one and stops with it. Its record is part of the handler's
   * commit, so it exists only if that commit succeeds.
   */
  launch<Inputs extends object, Parts extends PieceParts>(
    pattern: Pattern<Inputs, Parts>,
    inputs: PieceInputs<Inputs>,
    options: LaunchOptions = {},
  ): Launched<Parts> {
    return this.#home.launcher.launch(pattern, inputs, options, this);
  }

  /** The node with this output is removed with the piece. */
  #withNode<T>(output: Cell<T>): Cell<T> {
    const { scheduler } = this.#home.space;
    const node = scheduler.find(output.address.home.document.id);
    if (node) this.#undo.push(() => scheduler.remove(node));
    return output;
  }

  #named(name: string): string {
    if (this.#state !== "building") {
      throw new PieceError("PIECE_MISUSE", `piece "${this.id}" is built; its pattern makes its parts while it builds`);
    }
    if (isRecordName(name)) {
      throw new PieceError("PIECE_MISUSE", `"${name}" is the name of the piece's record; give the part another name`);
    }
    return `${this.id}/${name}`;
  }

  // Life
  // ------------------------------------------------------------------------------------------------------------------

  /** Called once when the piece stops, before its parts are removed. */
  onStop(listener: () => void): void {
    this.#undo.push(listener);
  }

  /**
   * Removes the parts that run in this process, the latest first; stored documents stay. Waiting sends of its streams
   * are dropped, unless the same piece is built again at once.
   */
  discard({ isReplaced = false }: { readonly isReplaced?: boolean } = {}): void {
    if (this.#state === "stopped") return;
    this.#state = "stopped";
    if (this.#home.results.get(this.id) === this.result) this.#home.results.delete(this.id);
    for (const undo of this.#undo.splice(0).reverse()) {
      try {
        undo(isReplaced);
      } catch (error) {
        // The error of a listener. The other parts are removed too.
        this.#home.space.scheduler.parts.introspection.report(error);
      }
    }
  }
}

/** The cell of a piece's record. */
export function recordOf<Inputs>(space: BaseSpace, id: string): Cell<PieceRecord<Inputs> | undefined> {
  return space.cell(`${id}/piece`) as Cell<PieceRecord<Inputs> | undefined>;
}

/** The inputs as the pattern sees them. */
function inputsAt<Inputs extends object>(
  { address }: Cell<PieceRecord<Inputs> | undefined>,
  space: BaseSpace,
  { schema }: Pattern<Inputs, PieceParts>,
): Cell<Inputs> {
  return new LinkedRecord<Inputs>(address.child("inputs"), space, () => undefined, { schema });
}

/** The reader of a part that the result shows by a link. */
function recordPart(part: unknown): RecordPart {
  if (part instanceof Piece) return part.result;
  if (part instanceof Stream) return "link";
  return part instanceof Cell ? part : undefined;
}

/** The parts as the result shows them: parts with a place are shown by links. */
function shown<Parts extends PieceParts>(parts: Parts): Shown<Parts> {
  const links = Object.entries(parts).map(([name, part]) => [name, isPlaced(part) ? part.asLink() : part]);
  return Object.fromEntries(links) as Shown<Parts>;
}

function isPlaced(part: unknown): part is { asLink(): Json } {
  return typeof part === "object" && part !== null && "asLink" in part && typeof part.asLink === "function";
}

/** A stream of a piece: its handler ends with the piece. */
class PieceStream<T> extends Stream<T> {
  readonly #keep: (remove: () => void) => void;

  constructor(
    address: NodeAddress,
    targets: LinkTargets,
    schema: StandardSchema<T> | undefined,
    keep: (remove: () => void) => void,
  ) {
    super(address, targets, schema);
    this.#keep = keep;
  }

  override handle(handler: StreamHandler<T>, options?: HandleOptions<T>): () => void {
    const remove = super.handle(handler, options);
    this.#keep(remove);
    return remove;
  }
}
