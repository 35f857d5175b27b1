/** A scheduler's counts and its problems: violated invariants and misbehaving nodes. It has no state. */
import { thrownText } from "../message/error-data.ts";
import type { Components } from "./components.ts";
import type { Misbehaving } from "./introspection.ts";
import { checkScheduler } from "./scheduler-invariants.ts";

/** Counts of a scheduler: nodes, runs, failures. */
export interface SchedulerStats {
  readonly nodes: number;
  readonly runs: number;
  readonly failures: number;
  /** Readers that changes visited. */
  readonly readersVisited: number;
  /** Reads registered or dropped. */
  readonly indexWrites: number;
  /** Queued materializers that were compared with a read. */
  readonly envelopesVisited: number;
  /** Writes of computations outside of their declared outputs. */
  readonly outsideWrites: number;
  readonly queued: number;
  readonly gated: number;
  /** Times that a node's output and basis were written to the store. */
  readonly kept: number;
  /** Nodes whose last run is not stored yet. */
  readonly unwritten: number;
}

/** The misbehaviour of nodes that a scheduler has found. */
export interface Diagnosis extends Misbehaving {
  readonly contradiction: string | undefined;
  /** Nodes that exhausted their budget and have not settled since. */
  readonly nonSettling: readonly string[];
}

export function statsOf(components: Components): SchedulerStats {
  const { registry, introspection, invalidation, graph, agenda, gates, persistence } = components;
  return {
    nodes: registry.size,
    runs: introspection.runs,
    failures: introspection.failures,
    readersVisited: invalidation.visited,
    indexWrites: graph.indexWrites,
    envelopesVisited: agenda.envelopes.visited,
    outsideWrites: introspection.outsideWrites,
    queued: agenda.size,
    gated: gates.held.size,
    kept: persistence.written,
    unwritten: persistence.unwritten,
  };
}

export function diagnose(components: Components): Diagnosis {
  const { episode, introspection } = components;
  return { contradiction: contradictionOf(components), nonSettling: episode.nodes, ...introspection.misbehaving() };
}

function contradictionOf(components: Components): string | undefined {
  try {
    requireConsistent(components);
    return undefined;
  } catch (error) {
    return thrownText(error);
  }
}

/** Throws if an invariant is violated. Must not be called during a run. */
export function requireConsistent(components: Components): void {
  checkScheduler(components);
  components.events.checkInvariants();
}
