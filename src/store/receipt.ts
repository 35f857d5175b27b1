/**
 * A receipt: the document that a commit leaves as the witness of what was done, once. It must be absent, and its value is what a later
 * comer gets (rules I11, J57, L32, S77).
 *
 * Most receipts are never read by the process that leaves them. So a receipt goes to the backend with its commit and is not made a document of
 * the replica, unless it is one already. Whoever meets the document while the commit is pending gets it as if it had been written
 * here (`Confirmation.met`), which is why the names of receipts begin alike: nobody else is looked for.
 *
 * What a receipt is called says what it is of, and with that when that was made, where its id carries a time. Such a receipt has an end
 * (decision 0014): it may go when the store's horizon has passed that time, since nothing older is handled any more. SPEC: S100-S103.
 */
import { firstIdAt, TIMED_ID_LENGTH_MIN, timeInId } from "../message/id-time.ts";
import type { Json } from "../message/json.ts";
import { handOut } from "./admit.ts";
import type { DocumentPatch, Precondition } from "./commit.ts";
import type { DocumentRef } from "./document.ts";
import type { PathOperation } from "./path-operation.ts";
import { StoreError } from "./store.ts";

const PREFIX = "receipt";
/** Names go on with the id of a request, or of a send; or with the length of an event's id, the id, and who handled it. */
const OF_REQUEST = `${PREFIX}/`;
const OF_SEND = `${PREFIX}:stream:`;
const OF_EVENT = `${PREFIX}:`;
/** Receipts of events with longer ids have no end: they are looked for length by length. A send's id and what its handlers append to it fit. */
const TIMED_ID_LENGTH_MAX = 80;

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
    if (!id.startsWith(PREFIX)) throw new StoreError("STORE_MISUSE", `a receipt's name must begin with "${PREFIX}"`);
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

export function mayBeReceipt({ id }: DocumentRef): boolean {
  return id.startsWith(PREFIX);
}

/** When that was made of which a document of this name is the receipt; undefined where the name does not say. */
export function madeAt(name: string): number | undefined {
  if (name.startsWith(OF_REQUEST)) return timeInId(name, OF_REQUEST.length);
  if (name.startsWith(OF_SEND)) return timeInId(name, OF_SEND.length);
  const event = eventOf(name);
  return event === undefined ? undefined : timeInId(event);
}

/** The id of the event of whose delivery a document of this name is the receipt, if that has an end. */
export function eventOf(name: string): string | undefined {
  if (!name.startsWith(OF_EVENT)) return undefined;
  const end = name.indexOf(":", OF_EVENT.length);
  const length = Number(name.slice(OF_EVENT.length, end));
  if (!(length >= TIMED_ID_LENGTH_MIN && length <= TIMED_ID_LENGTH_MAX)) return undefined;
  return name.slice(end + 1, end + 1 + length);
}

/** For a commit that leaves none, and is to be made only where nobody has left one. */
export function requireAbsent({ scope, id }: DocumentRef): Precondition {
  return { kind: "absent", scope, id, madeAtMs: madeAt(id) };
}

/** Where names of receipts lie of what was made before a time: from the first text on, up to the second. Others may lie there too. */
export function namesMadeBefore(timeMs: number): readonly (readonly [from: string, to: string])[] {
  const first = firstIdAt(timeMs);
  return TIMED_PREFIXES.map((prefix) => [`${prefix}0`, `${prefix}${first}`]);
}

const TIMED_PREFIXES: readonly string[] = [
  OF_REQUEST,
  OF_SEND,
  ...Array.from(
    { length: TIMED_ID_LENGTH_MAX - TIMED_ID_LENGTH_MIN + 1 },
    (_, more) => `${OF_EVENT}${TIMED_ID_LENGTH_MIN + more}:`,
  ),
];
