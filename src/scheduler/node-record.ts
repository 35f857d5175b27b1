/**
 * What persistence knows of one node; nodes that are not persisted have none. SPEC: I7.
 *
 * ```
 *   fresh                 ──────────────────────────────────────> here
 *   resumed: asked ──a row that fits──> restored ──verified or ran──> here
 *              └────no such row───────> missed ──about to run──────> here
 * ```
 * In `here` the node has run, or has been compared, in this process, and the scheduler's own stamps say all about it. Before that, what
 * it read is known by the row alone, and its output may lie in the store alone.
 */
import type { Json } from "../message/json.ts";
import type { Observation } from "./basis-row.ts";
import type { FoldedReads } from "./folded-reads.ts";
import type { SchedulerNode } from "./node.ts";

/** How a node is persisted. */
export interface Persisted {
  /** Another one than that of the row makes the row worthless: the code has changed. */
  readonly fingerprint: string;
}

/** Gate settings as they are persisted: only what differs from the registration. */
export interface GateSettings {
  readonly debounceMs?: number;
  readonly throttleMs?: number;
  readonly noAutoDebounce?: boolean;
}

export class NodeRecord {
  /** Another one once its creator has made the node again from other code. */
  fingerprint: string;
  /** What the registration said of the gates. */
  readonly declared: Required<GateSettings>;
  phase: "asked" | "restored" | "missed" | "here" = "here";
  /** What the row says; while restored. */
  observation: Observation | undefined;
  /** Present while what it read stands in the row alone and not in the graph. */
  folded: FoldedReads | undefined;
  /** The output here is not, as far as anybody knows, what is stored with a row that fits it. */
  unwritten = false;
  /** The output as it is stored; undefined while nobody knows. */
  stored: { readonly value: Json | undefined } | undefined;
  /** The store may hold a row of it, of this life or an earlier one. */
  mayHaveRow = true;
  /** Its runs make nodes: after a restart it has to run once to make them again. */
  creates = false;
  /** Restored and not run since: what its run creates is restored too. */
  restoring = false;
  /** Its runs write besides the output, in commits of their own. */
  writes = false;
  /** Those it was resumed together with, in order of registration, and its place among them: what is read next is likely the next. */
  neighbours: readonly SchedulerNode[] = [];
  place = 0;

  constructor(fingerprint: string, declared: Required<GateSettings>) {
    this.fingerprint = fingerprint;
    this.declared = declared;
  }
}

/** A node that has neither run nor been compared since it was resumed: its output may lie in the store alone. */
export function isResumed({ record }: SchedulerNode): boolean {
  return record !== undefined && record.phase !== "here";
}

/**
 * Whether the loaded output of a resumed node is not the one that its row describes: another process has stored its own
 * since, or before the row was looked up. Then the reads of the row prove nothing about it.
 */
export function hasForeignOutput({ output, record }: SchedulerNode): boolean {
  const row = record?.observation;
  if (row === undefined || output === undefined || output.document.state !== "loaded") return false;
  const { loadedAt, changedAt } = output.document;
  return row.output === undefined || changedAt > row.output || loadedAt < row.output;
}

/** A resumed node whose reads are still needed, to tell whether it has to run at all. */
export function isUnverified({ record }: SchedulerNode): boolean {
  return record !== undefined && record.phase === "restored";
}
