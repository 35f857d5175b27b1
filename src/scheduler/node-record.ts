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
import type { Json } from "../message/json.ts";
import type { Observation } from "./basis-row.ts";
import type { FoldedReads } from "./folded-reads.ts";
import type { SchedulerNode } from "./node.ts";

export interface Persisted {
  /** Differs from that of the row if the code has changed, which makes the row useless. */
  readonly fingerprint: string;
}

/** Gate settings as they are persisted: only differences from the registration. */
export interface GateSettings {
  readonly debounceMs?: number;
  readonly throttleMs?: number;
  readonly noAutoDebounce?: boolean;
}

export class NodeRecord {
  /** Changes if its creator makes the node again from other code. */
  fingerprint: string;
  /** The gate settings of the registration. */
  readonly declared: Required<GateSettings>;
  phase: "asked" | "restored" | "missed" | "here" = "here";
  /** The contents of the row; while restored. */
  observation: Observation | undefined;
  /** Set while the reads are only in the row and not in the graph. */
  folded: FoldedReads | undefined;
  /** The present output may not be stored with a matching row. */
  unwritten = false;
  /** The stored output; undefined if unknown. */
  stored: { readonly value: Json | undefined } | undefined;
  /** The store may hold a row of the node, of this process or an earlier one. */
  mayHaveRow = true;
  /** Its runs create nodes: after a restart it must run once to create them again. */
  creates = false;
  /** Restored and not run since: nodes that its run creates are resumed too. */
  restoring = false;
  /** Its runs write side-writes, in commits of their own. */
  writes = false;
  /**
   * The nodes that were resumed together, in order of registration, and its index among them: a reader often reads them
   * in that order.
   */
  neighbours: readonly SchedulerNode[] = [];
  place = 0;

  constructor(fingerprint: string, declared: Required<GateSettings>) {
    this.fingerprint = fingerprint;
    this.declared = declared;
  }
}

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
