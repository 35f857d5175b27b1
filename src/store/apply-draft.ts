/**
 * Applies the writes of a transaction to one document of its replica. Writes without an effect are left out, and wide
 * replacements become their differences. A part that is left out is claimed as a read, so that the commit becomes stale
 * if another session changes it. SPEC: S46, S57, S58.
 */
import type { Json, JsonArray } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import { admit } from "./admit.ts";
import type { Change } from "./change.ts";
import type { ReadClaim } from "./commit.ts";
import { sequenceSeen } from "./commit-request.ts";
import type { Draft } from "./draft.ts";
import { isWide, jsonDiff } from "./json-diff.ts";
import { isPrefix, outermost, type PathOperation } from "./path-operation.ts";
import type { DocumentShare } from "./pending-commit.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import { withOne } from "./small-list.ts";

/** Collects the results of applying a commit. */
export interface Application {
  changes: readonly Change[];
  claims: readonly ReadClaim[];
  /** The replica's current sequence and tick. */
  readonly position: number;
  readonly tick: number;
}

/** Undefined if the document is unchanged. */
export function applyDraft(
  document: ReplicaDocument,
  draft: Draft,
  application: Application,
): DocumentShare | undefined {
  const { operations } = draft;
  const only = operations[0];
  if (operations.length === 1 && only !== undefined) {
    const before = document.read(only.path);
    if (isPlain(only, before) || (draft.isFresh(application.tick) && isAnother(only, before)))
      return { commit: undefined, document, operations, inverses: [apply(document, only, application)] };
  }
  const told = application.changes.length;
  const applied: PathOperation[] = [];
  const inverses: PathOperation[] = [];
  for (const operation of operations) {
    const before = document.read(operation.path);
    if (isPlain(operation, before)) {
      inverses.push(apply(document, operation, application));
      applied.push(operation);
      continue;
    }
    const effect = effectOf(operation, before as Json);
    if (effect.leavesOut && !isReplacedBy(applied, operation.path)) {
      const claim: ReadClaim = {
        scope: document.scope,
        id: document.id,
        path: operation.path,
        depth: "deep",
        sequence: sequenceSeen(document, application.position),
      };
      application.claims = withOne(application.claims, claim);
    }
    for (const effective of effect.operations) {
      inverses.push(apply(document, effective, application));
      applied.push(effective);
    }
  }
  if (applied.length === 0) return undefined;
  const share = { commit: undefined, document, operations: applied, inverses };
  const paths = applied.map(({ path }) => path);
  // Each change knows the value before its own write; listeners know the one before all of them.
  if (applied.length > 1 && outermost(paths).length < paths.length)
    application.changes = [...application.changes.slice(0, told), ...document.changesOf(share)];
  return share;
}

/** Applies one operation, records the change, and returns the inverse. */
function apply(document: ReplicaDocument, operation: PathOperation, application: Application): PathOperation {
  const { inverse, change } = document.apply(operation);
  application.changes = withOne(application.changes, change);
  return inverse;
}

/** Whether an operation certainly has an effect as written; most do. */
function isPlain(operation: PathOperation, before: Json | undefined): boolean {
  if (before === undefined || operation.op === "delete") return true;
  return operation.op === "set" && typeof operation.value !== "object" && !Object.is(operation.value, before);
}

/**
 * Whether an operation writes a small, different value. The value was compared with the current one when it was
 * written.
 */
function isAnother(operation: PathOperation, before: Json | undefined): boolean {
  return operation.op === "set" && !Object.is(operation.value, before) && !isWide(operation.value);
}

interface Effect {
  readonly operations: readonly PathOperation[];
  /** Part of the written value equals the current one. */
  readonly leavesOut: boolean;
}

const NO_EFFECT: Effect = { operations: [], leavesOut: true };

/** The effect of an operation on the current value. */
function effectOf(operation: PathOperation, before: Json): Effect {
  if (operation.op === "delete") return { operations: [operation], leavesOut: false };
  if (operation.op === "splice") return effectOfSplice(operation, before as JsonArray);
  const { path } = operation;
  const value = admit(operation.value, before, path.length);
  if (Object.is(before, value)) return NO_EFFECT;
  const differences = jsonDiff(path, before, value);
  if (differences) return { operations: differences, leavesOut: true };
  return { operations: [{ op: "set", path, value }], leavesOut: false };
}

function effectOfSplice(operation: PathOperation & { op: "splice" }, before: JsonArray): Effect {
  const { op, path, index, remove } = operation;
  if (remove === 0 && operation.insert.length > 0) return { operations: [operation], leavesOut: false };
  const insert = operation.insert.map((item, i) =>
    admit(item, i < remove ? before[index + i] : undefined, path.length + 1),
  );
  const isSame = remove === insert.length && insert.every((item, i) => Object.is(item, before[index + i]));
  return isSame ? NO_EFFECT : { operations: [{ op, path, index, remove, insert }], leavesOut: false };
}

/** Whether this commit itself has written the value at the path. */
function isReplacedBy(applied: readonly PathOperation[], path: Path): boolean {
  return applied.some((own) => own.op !== "splice" && isPrefix(own.path, path));
}
