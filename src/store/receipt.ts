/**
 * A receipt: the document that a commit leaves as the witness of what was done, once. It must be absent, and its value is what a later
 * comer gets (rules I11, J57, L32, S77).
 *
 * Most receipts are never read by the process that leaves them. So a receipt goes to the backend with its commit and is not made a document of
 * the replica, unless it is one already. Whoever meets the document while the commit is pending gets it as if it had been written
 * here (`Confirmation.met`), which is why the names of receipts begin alike: nobody else is looked for.
 */
import type { Json } from "../message/json.ts";
import { handOut } from "./admit.ts";
import type { DocumentPatch } from "./commit.ts";
import type { DocumentRef } from "./document.ts";
import type { PathOperation } from "./path-operation.ts";
import { StoreError } from "./store.ts";

const PREFIX = "receipt";

/** Both what the commit writes and what it requires: one object, since every send has one. */
export class Receipt implements DocumentPatch {
  readonly kind = "absent";
  readonly scope: string;
  readonly id: string;
  readonly operations: readonly [PathOperation & { op: "set" }];

  /** The value as `admit` has given it. */
  constructor({ scope, id }: DocumentRef, value: Json) {
    if (!id.startsWith(PREFIX)) throw new StoreError("STORE_MISUSE", `a receipt's name must begin with "${PREFIX}"`);
    this.scope = scope;
    this.id = id;
    this.operations = [{ op: "set", path: WHOLE, value: handOut(value) }];
  }

  get value(): Json {
    return this.operations[0].value;
  }
}

const WHOLE: readonly string[] = Object.freeze([]);

export function mayBeReceipt({ id }: DocumentRef): boolean {
  return id.startsWith(PREFIX);
}
