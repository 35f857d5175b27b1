/**
 * Time gates (Scheduler v2 §8): debounce, throttle and backoff are one number per node, the time at which it becomes
 * eligible, with one timer for the earliest. A gated node stays invalid and is offered when its gate opens. Changes and
 * runs are timed only for nodes that have had a gate, because reading the clock costs as much as a run.
 */
import { backoffMs } from "../host/backoff.ts";
import type { Host, Timer } from "../host/host.ts";
import {
  AUTO_DEBOUNCE_AFTER_RUNS,
  AUTO_DEBOUNCE_FROM_MS,
  AUTO_DEBOUNCE_MS,
  BACKOFF_MAX_MS,
  BACKOFF_START_MS,
  CONFLICTS_BEFORE_BACKOFF,
} from "../limits.ts";
import { causesOf } from "./causes.ts";
import type { SchedulerNode } from "./node.ts";
import type { GateState } from "./node-state.ts";
import type { TraceLog } from "./trace.ts";

const NEVER = Number.NEGATIVE_INFINITY;

/** Whether the node has exhausted its budget and not settled since: it belongs to an episode. */
export function isUnsettling({ gate }: SchedulerNode): boolean {
  return gate !== undefined && gate.exhaustions > 0;
}

const LOOP_BACKOFF = { startMs: BACKOFF_START_MS, maxMs: BACKOFF_MAX_MS };

/** Receives the nodes whose gates open. */
export interface GateHome {
  gateOpened(node: SchedulerNode): void;
  /** A waiting node got a breakpoint: quiescence does not wait for it. */
  gateStopped(): void;
}

export class Gates {
  readonly #host: Host;
  readonly #trace: TraceLog;
  readonly #held = new Set<SchedulerNode>();
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #home: GateHome | undefined;

  constructor(host: Host, trace: TraceLog) {
    this.#host = host;
    this.#trace = trace;
  }

  set home(home: GateHome) {
    this.#home = home;
  }

  get held(): ReadonlySet<SchedulerNode> {
    return this.#held;
  }

  eligibleAt({ gate }: SchedulerNode): number {
    if (gate === undefined) return 0;
    if (gate.stopped || gate.catchingUp) return Number.POSITIVE_INFINITY;
    return Math.max(gate.changedAt + gate.debounceMs, gate.ranAt + gate.throttleMs, gate.backoffUntil);
  }

  /** How long a node still has to wait. */
  remaining(node: SchedulerNode): number {
    return Math.max(0, this.eligibleAt(node) - this.#host.monotonic());
  }

  /** Holds a node that is not eligible yet; false if it may run now. */
  hold(node: SchedulerNode): boolean {
    const at = this.eligibleAt(node);
    if (at <= this.#host.monotonic()) {
      this.release(node);
      return false;
    }
    if (this.#trace.on && !this.#held.has(node)) this.#note(node);
    this.#held.add(node);
    (node.gate as GateState).held = true;
    this.#arm(at);
    return true;
  }

  #note(node: SchedulerNode): void {
    const ms = this.remaining(node);
    const detail = ms === Number.POSITIVE_INFINITY ? "until it is let go" : `for ${Math.ceil(ms)} ms`;
    this.#trace.note({ node: node.id, kind: "gated", because: causesOf(node), detail });
  }

  release(node: SchedulerNode): void {
    if (node.gate === undefined || !node.gate.held) return;
    node.gate.held = false;
    this.#held.delete(node);
    if (this.#held.size === 0) this.#disarm();
  }

  // What moves a gate
  // --------------------------------------------------------------------------------------------------

  /** A value that the node has read changed. */
  invalidated(node: SchedulerNode): void {
    const { gate } = node;
    if (gate === undefined) return;
    const isDated = gate.debounceMs > 0 || gate.throttleMs > 0 || gate.changedAt !== NEVER;
    if (isDated) gate.changedAt = this.#host.monotonic();
  }

  /** First runs are not delayed, except of nodes that a run created: their values may never be observed. */
  createdByRun(node: SchedulerNode): void {
    this.invalidated(node);
  }

  ran(node: SchedulerNode, durationMs: number): void {
    const { gate } = node;
    if (gate !== undefined && (gate.throttleMs > 0 || gate.ranAt !== NEVER)) gate.ranAt = this.#host.monotonic();
    if (node.kind === "effect" && durationMs >= AUTO_DEBOUNCE_FROM_MS) this.#slow(node);
  }

  #slow(node: SchedulerNode): void {
    const gate = this.state(node);
    gate.slowRuns++;
    const isDecided = gate.noAutoDebounce || gate.debouncedBy === "application" || gate.debounceMs > 0;
    if (isDecided || gate.slowRuns < AUTO_DEBOUNCE_AFTER_RUNS) return;
    gate.debounceMs = AUTO_DEBOUNCE_MS;
    gate.debouncedBy = "policy";
  }

  /** The node ran as often as one pass allows and is invalid again. */
  exhausted(node: SchedulerNode): number {
    const gate = this.state(node);
    const delay = backoffMs(gate.exhaustions + 1, LOOP_BACKOFF);
    gate.exhaustions++;
    gate.backoffUntil = this.#host.monotonic() + delay;
    return delay;
  }

  /**
   * A commit of the node's writes was rejected. The node runs again after catching up, with backoff from the fourth
   * time on.
   */
  conflicted(node: SchedulerNode): number {
    const gate = this.state(node);
    gate.conflicts++;
    gate.catchingUp = true;
    const waits = gate.conflicts - CONFLICTS_BEFORE_BACKOFF;
    if (waits > 0) gate.backoffUntil = this.#host.monotonic() + backoffMs(waits, LOOP_BACKOFF);
    return gate.conflicts;
  }

  caughtUp(node: SchedulerNode): void {
    this.state(node).catchingUp = false;
    this.#reconsider(node);
  }

  /** A commit of the node's writes was confirmed or abandoned. */
  committed({ gate }: SchedulerNode): void {
    if (gate === undefined) return;
    gate.conflicts = 0;
    gate.catchingUp = false;
  }

  /** The node settled: the next episode starts with the shortest backoff. */
  settled(node: SchedulerNode): void {
    if (node.gate !== undefined) node.gate.exhaustions = 0;
  }

  // Control ---------------------------------------------------------------------------------------------------------

  /**
   * Counted from the change that invalidated the node. If that was not timed, it counts from now, because nodes without
   * a gate do not wait long.
   */
  setDebounce(node: SchedulerNode, debounceMs: number): void {
    const gate = this.state(node);
    gate.debounceMs = requireDuration(debounceMs, "a debounce");
    gate.debouncedBy = "application";
    if (debounceMs > 0 && gate.changedAt === NEVER && node.status === "invalid")
      gate.changedAt = this.#host.monotonic();
    this.#reconsider(node);
  }

  /** Counted from the last run. If that was not timed, it counts from now. */
  setThrottle(node: SchedulerNode, throttleMs: number): void {
    const gate = this.state(node);
    gate.throttleMs = requireDuration(throttleMs, "a throttle");
    if (throttleMs > 0 && gate.ranAt === NEVER && node.runs > 0) gate.ranAt = this.#host.monotonic();
    this.#reconsider(node);
  }

  setNoAutoDebounce(node: SchedulerNode, off: boolean): void {
    const gate = this.state(node);
    gate.noAutoDebounce = off;
    if (off && gate.debouncedBy === "policy") this.setDebounce(node, 0);
    if (!off && gate.debounceMs === 0) gate.debouncedBy = "registration";
  }

  setBreakpoint(node: SchedulerNode, on: boolean): void {
    this.state(node).stopped = on;
    this.#reconsider(node);
    if (on) this.#home?.gateStopped();
  }

  state(node: SchedulerNode): GateState {
    node.gate ??= {
      debounceMs: 0,
      debouncedBy: "registration",
      noAutoDebounce: false,
      throttleMs: 0,
      changedAt: NEVER,
      ranAt: NEVER,
      backoffUntil: 0,
      exhaustions: 0,
      conflicts: 0,
      catchingUp: false,
      stopped: false,
      held: false,
      slowRuns: 0,
    };
    return node.gate;
  }

  dispose(): void {
    this.#disarm();
    this.#held.clear();
  }

  #reconsider(node: SchedulerNode): void {
    if (!node.gate?.held) return;
    const at = this.eligibleAt(node);
    if (at > this.#host.monotonic()) return this.#arm(at);
    this.release(node);
    this.#home?.gateOpened(node);
  }

  // The one timer
  // --------------------------------------------------------------------------------------------------------

  #arm(at: number): void {
    if (at >= this.#timerAt || at === Number.POSITIVE_INFINITY) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    const delay = Math.max(0, at - this.#host.monotonic());
    this.#timer = this.#host.timer(delay, () => this.#due());
  }

  /** No node waits: the timer must not keep the process alive. */
  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #due(): void {
    this.#timer = undefined;
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.#host.monotonic();
    let next = Number.POSITIVE_INFINITY;
    const open: SchedulerNode[] = [];
    for (const node of this.#held) {
      const at = this.eligibleAt(node);
      if (at <= now) open.push(node);
      else next = Math.min(next, at);
    }
    for (const node of open) {
      this.release(node);
      this.#home?.gateOpened(node);
    }
    if (next < Number.POSITIVE_INFINITY) this.#arm(next);
  }
}

export function requireDuration(ms: number, what: string): number {
  if (Number.isFinite(ms) && ms >= 0) return ms;
  throw new RangeError(`${what} must be 0 or more milliseconds, got ${ms}`);
}
