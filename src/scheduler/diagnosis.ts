/**
 * A scheduler's counts, and what is wrong with it, if anything: contradictions of its own, and nodes that misbehave. Asks the components and
 * holds nothing.
 */
import { thrownText } from "../message/error-data.ts";
import type { Components } from "./components.ts";
import type { Misbehaving } from "./introspection.ts";
import { checkScheduler } from "./scheduler-invariants.ts";

export interface SchedulerStats {
  readonly nodes: number;
  readonly runs: number;
  readonly failures: number;
  /** Readers looked at because of changes. */
  readonly readersVisited: number;
  /** Reads registered or dropped. */
  readonly indexWrites: number;
  /** Writes of computations outside of what they had declared. */
  readonly outsideWrites: number;
  readonly queued: number;
  readonly gated: number;
  /** Times a node's output and basis were written to the store. */
  readonly kept: number;
  /** Nodes whose last run is not stored yet. */
  readonly unwritten: number;
}

export interface Diagnosis extends Misbehaving {
  readonly contradiction: string | undefined;
  /** Nodes that have exhausted their budget and have not come to rest since. */
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

/** Throws if the scheduler contradicts itself. Not for the middle of a run. */
export function requireConsistent(components: Components): void {
  checkScheduler(components);
  components.events.checkInvariants();
}
