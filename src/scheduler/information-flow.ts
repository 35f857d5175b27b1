/**
 * Who may know what (Scheduler v2 §10): the labels of runs, from what they read and what triggered them; of what they write; and
 * clearance. SPEC: I8, F1-F6, F8; why the two kinds of nodes have two rules is in decision 0010.
 *
 * ```
 *   computation: its output carries the join over the reads of its last run      (by contract it is a function of them)
 *   process:     an effect or materializer; carries the join over all it ever read and was triggered by, and never less
 * ```
 * Reads come here only for documents that are labelled. Not here: who is woken by a change of labels (`invalidation.ts`), how
 * labels are stored and travel (`store/document-labels.ts`).
 */
import type { LabelWrite } from "../store/commit.ts";
import { isWithin, join, type Label, type PlaceLabel, PUBLIC } from "../store/label.ts";
import { labelTaken, refusal } from "../store/label-checks.ts";
import { isPrefix } from "../store/path-operation.ts";
import type { Address, DocumentIndex } from "./address.ts";
import { labelSeen, requireWritable } from "./address-label.ts";
import { isList } from "./causes.ts";
import type { Invalidation } from "./invalidation.ts";
import { isProcess, type SchedulerNode } from "./node.ts";
import type { Run } from "./run.ts";

export class InformationFlow {
  readonly #invalidation: Invalidation;

  constructor(invalidation: Invalidation) {
    this.#invalidation = invalidation;
  }

  /** A run starts with what its node carries; that of a process also with what has triggered it. */
  triggered(run: Run): void {
    const { lastReason } = run.node;
    if (lastReason === null) return;
    // This is on the way of every effect: a single cause needs no list, and an iterator took 15 ns.
    if (!isList(lastReason)) return this.#triggeredBy(run, lastReason);
    for (let i = 0; i < lastReason.length; i++) this.#triggeredBy(run, lastReason[i] as Address);
  }

  #triggeredBy(run: Run, cause: Address): void {
    if (cause.document.labels !== undefined) this.#join(run, labelSeen(cause, false));
  }

  /** A read of a labelled document by a run; throws instead of giving what is above its clearance. */
  read(run: Run, address: Address, shallow: boolean): void {
    const label = labelSeen(address, shallow);
    if (label.length === 0) return;
    const { node } = run;
    if (node.clearance === undefined || isWithin(label, node.clearance)) return this.#join(run, label);
    // What a computed value is labelled with depends on what it was made of: being refused may tell anything up to the clearance.
    if (address.document.derived) this.#join(run, node.clearance);
    throw refusal(node.id, address);
  }

  #join(run: Run, label: Label): void {
    run.label = join(run.label, label);
    if (isProcess(run.node)) run.node.label = run.label;
  }

  /** Throws unless whoever may read at these places may know what the run knows. What a materializer has declared is raised instead. */
  requireWritable(run: Run, addresses: Iterable<Address>): void {
    if (run.label.length === 0) return;
    for (const address of addresses) {
      if (!isDeclared(run.node, address)) requireWritable(run.label, address, `node ${run.node.id}`);
    }
  }

  /** What has to be labelled with a materializer's run: all that it may write, so that it does not show whether it has. */
  raises({ node, label }: Run): LabelWrite[] {
    if (label.length === 0) return [];
    return (node.envelope ?? []).flatMap((place) => {
      const { scope, id, labels } = place.document;
      const { path } = place;
      if (isWithin(label, labelTaken(place.document, path))) return [];
      return [{ scope, id, path, labels: join(label, labels?.stored(path) ?? PUBLIC) }];
    });
  }

  /** Labels a document that a node derives, whole; whoever reads it is told. */
  derive(node: SchedulerNode, root: Address, label: Label): void {
    const { document } = root;
    if (label.length === 0 && document.labels === undefined) return;
    const change = document.relabel((labels) => labels.derive(label));
    if (change !== undefined) this.#invalidation.relabelled(root.home, change.before, change.after, node);
  }

  /** Labels a place with what the program says, here and now. */
  declare({ home, document, path }: Address, label: Label): void {
    this.#relabelled(
      home,
      document.relabel((labels) => labels.declare(path, label)),
    );
  }

  undeclare({ home, document, path }: Address, names: readonly string[]): void {
    if (document.labels === undefined) return;
    this.#relabelled(
      home,
      document.relabel((labels) => labels.undeclare(path, names)),
    );
  }

  #relabelled(
    home: DocumentIndex,
    change: { readonly before: readonly PlaceLabel[]; readonly after: readonly PlaceLabel[] } | undefined,
  ): void {
    if (change !== undefined) this.#invalidation.relabelled(home, change.before, change.after);
  }
}

function isDeclared({ envelope }: SchedulerNode, address: Address): boolean {
  if (envelope === undefined) return false;
  const { path } = address;
  return envelope.some((place) => place.home === address.home && isPrefix(place.path, path));
}
