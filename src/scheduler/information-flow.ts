/**
 * Information flow (Scheduler v2 §10): the labels of runs, from their reads and triggers; the labels of their writes;
 * clearance. SPEC: I8, F1-F6, F8. Decision 0010 explains why the two kinds of nodes have different rules.
 *
 * ```
 *   computation: its output has the join over the reads of its last run      (it is a function of them)
 *   process:     an effect or materializer; has the join over all its reads and triggers so far, and never less
 * ```
 * Reads come here only for documents with labels. Not here: the nodes that a change of labels invalidates
 * (`invalidation.ts`), and the storage of labels (`store/document-labels.ts`).
 */
import type { LabelWrite } from "../store/commit.ts";
import { isWithin, join, type Label, type PlaceLabel, PUBLIC } from "../store/label.ts";
import { labelTaken, refusal } from "../store/label-checks.ts";
import { isPrefix } from "../store/path-operation.ts";
import { labelSeen, requireWritable } from "./address-label.ts";
import { isList } from "./causes.ts";
import type { Invalidation } from "./invalidation.ts";
import { type DocumentIndex, isProcess, type NodeAddress, type SchedulerNode } from "./node.ts";
import type { Run } from "./run.ts";

export class InformationFlow {
  readonly #invalidation: Invalidation;

  constructor(invalidation: Invalidation) {
    this.#invalidation = invalidation;
  }

  /** A run starts with its node's label; the run of a process also gets the labels of its triggers. */
  triggered(run: Run): void {
    const { lastReason } = run.node;
    if (lastReason === null) return;
    // Every effect comes here: a single cause needs no list, and an iterator took 15 ns.
    if (!isList(lastReason)) return this.#triggeredBy(run, lastReason);
    for (let i = 0; i < lastReason.length; i++) this.#triggeredBy(run, lastReason[i] as NodeAddress);
  }

  #triggeredBy(run: Run, cause: NodeAddress): void {
    if (cause.document.labels !== undefined) this.#join(run, labelSeen(cause, false));
  }

  /** A run's read of a labelled document; throws if the label is above the node's clearance. */
  read(run: Run, address: NodeAddress, shallow: boolean): void {
    const label = labelSeen(address, shallow);
    if (label.length === 0) return;
    const { node } = run;
    if (node.clearance === undefined || isWithin(label, node.clearance)) return this.#join(run, label);
    // The label of a computed value depends on its inputs, so even the refusal may reveal data up to the clearance.
    if (address.document.derived) this.#join(run, node.clearance);
    throw refusal(node.id, address);
  }

  #join(run: Run, label: Label): void {
    run.label = join(run.label, label);
    if (isProcess(run.node)) run.node.label = run.label;
  }

  /**
   * Throws unless every reader of the places is cleared for the run's label. The envelope of a materializer is raised
   * instead.
   */
  requireWritable(run: Run, addresses: Iterable<NodeAddress>): void {
    if (run.label.length === 0) return;
    for (const address of addresses) {
      if (!isDeclared(run.node, address)) requireWritable(run.label, address, `node ${run.node.id}`);
    }
  }

  /** The labels for a materializer's whole envelope, so that the label does not reveal whether it has written. */
  raises({ node, label }: Run): LabelWrite[] {
    if (label.length === 0) return [];
    return (node.envelope ?? []).flatMap((place) => {
      const { scope, id, labels } = place.document;
      const { path } = place;
      if (isWithin(label, labelTaken(place.document, path))) return [];
      return [{ scope, id, path, labels: join(label, labels?.stored(path) ?? PUBLIC) }];
    });
  }

  /** Labels a document that a node derives, and invalidates its readers. */
  derive(node: SchedulerNode, root: NodeAddress, label: Label): void {
    const { document } = root;
    if (label.length === 0 && document.labels === undefined) return;
    const change = document.relabel((labels) => labels.derive(label));
    if (change !== undefined) this.#invalidation.relabelled(root.home, change.before, change.after, node);
  }

  /** Labels a place on behalf of the application, without a commit. */
  declare({ home, document, path }: NodeAddress, label: Label): void {
    this.#relabelled(
      home,
      document.relabel((labels) => labels.declare(path, label)),
    );
  }

  undeclare({ home, document, path }: NodeAddress, names: readonly string[]): void {
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

function isDeclared({ envelope }: SchedulerNode, address: NodeAddress): boolean {
  if (envelope === undefined) return false;
  const { path } = address;
  return envelope.some((place) => place.home === address.home && isPrefix(place.path, path));
}
