/** The public API of a space: `BaseSpace` with collections, lists and pieces. */
import type { Host } from "../host/host.ts";
import { systemHost } from "../host/system-host.ts";
import type { NodeAddress } from "../scheduler/node.ts";
import { requireReceiptPolicy } from "../store/receipt-keeper.ts";
import { Replica } from "../store/replica.ts";
import { BaseSpace, type SpaceOptions } from "./base-space.ts";
import type { Cell, ListCell } from "./cell.ts";
import {
  Collection,
  type CollectionOf,
  type CollectionOptions,
  type ElementOptions,
  type NamesFollowSchema,
} from "./collection.ts";
import type { Each, ListOptions } from "./list-children.ts";
import { filter, flatMap, listAt, map } from "./lists.ts";
import type { Launched, LaunchOptions, Pattern, Piece, PieceParts } from "./piece.ts";
import type { PieceInputs } from "./piece-inputs.ts";
import { Pieces, type Resumed, type RunOptions } from "./pieces.ts";
import type { Described, StandardSchema } from "./schema.ts";

/** A set of documents with cells, computed values, effects, streams and transactions. */
export class Space extends BaseSpace {
  readonly #pieces: Pieces;

  static async open(options: SpaceOptions): Promise<Space> {
    const { store, host = systemHost(), name, residentDocumentsMax, receipts } = options;
    if (receipts !== undefined) requireReceiptPolicy(receipts);
    const memory = residentDocumentsMax === undefined ? {} : { residentDocumentsMax };
    return new Space(options, host, await Replica.open({ store, host, space: name, ...memory }));
  }

  private constructor(options: SpaceOptions, host: Host, replica: Replica) {
    super(options, host, replica);
    this.#pieces = new Pieces(this);
  }

  override readerOf(address: NodeAddress): Cell<unknown> | undefined {
    return listAt(address) ?? this.#pieces.resultAt(address);
  }

  protected override closePieces(): void {
    this.#pieces.close();
  }

  /**
   * Many elements, each in a document of its own, with indexes and totals; see `collection.ts`. With a schema in the
   * second place, the names of the indexes and sums are checked where pages and totals are read.
   */
  collection<T, const Names extends string = NamesFollowSchema>(
    name: string,
    options?: ElementOptions<T, Names> & { readonly "~standard"?: never },
  ): CollectionOf<T, Names>;
  collection<Schema extends StandardSchema, const Names extends string = never, const Sums extends string = never>(
    name: string,
    schema: Schema,
    options?: Omit<ElementOptions<Described<Schema>, Names, Sums>, "schema">,
  ): CollectionOf<Described<Schema>, Names, Sums>;
  collection<T>(
    name: string,
    second: StandardSchema<T> | CollectionOptions<T> = {},
    third: Omit<CollectionOptions<T>, "schema"> = {},
  ): Collection<T> {
    return new Collection(this, name, "~standard" in second ? { ...third, schema: second } : second);
  }

  map<E, R>(id: string, list: ListCell<E>, each: Each<E, R>, options?: ListOptions<E>): Cell<readonly R[]> {
    return map(this, id, list, each, options);
  }

  filter<E>(id: string, list: ListCell<E>, keep: Each<E, boolean>, options?: ListOptions<E>): Cell<readonly E[]> {
    return filter(this, id, list, keep, options);
  }

  flatMap<E, R>(
    id: string,
    list: ListCell<E>,
    each: Each<E, readonly R[]>,
    options?: ListOptions<E>,
  ): Cell<readonly R[]> {
    return flatMap(this, id, list, each, options);
  }

  // Pieces
  // -------------------------------------------------------------------------------------------------------------------

  /**
   * Starts a piece of a pattern; resolves when the start is durable. A piece that was started under the same id before
   * is resumed with these inputs.
   */
  run<Inputs extends object, Parts extends PieceParts>(
    pattern: Pattern<Inputs, Parts>,
    inputs: PieceInputs<Inputs>,
    { id }: RunOptions = {},
  ): Promise<Piece<Parts>> {
    this.refuseInComputation("start a piece");
    return this.#pieces.start(pattern, inputs, id ?? this.newId());
  }

  /** For handlers and transactions: starts a piece that exists only if their commit succeeds. */
  launch<Inputs extends object, Parts extends PieceParts>(
    pattern: Pattern<Inputs, Parts>,
    inputs: PieceInputs<Inputs>,
    options: LaunchOptions = {},
  ): Launched<Parts> {
    return this.#pieces.launch(pattern, inputs, options, undefined);
  }

  /** Resumes the pieces of these patterns that were started and not stopped. */
  resume(patterns: readonly Pattern[]): Promise<Resumed> {
    return this.#pieces.resume(patterns);
  }

  /** Stops a piece for good: in this process at once. */
  stop(piece: Piece | string): Promise<void> {
    return this.#pieces.stop(typeof piece === "string" ? piece : piece.id);
  }

  /** The pieces that run in this process, without nested ones. */
  get pieces(): ReadonlyMap<string, Piece> {
    return this.#pieces.running;
  }
}
