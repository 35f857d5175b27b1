/**
 * Documents that somebody rests on though they are not in the replica: holding one makes nothing but a count here. When it comes into the
 * replica it is held there as often, and is loaded if others have written it meanwhile. SPEC: S60-S66.
 */
import type { DocumentRef } from "./document.ts";
import type { ReplicaDocument } from "./replica-document.ts";

export class AbsentHolds {
  /** How many hold each, by scope and id. */
  readonly #counts = new Map<string, Map<string, number>>();
  /** Those that others have written since they are held, by scope and id. */
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

  /** Others have written the document. */
  moved({ scope, id }: DocumentRef): void {
    if (this.#counts.get(scope)?.has(id)) this.#movedIn(scope).add(id);
  }

  /** Others may have written any document. */
  allMoved(): void {
    for (const [scope, counts] of this.#counts) for (const id of counts.keys()) this.#movedIn(scope).add(id);
  }

  /** The document is in the replica from now on, with its holds; true if it has moved. */
  handOver(document: ReplicaDocument): boolean {
    const { scope, id } = document;
    const count = this.#counts.get(scope)?.get(id);
    if (count === undefined) return false;
    document.observers += count;
    return this.#forget(document);
  }

  /** True if it has moved. */
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
