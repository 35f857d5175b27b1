/** The checks of a piece's id and inputs. SPEC: P1. */
import { MillraceError } from "../message/millrace-error.ts";
import { Cell } from "./cell.ts";
import { requireValid, type StandardSchema } from "./schema.ts";

/** The inputs of a new piece: for each a value, or the cell that holds it. */
export type PieceInputs<Inputs> = { readonly [Name in keyof Inputs]: Inputs[Name] | Cell<Inputs[Name] | undefined> };

export type PieceErrorCode =
  /** Another pattern's piece has this id. */
  | "PIECE_OTHER_PATTERN"
  /** The pattern threw while it was built. */
  | "PATTERN_FAILED"
  /** A call that the state of the piece does not allow: it has stopped, or is built already. */
  | "PIECE_MISUSE";

/** Wrong use of a pattern or a piece. */
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
  { name, schema }: { readonly name: string; readonly schema: StandardSchema<Inputs> | undefined },
  inputs: PieceInputs<Inputs>,
): void {
  if (schema === undefined) return;
  const values = Object.entries(inputs).map(([key, input]) => [key, input instanceof Cell ? input.get() : input]);
  if (values.some(([, value]) => value === undefined)) return;
  requireValid(schema, Object.fromEntries(values), `pattern "${name}"`);
}
