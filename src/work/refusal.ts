/**
 * A refusal: the handler answers "no", for a reason that its caller can act on. Its writes and messages are taken back.
 * SPEC: U73-U75.
 *
 *     return tx.refuse("SOLD_OUT", { data: { left: 0 }, message: "no tickets left" });
 */
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import type { HandlerEnd } from "./handler-call.ts";
import { WorkError } from "./work-error.ts";

/** Options of `tx.refuse`. */
export interface RefuseOptions<Data extends Json | undefined = Json | undefined> {
  /** Facts of the reason, as JSON. */
  readonly data?: Data;
  /** For people; the reason unless given. */
  readonly message?: string;
  /** 400 to 499; 409 unless given. */
  readonly code?: number;
}

/** A failure that the handler has chosen. Made by `tx.refuse`. */
export class Refusal<Reason extends string = string, Data extends Json | undefined = Json | undefined> extends Failure<
  Reason,
  Data
> {
  constructor(reason: Reason, { data, message = reason, code = 409 }: RefuseOptions<Data> = {}) {
    super(code, message, { reason, ...(data === undefined ? {} : { data }) });
    if (code >= 500)
      throw new WorkError("WORK_MISUSE", `a refusal has a code of 400 to 499, got ${code}; throw a Failure instead`);
  }
}

/** The end of a handler that may have refused: a refusal ends it like an exception. */
export function endWithRefusal(end: HandlerEnd, made: Refusal | undefined): HandlerEnd {
  if (end.kind !== "returned") return end;
  const error = refusalOf(end.value, made);
  return error === undefined ? end : { kind: "threw", error };
}

/** The refusal that a handler has returned. One that was made and not returned is a mistake. */
export function refusalOf(returned: unknown, made: Refusal | undefined): Error | undefined {
  if (returned instanceof Refusal) return returned;
  if (made === undefined) return undefined;
  return new WorkError(
    "WORK_MISUSE",
    `tx.refuse("${made.reason}") was called and its result was not returned; write: return tx.refuse(...)`,
  );
}
