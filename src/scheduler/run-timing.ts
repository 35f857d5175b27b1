/**
 * Measures run times for the automatic debounce of slow effects (R3). An effect is timed in its first runs, in some
 * more if one was slow, and then once in a while, because reading the clock costs as much as a run. An awaited run is
 * always timed. It has no state.
 */
import type { Host } from "../host/host.ts";
import type { Gates } from "./gates.ts";
import type { SchedulerNode } from "./node.ts";

const TIMED_RUNS = 2;
const TIMED_RUNS_OF_SLOW = 8;
const TIMED_AGAIN_MASK = 31;

export const NOT_TIMED = -1;

export class RunTiming {
  readonly #host: Host;
  readonly #gates: Gates;

  constructor(host: Host, gates: Gates) {
    this.#host = host;
    this.#gates = gates;
  }

  get now(): number {
    return this.#host.monotonic();
  }

  /** A node is about to run; returns the time, or `NOT_TIMED`. */
  begin(node: SchedulerNode): number {
    return node.kind === "effect" && isWorthTiming(node) ? this.now : NOT_TIMED;
  }

  /** The run that began at that time has ended. */
  end(node: SchedulerNode, began: number): void {
    if (began !== NOT_TIMED) this.#gates.ran(node, this.now - began);
    else if (node.gate !== undefined) this.#gates.ran(node, 0);
  }
}

function isWorthTiming({ runs, gate }: SchedulerNode): boolean {
  if (runs < TIMED_RUNS || (runs & TIMED_AGAIN_MASK) === 0) return true;
  return gate !== undefined && gate.slowRuns > 0 && runs < TIMED_RUNS_OF_SLOW;
}
