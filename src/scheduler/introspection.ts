/**
 * The scheduler as people and tests see it: errors, counts, snapshots, trace entries (`trace.ts`), and the answers to
 * two questions: why did a node run, and why did it not run. No decision of the scheduler depends on this component
 * (P10). The one exception is the idempotency check, which runs computations twice, and which only tests turn on.
 */

import { guarded } from "../host/hook.ts";
import type { Host } from "../host/host.ts";
import { equal } from "../message/equality.ts";
import { thrownText } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { isRefusal } from "../store/label.ts";
import type { Authors } from "./authors.ts";
import { causesIn, causesOf } from "./causes.ts";
import type { Gates } from "./gates.ts";
import { computationAt, type Edge, type NodeAddress, RUNNING, type SchedulerNode } from "./node.ts";
import { enterReads } from "./node-record.ts";
import type { Registry } from "./registry.ts";
import type { Run } from "./run.ts";
import type { Send, SendOutcome, Sent, StreamRecord } from "./send.ts";
import type { TraceEntry, TraceLog, TraceTopics } from "./trace.ts";

/** One step of the answer to "why did this run". */
export type WhyStep =
  | { readonly kind: "ran"; readonly node: string; readonly because: readonly string[] }
  | { readonly kind: "first-run"; readonly node: string }
  /** A commit outside of the nodes changed it, or the author is not recorded any more. */
  | { readonly kind: "written"; readonly address: string };

/** Why a node did not run. */
export type WhyNot =
  | { readonly kind: "unknown" }
  /** In the middle of a run, usually an asynchronous one. */
  | { readonly kind: "running"; readonly message: string; readonly because: readonly string[] }
  | { readonly kind: "clean"; readonly message: string }
  | { readonly kind: "dormant"; readonly message: string; readonly because: readonly string[] }
  | { readonly kind: "gated"; readonly message: string; readonly forMs: number; readonly because: readonly string[] }
  | { readonly kind: "loading"; readonly message: string }
  | { readonly kind: "about-to-run"; readonly message: string };

/** A node as it is now. */
export interface NodeSnapshot {
  readonly id: string;
  readonly kind: SchedulerNode["kind"];
  readonly status: SchedulerNode["status"];
  readonly live: boolean;
  readonly height: number;
  readonly runs: number;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  readonly parent?: string;
  readonly error?: string;
}

/** How often a node ran, and its pauses. */
export interface ActionStats {
  readonly id: string;
  readonly kind: SchedulerNode["kind"];
  readonly runs: number;
  readonly debounceMs: number;
  readonly throttleMs: number;
  /** How long its gate stays closed; 0 if it may run now. */
  readonly eligibleInMs: number;
}

export interface Misbehaving {
  /** Nodes whose last run failed, or the commit of its writes. */
  readonly failed: readonly { readonly id: string; readonly error: string }[];
  readonly notIdempotent: readonly string[];
  readonly outsideWrites: number;
}

export type ErrorListener = (error: unknown, node: { readonly id: string } | undefined) => void;

export class Introspection {
  /** Whether every computation runs twice, to check that both runs write the same (§4.2). */
  checksIdempotency = false;
  runs = 0;
  failures = 0;
  outsideWrites = 0;
  readonly #host: Host;
  readonly #gates: Gates;
  readonly #registry: Registry;
  readonly #errorListeners = new Set<ErrorListener>();
  readonly #consoleListeners = new Set<(line: string) => void>();
  readonly #trace: TraceTopics;
  readonly #runTrace: TraceLog;
  readonly #authors: Authors;
  readonly #notIdempotent = new Set<SchedulerNode>();

  constructor(parts: { host: Host; gates: Gates; registry: Registry; trace: TraceTopics; authors: Authors }) {
    this.#host = parts.host;
    this.#gates = parts.gates;
    this.#registry = parts.registry;
    this.#trace = parts.trace;
    this.#runTrace = parts.trace.run;
    this.#authors = parts.authors;
  }

  // Records
  // ------------------------------------------------------------------------------------------------------------

  ran(run: Run): void {
    this.runs++;
    if (this.#runTrace.on) this.#note(run.node, "ran", run.causes);
  }

  failed(run: Run, error: unknown): void {
    this.runs++;
    this.failures++;
    this.#note(run.node, "failed", run.causes, String(error));
    this.report(error, run.node);
  }

  /** A computation wrote outside of its declared outputs (§4.3): its readers are not ordered after it. */
  wroteOutside(node: SchedulerNode, address: NodeAddress): void {
    this.outsideWrites++;
    this.#note(node, "outside-write", NONE, String(address));
  }

  /** Sent by a node, by a handler, or by plain code. */
  sent(stream: StreamRecord, sent: Sent, by: string | undefined): void {
    const { send } = this.#trace;
    if (send.on) send.note({ node: stream, kind: "sent", because: by === undefined ? NONE : [by], detail: sent.id });
  }

  /** A send has its outcome. */
  over(send: Send, kind: SendOutcome["kind"]): void {
    const { handled } = this.#trace;
    if (!handled.on || send.state === "over") return;
    handled.note({ node: send.stream, kind: "over", because: [send.id], detail: kind });
  }

  nonSettling(node: SchedulerNode, circle: readonly SchedulerNode[], delayMs: number): void {
    const path = [...circle, circle[0] as SchedulerNode].map(({ id }) => id).join(" -> ");
    const detail = circle.length > 1 ? `circle ${path}` : `${node.id} keeps changing its own inputs`;
    this.#note(node, "non-settling", causesOf(node), detail);
    this.say(`not settling: ${detail}; next try in ${delayMs} ms`);
  }

  lostWrite(space: string, message: string): void {
    const error = new Error(`a write to space "${space}" was rolled back: ${message}`);
    this.report(error, undefined);
  }

  /** The store refused derived values: after a restart they are computed again. */
  lostDerived(space: string, message: string): void {
    this.report(new Error(`derived values of space "${space}" cannot be kept: ${message}`), undefined);
  }

  /** Compares the writes of a second run with those of the first. */
  compare(node: SchedulerNode, result: Json | undefined, sideWrites: boolean): void {
    const same = equal(result, node.output?.value) && !sideWrites;
    if (same || this.#notIdempotent.has(node)) return;
    this.#notIdempotent.add(node);
    const detail = `${node.id} wrote other values when it ran again on the same inputs`;
    this.#note(node, "not-idempotent", NONE, detail);
    this.report(
      new Error(`${detail}; a computation may run any number of times, so it must not count, draw or append`),
      node,
    );
  }

  #note(node: SchedulerNode, kind: TraceEntry["kind"], because: readonly NodeAddress[], detail?: string): void {
    this.#trace.run.note({ node: node.id, kind, because, detail });
  }

  get notIdempotent(): readonly string[] {
    return [...this.#notIdempotent].map(({ id }) => id);
  }

  onError(listener: ErrorListener): () => void {
    const own = guarded(this.#host, listener);
    this.#errorListeners.add(own);
    return () => this.#errorListeners.delete(own);
  }

  onConsole(listener: (line: string) => void): () => void {
    const own = guarded(this.#host, listener);
    this.#consoleListeners.add(own);
    return () => this.#consoleListeners.delete(own);
  }

  /** Tells the listeners; without any, the host, so that the error is not lost. */
  report(error: unknown, node?: SchedulerNode): void {
    const isHeard = this.#errorListeners.size > 0 || this.#consoleListeners.size > 0;
    if (!isHeard && !isRefusal(error)) {
      this.#host.report(error, node ? `${node.id} failed` : "an error without a listener");
    }
    this.mention(error, node);
  }

  /** Tells the listeners of an error that its caller also gets. */
  mention(error: unknown, node?: SchedulerNode): void {
    for (const listener of this.#errorListeners) listener(error, node);
    this.say(`${node ? `${node.id}: ` : ""}${thrownText(error)}`);
  }

  say(line: string): void {
    for (const listener of this.#consoleListeners) listener(line);
  }

  // Questions
  // ----------------------------------------------------------------------------------------------------------

  /** Why a node ran last: the causes, their authors, and so on back to changes from outside. */
  why(id: string): readonly WhyStep[] {
    const steps: WhyStep[] = [];
    const seen = new Set<SchedulerNode>();
    const start = this.#registry.find(id);
    const open = start && start.runs > 0 ? [start] : [];
    for (let node = open.shift(); node !== undefined; node = open.shift()) {
      if (seen.has(node)) continue;
      seen.add(node);
      const causes = causesIn(node.lastReason);
      if (causes.length === 0) {
        steps.push({ kind: "first-run", node: node.id });
        continue;
      }
      steps.push({ kind: "ran", node: node.id, because: causes.map(String) });
      for (const cause of causes) {
        const author = this.#authorOf(node, cause);
        if (author === undefined) steps.push({ kind: "written", address: String(cause) });
        else open.push(author);
      }
    }
    return steps;
  }

  /** The node that made the last change that a reader saw at the place. */
  #authorOf(reader: SchedulerNode, cause: NodeAddress): SchedulerNode | undefined {
    const computation = computationAt(cause.home);
    if (computation !== undefined) return computation;
    const reads = readsOf(reader).filter(({ address }) => address === cause);
    const isShallow = reads.length > 0 && reads.every(({ shallow }) => shallow);
    const author = this.#authors.of(isShallow ? cause.shape : cause.stamp);
    return author === undefined ? undefined : this.#registry.find(author);
  }

  /** Why a node does not run now. */
  whyNot(id: string): WhyNot {
    const node = this.#registry.find(id);
    if (!node) return { kind: "unknown" };
    if (node.slot === RUNNING) {
      // The causes of the present run are taken already; newer causes make it run again.
      const because = causesOf(node).map(String);
      const again = because.length === 0 ? "" : ` It runs again because of ${because.join(", ")}.`;
      return { kind: "running", message: `runs now: its run has not ended.${again}`, because };
    }
    if (!node.live) {
      const moved = movedReads(node);
      const state =
        node.status === "never-ran"
          ? "never ran"
          : moved.length > 0
            ? `is invalid because of ${moved.join(", ")}`
            : "is up to date";
      return { kind: "dormant", message: `did not run: it is not observed. It ${state}.`, because: moved };
    }
    if (node.status === "clean")
      return { kind: "clean", message: "did not run: its inputs have not changed since its last run." };
    if (node.gate?.held) {
      const forMs = this.#gates.remaining(node);
      const because = causesOf(node).map(String);
      const message =
        forMs === Number.POSITIVE_INFINITY
          ? node.gate.stopped
            ? "is stopped by a breakpoint."
            : "waits for others' commits: its own was stale."
          : `waits for its gate, ${Math.ceil(forMs)} ms more.`;
      return { kind: "gated", message, forMs, because };
    }
    if (node.isWaiting) return { kind: "loading", message: "waits until the documents that it reads are loaded." };
    return { kind: "about-to-run", message: "will run in the next pass." };
  }

  actionStats(): readonly ActionStats[] {
    return [...this.#registry.all()].map((node) => ({
      id: node.id,
      kind: node.kind,
      runs: node.runs,
      debounceMs: node.gate?.debounceMs ?? 0,
      throttleMs: node.gate?.throttleMs ?? 0,
      eligibleInMs: this.#gates.remaining(node),
    }));
  }

  misbehaving(): Misbehaving {
    const failed: { id: string; error: string }[] = [];
    for (const { id, error } of this.#registry.all())
      if (error !== undefined) failed.push({ id, error: String(error) });
    return { failed, notIdempotent: this.notIdempotent, outsideWrites: this.outsideWrites };
  }

  snapshot(): readonly NodeSnapshot[] {
    return [...this.#registry.all()].map((node) => ({
      id: node.id,
      kind: node.kind,
      status: node.live || movedReads(node).length === 0 ? node.status : "invalid",
      live: node.live,
      height: node.height,
      runs: node.runs,
      reads: readsOf(node).map(({ address }) => String(address)),
      writes: writesOf(node).map(String),
      ...(node.parent ? { parent: node.parent.id } : {}),
      ...(node.error === undefined ? {} : { error: String(node.error) }),
    }));
  }
}

const NONE: readonly NodeAddress[] = [];

function readsOf(node: SchedulerNode): Edge[] {
  const reads: Edge[] = [];
  enterReads(node);
  for (let edge = node.reads; edge !== null; edge = edge.next) reads.push(edge);
  return reads;
}

function writesOf(node: SchedulerNode): (NodeAddress | string)[] {
  const { output, outputIn, outputs, envelope = NONE } = node;
  // An output that is not created yet is the document with the node's name.
  return output === undefined && outputIn !== undefined ? [node.id, ...envelope] : [...outputs, ...envelope];
}

/** The inputs of a dormant node that changed since its last run. */
function movedReads(node: SchedulerNode): string[] {
  const moved = causesOf(node).map(String);
  if (node.status === "never-ran" || node.live) return moved;
  enterReads(node);
  for (let edge = node.reads; edge !== null; edge = edge.next) {
    const { address, shallow, seen } = edge;
    if ((shallow ? address.shape : address.stamp) > seen && !moved.includes(String(address)))
      moved.push(String(address));
  }
  return moved;
}
