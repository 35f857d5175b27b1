/**
 * Checks of store calls: text that every backend can hold, values that are JSON, valid numbers. A failed check is
 * misuse by the caller and throws. SPEC: S15. The content of data is checked elsewhere, where it enters the system.
 */
import {
  CONSUMERS_MAX,
  DEPTH_MAX,
  ERASE_SUBJECT_LENGTH_MIN,
  LIST_DOCUMENTS_MAX,
  PAYLOAD_BYTES_MAX,
} from "../limits.ts";
import { ID_TIME_MS_MAX } from "../message/id-time.ts";
import { findImpurity, isCleanText, type Json, type JsonLimits } from "../message/json.ts";
import { problemText } from "../message/problem.ts";
import { ADMITTED, type CommitRequest, type MembershipClaim, type Precondition } from "./commit.ts";
import type { Consumer } from "./consumer.ts";
import { type DocumentRef, SHARED_SCOPE } from "./document.ts";
import type { DueChange } from "./due.ts";
import type { EraseRequest } from "./erase.ts";
import type { Ending, JournalEntry, Settlement } from "./journal.ts";
import type { PathOperation } from "./path-operation.ts";
import { Receipt } from "./receipt.ts";
import { madeAt } from "./receipt-name.ts";
import { type ForgetRequest, type ListRequest, StoreError } from "./store.ts";

/** Levels that a request adds around a value: lists, operations, rows. */
const WRAPPING_DEPTH = 4;

/**
 * Sizes are limited where data enters the system. Depth is also limited here, because every walk over a value recurses.
 */
const LIMITS: JsonLimits = {
  bytesMax: Number.POSITIVE_INFINITY,
  depthMax: DEPTH_MAX + WRAPPING_DEPTH,
  keysMax: Number.POSITIVE_INFINITY,
};

export function checkName(what: string, text: string): void {
  if (isCleanText(text)) return;
  throw new StoreError("STORE_MISUSE", `${what} must not contain NUL or a lone surrogate; refuse it where it comes in`);
}

export function checkRef({ scope, id }: DocumentRef): void {
  if (scope !== SHARED_SCOPE) checkName("a document's scope", scope);
  checkName("a document's id", id);
}

/** A whole number, 0 or more. */
export function checkCount(what: string, count: number): void {
  if (Number.isSafeInteger(count) && count >= 0) return;
  throw new StoreError("STORE_MISUSE", `${what} must be a whole number of at least 0, got ${count}`);
}

/**
 * The operator's limit for one journal message. `PAYLOAD_BYTES_MAX` is the upper bound because other parts refuse more.
 */
export function checkPayloadBound(bytes: number): void {
  if (Number.isSafeInteger(bytes) && bytes >= 1 && bytes <= PAYLOAD_BYTES_MAX) return;
  const range = `a whole number of bytes from 1 to ${PAYLOAD_BYTES_MAX}`;
  throw new StoreError("STORE_MISUSE", `payloadBytesMax must be ${range}, got ${bytes}; name larger things in a file`);
}

export function checkErase({ subject }: EraseRequest): void {
  checkName("a subject", subject);
  if (subject.length >= ERASE_SUBJECT_LENGTH_MIN) return;
  throw new StoreError("STORE_MISUSE", `a subject has at least ${ERASE_SUBJECT_LENGTH_MIN} characters`);
}

export function checkTime(what: string, timeMs: number): void {
  if (Number.isFinite(timeMs)) return;
  throw new StoreError("STORE_MISUSE", `${what} must be a number of milliseconds, got ${timeMs}`);
}

export function checkCommit(request: CommitRequest): void {
  if (request.admitted !== ADMITTED) checkPayload(request);
  checkPreconditions(request.preconditions);
  for (const basis of request.basis) checkJson("a basis row", basis);
  for (const write of request.labels) checkJson("a label write", write);
  checkEntries(request.entries);
  checkSettlements(request.settlements);
  checkDueChanges(request.due);
}

function checkPayload(request: CommitRequest): void {
  checkName("a space's name", request.space);
  checkName("a session's name", request.session);
  checkName("a digest", request.digest);
  checkCount("a local sequence", request.localSequence);
  for (const patch of request.patches) {
    checkRef(patch);
    for (const operation of patch.operations) checkOperation(operation);
  }
  for (const read of request.reads) checkRef(read);
}

export function checkPreconditions(preconditions: readonly Precondition[]): void {
  for (const condition of preconditions) {
    if (condition.kind === "members") checkMembers(condition);
    if (condition.kind !== "absent") continue;
    checkRef(condition);
    // Retention finds receipts by the time in their names. A `Receipt` instance has derived its time already.
    if (condition instanceof Receipt || condition.madeAtMs === undefined) continue;
    if (condition.madeAtMs === madeAt(condition.id)) continue;
    throw new StoreError("STORE_MISUSE", "madeAtMs of a receipt must be the time that the id in its name carries");
  }
}

function checkMembers({ scope, prefix, sequence }: MembershipClaim): void {
  checkName("a document's scope", scope);
  checkName("a prefix of ids", prefix);
  checkCount("the sequence of a list", sequence);
}

export function checkList({ scope, prefix, after, limit }: ListRequest): void {
  checkName("a document's scope", scope);
  checkName("a prefix of ids", prefix);
  if (after !== undefined) checkName("a document's id", after);
  checkCount("a limit", limit);
  if (limit >= 1 && limit <= LIST_DOCUMENTS_MAX) return;
  throw new StoreError(
    "STORE_MISUSE",
    `a page of a list has 1 to ${LIST_DOCUMENTS_MAX} documents, got ${limit}; read several`,
  );
}

/** Avoids a walk over the known shape; most operations set a leaf. */
function checkOperation(operation: PathOperation): void {
  if (operation.op !== "set") return checkJson("a path operation", operation);
  for (let i = 0; i < operation.path.length; i++) checkName("a step of a path", operation.path[i] as string);
  if (!isPlain(operation.value)) checkJson("the value of a path operation", operation.value);
}

/** Values that need no further check. Most values are a number, most receipts `{}`. */
function isPlain(value: Json): boolean {
  if (typeof value !== "object" || value === null)
    return typeof value === "boolean" || value === null || (Number.isInteger(value) && !Object.is(value, -0));
  return Object.getPrototypeOf(value) === Object.prototype && Reflect.ownKeys(value).length === 0;
}

export function checkEntries(entries: readonly JournalEntry[]): void {
  for (const { message, topic, source, as } of entries) {
    checkName("a topic", topic);
    checkName("a source", source);
    checkJson("a message", message);
    if (as.status === "failed") checkName("an error", as.error);
    if (as.status === "done" && as.ending !== undefined) checkEnding(as.ending);
  }
}

export function checkEnding({ outcome, reason }: Ending): void {
  checkName("an outcome", outcome);
  checkName("a reason", reason);
}

export function checkSettlements(settlements: readonly Settlement[]): void {
  for (const { outcome, deliveries } of settlements) {
    // Most settlements are a plain `done`.
    if (outcome.kind !== "done" || outcome.ending !== undefined) checkJson("an outcome", outcome);
    if (outcome.kind === "waits" && outcome.atMs !== undefined) checkTime("the time of a retry", outcome.atMs);
    if (outcome.kind === "retry") checkTime("the time of a retry", outcome.atMs);
    if (deliveries !== undefined) checkJson("a delivery", deliveries);
  }
}

export function checkConsumers(consumers: readonly Consumer[]): void {
  for (const { name, pattern } of consumers) {
    if (name !== "" && pattern !== "" && !name.includes(" ") && !pattern.includes(" ")) {
      checkName("a consumer's name", name);
      checkName("a consumer's pattern", pattern);
    } else throw new StoreError("STORE_MISUSE", "a consumer's name and pattern must be texts without blanks");
  }
}

export function tooManyConsumers(): StoreError {
  const remedy = 'remove those that are gone for good with "millrace consumers remove NAME"';
  return new StoreError("STORE_MISUSE", `a store takes ${CONSUMERS_MAX} consumers; ${remedy}`);
}

export function checkDueChanges(changes: readonly DueChange[]): void {
  for (const change of changes) {
    checkJson("a due row", change);
    if ("dueAtMs" in change) checkTime("a deadline", change.dueAtMs);
  }
}

export function checkForget({ madeBeforeMs, limit }: ForgetRequest): void {
  const what = "the time before which receipts are forgotten";
  checkTime(what, madeBeforeMs);
  checkCount("a limit", limit);
  // The horizon never moves back, so a time beyond all ids would refuse every message from then on.
  if (madeBeforeMs <= ID_TIME_MS_MAX) return;
  throw new StoreError("STORE_MISUSE", `${what} must be one that an id can carry, got ${madeBeforeMs}`);
}

/** Checks keys and texts of the whole value in one walk. */
function checkJson(what: string, value: unknown): void {
  const problem = findImpurity(value, LIMITS);
  if (problem !== undefined) throw new StoreError("STORE_MISUSE", `${what}: ${problemText(problem)}`);
}
