/**
 * A pattern: a named recipe that makes cells, computations, effects, streams and nested pieces out of inputs. Running
 * it in a space makes a piece. A pattern must depend on its inputs alone: it is called again, in another process, when
 * the piece is resumed, and finds its documents by the names of the parts. SPEC: P1.
 */
import type { Cell } from "./cell.ts";
import type { Launched, LaunchOptions, Pattern, Piece, PieceParts } from "./piece.ts";
import type { PieceInputs } from "./piece-inputs.ts";
import type { StandardSchema } from "./schema.ts";

/** The part of a space that starts pieces. */
interface Launcher {
  launch<Inputs extends object, Parts extends PieceParts>(
    pattern: Pattern<Inputs, Parts>,
    inputs: PieceInputs<Inputs>,
    options?: LaunchOptions,
  ): Launched<Parts>;
}

/** Defines a pattern: a name, a schema of its inputs, and a function that builds a piece of it. */
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
