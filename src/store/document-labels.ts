/**
 * The labels of the places of one document in a replica: confirmed labels, pending label writes on top, and local ones
 * (declared by the program before the load, or derived by the node that computes it). Exists only for labelled
 * documents. SPEC: S76.
 */
import type { Path } from "../message/path.ts";
import type { LabelWrite } from "./commit.ts";
import type { DocumentRef } from "./document.ts";
import { isWithin, join, type Label, labelOf, type PlaceLabel, PUBLIC } from "./label.ts";
import { isPrefix } from "./path-operation.ts";
import type { StackedCommit } from "./pending-index.ts";
import type { AddressLabels } from "./store.ts";

/** A stored label write and its sequence. */
interface StoredLabels {
  readonly sequence: number;
  readonly write: AddressLabels;
}

interface PendingLabels {
  readonly commit: StackedCommit;
  readonly write: AddressLabels;
}

/** Labels of a document before and after a change. */
export interface LabelChange extends DocumentRef {
  readonly before: readonly PlaceLabel[];
  readonly after: readonly PlaceLabel[];
}

const NOWHERE: readonly PlaceLabel[] = Object.freeze([]);

export class DocumentLabels {
  #confirmed: readonly AddressLabels[] = [];
  /** The last write to each place since the last load. A load with an older state may still arrive. */
  #since: readonly StoredLabels[] = [];
  #pending: readonly PendingLabels[] = [];
  /** Labels declared by the program; joined with the stored ones. */
  #declared: readonly AddressLabels[] = [];
  /** The label of the whole document from its node's last run. */
  #derived: Label = PUBLIC;
  #places: readonly PlaceLabel[] = NOWHERE;

  /** All labels joined. */
  get places(): readonly PlaceLabel[] {
    return this.#places;
  }

  /** Whether some labels exist only here: pending, or declared and not stored yet. */
  get isUnstored(): boolean {
    if (this.#pending.length > 0) return true;
    return this.#declared.some(({ path, labels }) => !isWithin(labelOf(labels), at(this.#confirmed, path)));
  }

  /**
   * Labels loaded at a sequence. Later stored writes are kept on top, then the pending writes, except those of commits
   * that the load includes.
   */
  loaded(labels: readonly AddressLabels[], sequence: number, keep: (commit: StackedCommit) => boolean): void {
    this.#since = this.#since.filter((one) => one.sequence > sequence);
    this.#confirmed = this.#since.reduce((all, { write }) => replace(all, write), labels);
    this.#pending = this.#pending.filter(({ commit }) => keep(commit));
    this.#join();
  }

  /** Integrates a stored label write of another session. */
  integrate(write: LabelWrite, sequence: number): void {
    this.#store(write, sequence);
    this.#join();
  }

  #store(write: AddressLabels, sequence: number): void {
    const isSamePlace = (one: StoredLabels) => isSame(one.write.path, write.path);
    // Writes missed during a load arrive late.
    if (this.#since.some((one) => isSamePlace(one) && one.sequence > sequence)) return;
    this.#confirmed = replace(this.#confirmed, write);
    this.#since = [...this.#since.filter((one) => !isSamePlace(one)), { sequence, write }];
  }

  addPending(commit: StackedCommit, write: LabelWrite): void {
    this.#pending = [...this.#pending, { commit, write }];
    this.#join();
  }

  /**
   * The commit's label writes are confirmed. The visible labels stay the same; later rollbacks and older loads see them
   * as stored.
   */
  confirm(commit: StackedCommit, sequence: number): void {
    for (const { commit: of, write } of this.#pending) if (of === commit) this.#store(write, sequence);
    this.#pending = this.#pending.filter((pending) => pending.commit !== commit);
    this.#join();
  }

  drop(fallen: (commit: StackedCommit) => boolean): void {
    this.#pending = this.#pending.filter(({ commit }) => !fallen(commit));
    this.#join();
  }

  declare(path: Path, label: Label): void {
    this.#declared = replace(this.#declared, { path, labels: join(label, at(this.#declared, path)) });
    this.#join();
  }

  /** Withdraws declared names. */
  undeclare(path: Path, names: readonly string[]): void {
    const labels = at(this.#declared, path).filter((name) => !names.includes(name));
    this.#declared = replace(this.#declared, { path, labels });
    this.#join();
  }

  derive(label: Label): void {
    this.#derived = label;
    this.#join();
  }

  get derived(): Label {
    return this.#derived;
  }

  /** The stored or pending label of exactly this place. */
  stored(path: Path): Label {
    return at(this.#stored(), path);
  }

  #stored(): readonly AddressLabels[] {
    return this.#pending.reduce((labels, { write }) => replace(labels, write), this.#confirmed);
  }

  #join(): void {
    const derived = this.#derived.length === 0 ? [] : [{ path: [], labels: this.#derived }];
    const all = [...this.#declared, ...derived].reduce<readonly AddressLabels[]>(
      (places, { path, labels }) => replace(places, { path, labels: join(labels, at(places, path)) }),
      this.#stored(),
    );
    this.#places = all.length === 0 ? NOWHERE : all.map(({ path, labels }) => ({ path, label: labelOf(labels) }));
  }
}

/** A label write replaces the labels of its place; an empty one removes them. */
function replace(labels: readonly AddressLabels[], { path, labels: names }: AddressLabels): readonly AddressLabels[] {
  const others = labels.filter((one) => !isSame(one.path, path));
  return names.length === 0 ? others : [...others, { path, labels: names }];
}

function at(labels: readonly AddressLabels[], path: Path): Label {
  return labelOf(labels.find((one) => isSame(one.path, path))?.labels ?? PUBLIC);
}

function isSame(a: Path, b: Path): boolean {
  return a.length === b.length && isPrefix(a, b);
}
