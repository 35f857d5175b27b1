/**
 * The writes of a run. Its result, and other documents that it derives, are set at once without a commit. Its
 * side-writes are collected in a unit, which is committed or rolled back as a whole (Scheduler v2 §4.3, §7.3).
 * `run-commits.ts` handles the outcome.
 */
import { admitFrozen } from "../store/admit.ts";
import { SHARED_SCOPE } from "../store/document.ts";
import { PUBLIC } from "../store/label.ts";
import { overlap } from "../store/path-operation.ts";
import type { InformationFlow } from "./information-flow.ts";
import type { Introspection } from "./introspection.ts";
import type { Invalidation } from "./invalidation.ts";
import type { NodeAddress, SchedulerNode } from "./node.ts";
import type { Run } from "./run.ts";
import type { RunCommits } from "./run-commits.ts";
import type { WriteUnit } from "./write-unit.ts";

export class RunWrites {
  readonly #invalidation: Invalidation;
  readonly #introspection: Introspection;
  readonly #flow: InformationFlow;
  readonly #commits: RunCommits;

  constructor(parts: {
    invalidation: Invalidation;
    introspection: Introspection;
    flow: InformationFlow;
    commits: RunCommits;
  }) {
    this.#invalidation = parts.invalidation;
    this.#introspection = parts.introspection;
    this.#flow = parts.flow;
    this.#commits = parts.commits;
  }

  /** Sets a derived document: visible at once, without a commit. */
  put({ node, label }: Run, root: NodeAddress, value: unknown): void {
    const { document } = root;
    if (label !== PUBLIC || document.labels !== undefined) this.#flow.derive(node, root, label);
    const before = document.value;
    const after = value === undefined ? undefined : admitFrozen(value, before);
    // An admitted value is neither NaN nor -0, so `===` is enough.
    if (before === after) return;
    document.value = after;
    this.#invalidation.changed(root, before, after, node, node.changeGroup);
  }

  /** Invalidates the readers of the node's output, although its value is the same. */
  touched({ node }: Run, output: NodeAddress): void {
    this.#invalidation.changed(output, undefined, undefined, node, node.changeGroup);
  }

  /** A document that the run derives besides its output. */
  derive(run: Run, address: NodeAddress, value: unknown): void {
    if (run.rehearsal) return;
    const { document } = address.home;
    if (document.state === "absent" || document.state === "loading") document.madeHere();
    document.derived = true;
    this.put(run, address, value);
  }

  /** The unit of side-writes that a write to the address goes to. */
  unitFor(run: Run, address: NodeAddress): WriteUnit {
    const { replica } = address.home;
    if (run.node.kind === "computation" && !run.rehearsal && !isInSurface(run.node, address))
      this.#introspection.wroteOutside(run.node, address);
    if (run.label.length > 0) this.#flow.requireWritable(run, address.alone);
    run.unit ??= this.#commits.open(replica);
    if (run.unit.replica !== replica) {
      throw new Error(`node ${run.node.id} writes into two spaces; a run is one commit, and a commit is of one space`);
    }
    return run.unit;
  }

  /**
   * Commits the writes of the run so far; throws without a commit if a reader of a written place lacks the clearance.
   */
  commit(run: Run): void {
    if (run.label.length > 0) {
      if (run.unit !== null) this.#flow.requireWritable(run, run.unit.addresses());
      this.#raise(run);
    }
    this.#commits.commit(run);
  }

  /** Labels the whole envelope of a materializer. */
  #raise(run: Run): void {
    const raises = this.#flow.raises(run);
    const place = run.node.envelope?.[0];
    if (raises.length === 0 || place === undefined) return;
    run.unit ??= this.#commits.open(place.home.replica);
    run.unit.labels = raises;
  }

  rollBack(run: Run): void {
    run.unit?.undo();
    run.unit = null;
  }
}

/** Whether a computation has declared that it writes there. Documents of other scopes are not checked. */
function isInSurface(node: SchedulerNode, address: NodeAddress): boolean {
  if (address.home.document.scope !== SHARED_SCOPE) return true;
  if (node.outputs.some((output) => output.home === address.home)) return true;
  const { path } = address;
  return node.envelope?.some((place) => place.home === address.home && overlap(place.path, path)) ?? false;
}
