/**
 * Counts holders of documents that are not in the replica. When such a document is created there, its holds are
 * transferred, and it is loaded if another session has written it meanwhile. SPEC: S60-S66.
 */
import type { DocumentRef } from "./document.ts";
import type { ReplicaDocument } from "./replica-document.ts";

export class AbsentHolds {
  /** Number of holders, by scope and id. */
  readonly #counts = new Map<string, Map<string, number>>();
  /** Held documents that another session has written, by scope and id. */
  readonly #moved = new Map<string, Set<string>>();

  hold({ scope, id }: DocumentRef): void {
    let counts = this.#counts.get(scope);
    if (counts === undefined) {
      counts = new Map();
      this.#counts.set(scope, counts);
    }
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }

  letGo(ref: DocumentRef): void {
    const counts = this.#counts.get(ref.scope);
    const count = counts?.get(ref.id);
    if (counts === undefined || count === undefined) return;
    if (count > 1) counts.set(ref.id, count - 1);
    else this.#forget(ref);
  }

  /** Another session has written the document. */
  moved({ scope, id }: DocumentRef): void {
    if (this.#counts.get(scope)?.has(id)) this.#movedIn(scope).add(id);
  }

  /** Other sessions may have written any document. */
  allMoved(): void {
    for (const [scope, counts] of this.#counts) for (const id of counts.keys()) this.#movedIn(scope).add(id);
  }

  /** The document is now in the replica: transfers its holds. Returns true if it has changed meanwhile. */
  handOver(document: ReplicaDocument): boolean {
    const { scope, id } = document;
    const count = this.#counts.get(scope)?.get(id);
    if (count === undefined) return false;
    document.observers += count;
    return this.#forget(document);
  }

  /** Returns true if it has changed. */
  #forget({ scope, id }: DocumentRef): boolean {
    this.#counts.get(scope)?.delete(id);
    return this.#moved.get(scope)?.delete(id) ?? false;
  }

  #movedIn(scope: string): Set<string> {
    let moved = this.#moved.get(scope);
    if (moved === undefined) {
      moved = new Set();
      this.#moved.set(scope, moved);
    }
    return moved;
  }
}
