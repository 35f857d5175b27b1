/**
 * A pattern: a named recipe that makes cells, computations, effects, streams and nested pieces out of inputs. Running
 * it in a space makes a piece. A pattern must depend on its inputs alone: it is called again, in another process, when
 * the piece is resumed, and finds its documents by the names of the parts. SPEC: P1.
 */

import type { Json } from "../message/json.ts";
import { MillraceError } from "../message/millrace-error.ts";
import { Cell } from "./cell.ts";
import type { Launched, LaunchOptions, Piece } from "./piece.ts";
import { requireValid, type StandardSchema } from "./schema.ts";
import type { Stream } from "./stream.ts";

/** The result of a pattern, by name: cells and nested pieces, shown by links, and plain values. */
export type PieceParts = Readonly<Record<string, unknown>>;

export interface Pattern<Inputs extends object = object, Parts extends PieceParts = PieceParts> {
  /** The stored name; a piece is resumed by the pattern of this name. */
  readonly name: string;
  /** Checks the inputs that are values and not cells. */
  readonly schema: StandardSchema<Inputs> | undefined;
  build(inputs: Cell<Inputs>, piece: Piece): Parts;
  /** For `tx.start`: starts a piece in the space of the running transaction. */
  launchIn(space: object, inputs: PieceInputs<Inputs>, options?: LaunchOptions): Launched<Parts>;
}

/** The part of a space that starts pieces. */
interface Launcher {
  launch<Inputs extends object, Parts extends PieceParts>(
    pattern: Pattern<Inputs, Parts>,
    inputs: PieceInputs<Inputs>,
    options?: LaunchOptions,
  ): Launched<Parts>;
}

/** The inputs of a new piece: for each a value, or the cell that holds it. */
export type PieceInputs<Inputs> = { readonly [Name in keyof Inputs]: Inputs[Name] | Cell<Inputs[Name] | undefined> };

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

export function pattern<Inputs extends object, Parts extends PieceParts>(
  name: string,
  build: (inputs: Cell<Inputs>, piece: Piece) => Parts,
): Pattern<Inputs, Parts>;
export function pattern<Inputs extends object, Parts extends PieceParts>(
  name: string,
  schema: StandardSchema<Inputs>,
  build: (inputs: Cell<Inputs>, piece: Piece) => Parts,
): Pattern<Inputs, Parts>;
export function pattern<Inputs extends object, Parts extends PieceParts>(
  name: string,
  ...rest: readonly [StandardSchema<Inputs>, Build<Inputs, Parts>] | readonly [Build<Inputs, Parts>]
): Pattern<Inputs, Parts> {
  const [schema, build] = rest.length === 2 ? rest : [undefined, rest[0]];
  const made: Pattern<Inputs, Parts> = {
    ...{ name, schema, build },
    launchIn: (space, inputs, options) => (space as Launcher).launch(made, inputs, options),
  };
  return Object.freeze(made);
}

type Build<Inputs extends object, Parts> = (inputs: Cell<Inputs>, piece: Piece) => Parts;

export type PieceErrorCode =
  /** Another pattern's piece has this id. */
  | "PIECE_OTHER_PATTERN"
  /** The pattern threw while it was built. */
  | "PATTERN_FAILED"
  /** A call that the state of the piece does not allow: it has stopped, or is built already. */
  | "PIECE_MISUSE";

export class PieceError extends MillraceError<PieceErrorCode> {
  override readonly name = "PieceError";
}

/** Whether a document of this name is the record of a piece. */
export function isRecordName(name: string): boolean {
  return name === "piece" || name.endsWith("/piece");
}

/** Refuses ids that are names of other documents. */
export function requirePieceId(id: string): void {
  if (id !== "" && !id.endsWith("/piece") && !id.startsWith("millrace/")) return;
  const why = 'it is a text, does not begin with "millrace/" and does not end with "/piece"';
  throw new PieceError("PIECE_MISUSE", `a piece cannot be called "${id}"; choose another id: ${why}`);
}

/** Inputs as they are stored: cells as links. */
export function storedInputs<Inputs extends object>(inputs: PieceInputs<Inputs>): Inputs {
  const stored = Object.entries(inputs).map(([name, input]) => [name, input instanceof Cell ? input.asLink() : input]);
  return Object.fromEntries(stored) as Inputs;
}

/**
 * Refuses inputs that the pattern's schema rejects. Cells are checked by their present values, if all of them have one.
 */
export function requireInputs<Inputs extends object>(
  { name, schema }: Pattern<Inputs, PieceParts>,
  inputs: PieceInputs<Inputs>,
): void {
  if (schema === undefined) return;
  const values = Object.entries(inputs).map(([key, input]) => [key, input instanceof Cell ? input.get() : input]);
  if (values.some(([, value]) => value === undefined)) return;
  requireValid(schema, Object.fromEntries(values), `pattern "${name}"`);
}
