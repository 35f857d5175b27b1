/**
 * What the places of one document are labelled with, as a replica knows it: what is confirmed, with this replica's pending label
 * writes on top, and what the node that derives the document has given it. Only documents that are labelled have one. SPEC: S76.
 */
import type { LabelWrite } from "./commit.ts";
import type { DocumentRef } from "./document.ts";
import { join, type Label, labelOf, type PlaceLabel, PUBLIC } from "./label.ts";
import type { PendingCommit } from "./pending-commit.ts";
import type { AddressLabels } from "./store.ts";

interface PendingLabels {
  readonly commit: PendingCommit;
  readonly write: AddressLabels;
}

/** Labels of a document before and after something happened to them. */
export interface LabelChange extends DocumentRef {
  readonly before: readonly PlaceLabel[];
  readonly after: readonly PlaceLabel[];
}

const NOWHERE: readonly PlaceLabel[] = Object.freeze([]);

export class DocumentLabels {
  #confirmed: readonly AddressLabels[] = [];
  #pending: readonly PendingLabels[] = [];
  /** What was derived for the whole document by its node's last run; nothing that is stored by itself. */
  #derived: Label = PUBLIC;
  #places: readonly PlaceLabel[] = NOWHERE;

  /** All of it together. */
  get places(): readonly PlaceLabel[] {
    return this.#places;
  }

  get isPending(): boolean {
    return this.#pending.length > 0;
  }

  /** What a backend has said; what this replica has pending stays on top, but for commits that the answer contains. */
  loaded(
    labels: readonly AddressLabels[],
    missed: readonly LabelWrite[],
    keep: (commit: PendingCommit) => boolean,
  ): void {
    this.#confirmed = missed.reduce(replace, labels);
    this.#pending = this.#pending.filter(({ commit }) => keep(commit));
    this.#join();
  }

  /** Somebody else's label write. */
  integrate(write: LabelWrite): void {
    this.#confirmed = replace(this.#confirmed, write);
    this.#join();
  }

  addPending(commit: PendingCommit, write: LabelWrite): void {
    this.#pending = [...this.#pending, { commit, write }];
    this.#join();
  }

  /** The commit's label writes are confirmed; nothing changes but what happens when others fall. */
  confirm(commit: PendingCommit): void {
    const isOf = (pending: PendingLabels) => pending.commit === commit;
    this.#confirmed = this.#pending.filter(isOf).reduce((labels, { write }) => replace(labels, write), this.#confirmed);
    this.#pending = this.#pending.filter((pending) => !isOf(pending));
    this.#join();
  }

  drop(fallen: (commit: PendingCommit) => boolean): void {
    this.#pending = this.#pending.filter(({ commit }) => !fallen(commit));
    this.#join();
  }

  derive(label: Label): void {
    this.#derived = label;
    this.#join();
  }

  #join(): void {
    const writes = this.#pending.reduce((labels, { write }) => replace(labels, write), this.#confirmed);
    const places = writes.map(({ path, labels }) => ({ path, label: labelOf(labels) }));
    if (this.#derived.length > 0) {
      const root = places.findIndex(({ path }) => path.length === 0);
      if (root < 0) places.push({ path: [], label: this.#derived });
      else places[root] = { path: [], label: join(this.#derived, (places[root] as PlaceLabel).label) };
    }
    this.#places = places.length === 0 ? NOWHERE : places;
  }
}

/** A label write replaces what its place had; an empty one removes it. */
function replace(labels: readonly AddressLabels[], { path, labels: names }: AddressLabels): readonly AddressLabels[] {
  const others = labels.filter(
    (one) => one.path.length !== path.length || one.path.some((step, i) => step !== path[i]),
  );
  return names.length === 0 ? others : [...others, { path, labels: names }];
}
