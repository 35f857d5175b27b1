/**
 * A receipt: the document that a commit leaves as the witness of what was done, once. It must be absent, and its value is what a later
 * comer gets (rules I11, J57, L32, S77).
 *
 * Most receipts are never read by the process that leaves them. So a receipt goes to the backend with its commit and is not made a document of
 * the replica, unless it is one already. Whoever meets the document while the commit is pending gets it as if it had been written
 * here (`Confirmation.met`), which is why the names of receipts begin alike: nobody else is looked for.
 *
 * A receipt whose name carries a time (`receipt-name.ts`) has an end (decision 0014): it may go when the store's horizon has passed that time,
 * since no older message is handled any more. SPEC: S100-S103.
 */
import type { Json } from "../message/json.ts";
import { handOut } from "./admit.ts";
import type { DocumentPatch, Precondition } from "./commit.ts";
import type { DocumentRef } from "./document.ts";
import type { PathOperation } from "./path-operation.ts";
import { isReceiptName, madeAt } from "./receipt-name.ts";
import { StoreError } from "./store.ts";

/** What a receipt holds where there is nothing to say. Most do: they put this one, and all in the same way. */
export const NO_RESULT: Json = Object.freeze({});

/** Both what the commit writes and what it requires: one object, since every send has one. */
export class Receipt implements DocumentPatch {
  readonly kind = "absent";
  readonly scope: string;
  readonly id: string;
  /** When what it witnesses was made, where that is known. */
  readonly madeAtMs: number | undefined;
  readonly operations: readonly [PathOperation & { op: "set" }];

  /** The value as `admit` has given it. Whoever makes many of one time says what `madeAt` says of their names. */
  constructor({ scope, id }: DocumentRef, value: Json, madeAtMs: number | undefined = madeAt(id)) {
    if (!isReceiptName(id)) throw new StoreError("STORE_MISUSE", `"${id}" is not the name of a receipt`);
    this.scope = scope;
    this.id = id;
    this.madeAtMs = madeAtMs;
    this.operations = value === NO_RESULT ? NO_RESULT_LEFT : [{ op: "set", path: WHOLE, value: handOut(value) }];
  }

  get value(): Json {
    return this.operations[0].value;
  }
}

const WHOLE: readonly string[] = Object.freeze([]);
/** What those do that put it. */
export const NO_RESULT_LEFT: Receipt["operations"] = [{ op: "set", path: WHOLE, value: NO_RESULT }];

/** For a commit that leaves no receipt, and is made only if none is there. */
export function requireAbsent({ scope, id }: DocumentRef): Precondition {
  return { kind: "absent", scope, id, madeAtMs: madeAt(id) };
}
