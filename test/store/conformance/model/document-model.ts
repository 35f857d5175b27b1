/**
 * Spaces, documents and basis rows as plainly as they can be said: every write is remembered for ever and searched each
 * time.
 */
import type { Json } from "../../../../src/message/json.ts";
import type { Path } from "../../../../src/message/path.ts";
import type { CommitRequest, DocumentPatch, NodeBasis } from "../../../../src/store/commit.ts";
import type { PathOperation, ReadDepth } from "../../../../src/store/path-operation.ts";
import type { FeedCommit, RecordedBasis } from "../../../../src/store/store.ts";

interface Write {
  readonly sequence: number;
  readonly session: string;
  readonly id: string;
  readonly path: Path;
}

/** One space. All its documents have the shared scope, so that their ids name them. */
export class SpaceModel {
  sequence = 0;
  readonly values = new Map<string, Json>();
  readonly commits: FeedCommit[] = [];
  /** When documents came and went. */
  readonly turns: { readonly sequence: number; readonly id: string }[] = [];
  readonly basis = new Map<string, NodeBasis>();
  /** By document id and path as text. */
  readonly labels = new Map<string, { readonly id: string; readonly path: Path; readonly labels: readonly string[] }>();

  get writes(): Write[] {
    return this.commits.flatMap(({ sequence, session, patches }) =>
      patches.flatMap(({ id, operations }) => operations.map(({ path }) => ({ sequence, session, id, path }))),
    );
  }

  /** 0 for a document that never was. */
  sequenceOf(id: string): number {
    return Math.max(0, ...this.writes.filter((write) => write.id === id).map((write) => write.sequence));
  }

  hasMoved(id: string, path: Path, depth: ReadDepth, sequence: number, exceptSession?: string): boolean {
    return this.writes.some(
      (write) =>
        write.id === id &&
        write.sequence > sequence &&
        write.session !== exceptSession &&
        isTouched(write.path, path, depth),
    );
  }

  membersChanged(prefix: string, sequence: number): boolean {
    return this.turns.some((turn) => turn.sequence > sequence && turn.id.startsWith(prefix));
  }

  apply(request: CommitRequest): void {
    const before = new Set(this.values.keys());
    for (const patch of request.patches) patchValues(this.values, patch);
    for (const id of new Set(request.patches.map((patch) => patch.id)))
      if (before.has(id) !== this.values.has(id)) this.turns.push({ sequence: this.sequence + 1, id });
    if (request.patches.length > 0 || request.labels.length > 0) {
      const { session, localSequence, patches, labels } = request;
      this.commits.push({ sequence: ++this.sequence, session, localSequence, patches: joined(patches), labels });
    }
    for (const { id, path, labels } of request.labels) {
      const key = JSON.stringify([id, path]);
      if (labels.length === 0) this.labels.delete(key);
      else this.labels.set(key, { id, path, labels });
    }
    for (const node of request.basisRemoved) this.basis.delete(node);
    for (const basis of request.basis) this.basis.set(basis.node, basis);
  }

  recorded(nodes: readonly string[]): RecordedBasis[] {
    return nodes.flatMap((node) => {
      const basis = this.basis.get(node);
      if (basis === undefined) return [];
      const inputs = basis.inputs.map((input) => ({
        ...input,
        moved:
          [...this.labels.values()].some(({ id }) => id === input.id) ||
          input.reads.some(({ path, depth }) => this.hasMoved(input.id, path, depth, input.sequence)),
      }));
      return [{ ...basis, inputs }];
    });
  }
}

/** One patch for each document, in the order in which they are first named. */
function joined(patches: readonly DocumentPatch[]): DocumentPatch[] {
  const ids = [...new Set(patches.map((patch) => patch.id))];
  return ids.map((id) => {
    const ofDocument = patches.filter((patch) => patch.id === id);
    return { ...ofDocument[0]!, operations: ofDocument.flatMap((patch) => patch.operations) };
  });
}

function isTouched(write: Path, read: Path, depth: ReadDepth): boolean {
  const shared = Math.min(write.length, read.length);
  for (let i = 0; i < shared; i++) if (write[i] !== read[i]) return false;
  if (write.length <= read.length) return true;
  switch (depth) {
    case "deep":
      return true;
    case "shallow":
      return write.length === read.length + 1;
    case "reach":
      return false;
  }
}

/** Changes the values of a map as the patch says. */
export function patchValues(values: Map<string, Json>, { id, operations }: DocumentPatch): void {
  for (const operation of operations) {
    const root: { value?: Json } = {};
    const before = values.get(id);
    if (before !== undefined) root.value = structuredClone(before);
    change(root, operation);
    if (root.value === undefined) values.delete(id);
    else values.set(id, root.value);
  }
}

/** The root is held under `value`, so that the empty path is no special case. */
function change(root: { value?: Json }, operation: PathOperation): void {
  const path = ["value", ...operation.path];
  const last = operation.op === "splice" ? undefined : path.pop()!;
  let at = root as { [step: string]: unknown };
  for (const step of path) at = at[step] as { [step: string]: unknown };
  if (typeof at !== "object" || at === null) throw new Error(`no container on the way to ${path.join(" ")}`);
  if (operation.op === "set") at[last!] = structuredClone(operation.value);
  else if (operation.op === "delete") delete at[last!];
  else (at as unknown[] & typeof at).splice(operation.index, operation.remove, ...structuredClone(operation.insert));
}
