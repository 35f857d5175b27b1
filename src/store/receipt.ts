/**
 * A receipt (deduplication record): a document that a commit writes as proof that a message was handled. It must be
 * absent before, and its value is the answer to a repeated request (rules I11, J57, L32, S77).
 *
 * Most receipts are never read by the process that writes them. So a receipt goes to the backend without becoming a
 * document in memory, unless it is one already. If the document is requested while the commit is pending, it appears as
 * if written normally (`Confirmation.met`). The common prefix of receipt names keeps that lookup cheap.
 *
 * A receipt whose name carries a time (`receipt-name.ts`) may be removed when the store's horizon has passed that time
 * (decision 0014), because no older message is accepted. SPEC: S100-S103.
 */
import type { Json } from "../message/json.ts";
import { handOut } from "./admit.ts";
import type { DocumentPatch, Precondition } from "./commit.ts";
import type { DocumentRef } from "./document.ts";
import type { PathOperation } from "./path-operation.ts";
import { isReceiptName, madeAt } from "./receipt-name.ts";
import { StoreError } from "./store.ts";

/** The value of a receipt without a result. Most receipts share it. */
export const NO_RESULT: Json = Object.freeze({});

/** Both the patch and the precondition of the commit: one object, because every send has one. */
export class Receipt implements DocumentPatch {
  readonly kind = "absent";
  readonly scope: string;
  readonly id: string;
  /** Creation time of the message, if known. */
  readonly madeAtMs: number | undefined;
  readonly operations: readonly [PathOperation & { op: "set" }];

  /**
   * `value` must come from `admit`. `madeAtMs` must equal `madeAt(id)`; callers with many receipts of one time pass it.
   */
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
/** The shared operation of receipts without a result. */
export const NO_RESULT_LEFT: Receipt["operations"] = [{ op: "set", path: WHOLE, value: NO_RESULT }];

/** Precondition of a commit that writes no receipt and requires that none exists. */
export function requireAbsent({ scope, id }: DocumentRef): Precondition {
  return { kind: "absent", scope, id, madeAtMs: madeAt(id) };
}
