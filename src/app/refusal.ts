/**
 * A refusal: the answer "no" of a command, with a reason that its caller can tell apart. `return tx.refuse("SOLD_OUT", …)` rolls the
 * transaction back; the caller gets a `Failure` with that reason, and its type follows from the return type. SPEC: A12, A13.
 */
export interface RefuseOptions<Data> {
  /** JSON that belongs to the reason. */
  readonly data?: Data;
  /** For people. Default: the reason. */
  readonly message?: string;
  /** From 400 to 499. Default 409. */
  readonly code?: number;
}

export class Refusal<out Reason extends string = string, out Data = unknown> {
  readonly reason: Reason;
  readonly code: number;
  readonly message: string;
  readonly data: Data;

  constructor(reason: Reason, { data, message = reason, code = 409 }: RefuseOptions<Data>) {
    this.reason = reason;
    this.code = code;
    this.message = message;
    this.data = data as Data;
  }
}
