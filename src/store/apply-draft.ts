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
import { narrow } from "./narrow.ts";
import { isPrefix, type PathOperation } from "./path-operation.ts";
import type { ReplicaDocument } from "./replica-document.ts";

/** What a commit did to one document, and how to take it back. */
export interface Share {
  readonly operations: PathOperation[];
  readonly inverses: PathOperation[];
}

/** What applying a commit adds to. */
export interface Application {
  readonly changes: Change[];
  readonly claims: ReadClaim[];
}

export function applyDraft(
  document: ReplicaDocument,
  operations: readonly PathOperation[],
  sequence: number,
  { changes, claims }: Application,
): Share {
  const share: Share = { operations: [], inverses: [] };
  for (const operation of operations) {
    const effect = effectOf(operation, document.read(operation.path));
    if (effect.leavesOut && !isReplacedBy(share, operation.path)) {
      claims.push({ scope: document.scope, id: document.id, path: operation.path, depth: "deep", sequence });
    }
    for (const effective of effect.operations) {
      const { change, inverse } = document.apply(effective);
      share.operations.push(effective);
      share.inverses.push(inverse);
      changes.push(change);
    }
  }
  return share;
}

interface Effect {
  readonly operations: readonly PathOperation[];
  /** Part of what was written is there already. */
  readonly leavesOut: boolean;
}

const NO_EFFECT: Effect = { operations: [], leavesOut: true };

/** What an operation comes to over the present value. */
function effectOf(operation: PathOperation, before: Json | undefined): Effect {
  if (operation.op === "delete" || before === undefined) return { operations: [operation], leavesOut: false };
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
function isReplacedBy(share: Share, path: Path): boolean {
  return share.operations.some((own) => own.op !== "splice" && isPrefix(own.path, path));
}
