/**
 * The persistence state of one node; nodes that are not persisted have none. SPEC: I7.
 *
 * ```
 *   fresh                 ──────────────────────────────────────> here
 *   resumed: asked ──a row that fits──> restored ──verified or ran──> here
 *              └────no such row───────> missed ──about to run──────> here
 * ```
 * In `here` the node has run or was compared in this process, and the scheduler's stamps are complete. Before that, its
 * reads are known only from the row, and its output may be only in the store.
 */
import type { SchedulerNode } from "./node.ts";

/** A node that has neither run nor been compared since it was resumed: its output may be only in the store. */
export function isResumed({ record }: SchedulerNode): boolean {
  return record !== undefined && record.phase !== "here";
}

/**
 * Whether the loaded output of a resumed node differs from the one that its row describes, because another process
 * stored its own before or after the look-up. Then the reads of the row prove no fact about it.
 */
export function hasForeignOutput({ output, record }: SchedulerNode): boolean {
  const row = record?.observation;
  if (row === undefined || output === undefined || output.document.state !== "loaded") return false;
  const { loadedAt, changedAt } = output.document;
  return row.output === undefined || changedAt > row.output || loadedAt < row.output;
}

/** A resumed node whose reads are still needed to decide whether it must run. */
export function isUnverified({ record }: SchedulerNode): boolean {
  return record !== undefined && record.phase === "restored";
}

/** Enters the folded reads of a node that may be dormant, before its reads are used. */
export function enterReads(node: SchedulerNode): void {
  const { record } = node;
  if (record?.folded !== undefined) record.folded.enter(node, record);
}
