/**
 * Applying what a transaction has written to one document of its replica. Writes that change nothing are left out, wide
 * replacements become their differences. What is left out was still meant: it is claimed as read, so that whoever changed it
 * meanwhile makes the commit stale instead of surviving it. SPEC: S46, S57, S58.
 */
import type { Json, JsonArray } from "../message/json.ts";
import type { Path } from "../message/path.ts";
import { admit } from "./admit.ts";
import type { Change } from "./change.ts";
import type { ReadClaim } from "./commit.ts";
import { sequenceSeen } from "./commit-request.ts";
import type { Draft } from "./draft.ts";
import { withOne } from "./few.ts";
import { isWide, narrow } from "./narrow.ts";
import { isPrefix, type PathOperation } from "./path-operation.ts";
import type { DocumentShare } from "./pending-commit.ts";
import type { ReplicaDocument } from "./replica-document.ts";

/** What applying a commit adds to. */
export interface Application {
  changes: readonly Change[];
  claims: readonly ReadClaim[];
  /** The sequence and the tick that the replica stands at. */
  readonly position: number;
  readonly tick: number;
}

/** Undefined when nothing happened to the document. */
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
  return applied.length === 0 ? undefined : { commit: undefined, document, operations: applied, inverses };
}

/** Applies one operation, adds what changed, and gives what takes it back. */
function apply(document: ReplicaDocument, operation: PathOperation, application: Application): PathOperation {
  const { inverse, change } = document.apply(operation);
  application.changes = withOne(application.changes, change);
  return inverse;
}

/** Whether an operation is certain to happen as it stands; so most do. */
function isPlain(operation: PathOperation, before: Json | undefined): boolean {
  if (before === undefined || operation.op === "delete") return true;
  return operation.op === "set" && typeof operation.value !== "object" && !Object.is(operation.value, before);
}

/** Whether an operation puts something small that is not what is there. What it puts was compared with that when it was written. */
function isAnother(operation: PathOperation, before: Json | undefined): boolean {
  return operation.op === "set" && !Object.is(operation.value, before) && !isWide(operation.value);
}

interface Effect {
  readonly operations: readonly PathOperation[];
  /** Part of what was written is there already. */
  readonly leavesOut: boolean;
}

const NO_EFFECT: Effect = { operations: [], leavesOut: true };

/** What an operation comes to over the present value. */
function effectOf(operation: PathOperation, before: Json): Effect {
  if (operation.op === "delete") return { operations: [operation], leavesOut: false };
  if (operation.op === "splice") return effectOfSplice(operation, before as JsonArray);
  const { path } = operation;
  const value = admit(operation.value, before, path.length);
  if (Object.is(before, value)) return NO_EFFECT;
  const differences = narrow(path, before, value);
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

/** Whether the commit itself has put what is at the path. */
function isReplacedBy(applied: readonly PathOperation[], path: Path): boolean {
  return applied.some((own) => own.op !== "splice" && isPrefix(own.path, path));
}
