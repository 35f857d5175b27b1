/**
 * The trace: one bounded list of past events for each topic that is turned on. Callers check `on` first, so that a
 * topic costs one comparison while it is off. SPEC: R17.
 *
 * | topic | an entry for each | `node` | `because` |
 * |---|---|---|---|
 * | run | run, and problem of a run | the node | its causes |
 * | invalidate | change that invalidates a node | the node | the changed place |
 * | gate | time that a node is held back | the node | its causes |
 * | commit | commit applied, arrived or rolled back | its node, or the space | its session and number |
 * | send | send | the stream | the sending node or event; `detail` is its event id |
 * | handled | end of a send | the stream | its event id |
 */
import { TRACE_ENTRIES_MAX } from "../limits.ts";

/** The subjects that a trace can be limited to. */
export type TraceTopic = "run" | "invalidate" | "gate" | "commit" | "send" | "handled";

/** One event in the trace of a scheduler. */
export interface TraceEntry {
  readonly node: string;
  readonly kind:
    | "ran"
    | "failed"
    | "non-settling"
    | "not-idempotent"
    | "outside-write"
    | "invalidated"
    | "gated"
    | "committed"
    | "sent"
    | "over";
  /** The graph's tick, which gives the order of entries. */
  readonly tick: number;
  readonly because: readonly string[];
  readonly detail?: string;
}

/** The parts of an entry; addresses become text only if it is kept. */
interface Happening {
  readonly node: { toString(): string };
  readonly kind: TraceEntry["kind"];
  readonly because: readonly { toString(): string }[];
  readonly detail?: string | undefined;
}

/** Gives the order of entries; the graph. */
interface Ticking {
  readonly tick: number;
}

export class TraceLog {
  on = false;
  readonly #trace: TraceTopics;
  #entries: TraceEntry[] = [];

  constructor(trace: TraceTopics) {
    this.#trace = trace;
  }

  get entries(): readonly TraceEntry[] {
    return this.#entries;
  }

  note({ node, kind, because, detail }: Happening): void {
    if (!this.on) return;
    if (this.#entries.length >= TRACE_ENTRIES_MAX) this.#entries = this.#entries.slice(TRACE_ENTRIES_MAX / 2);
    const entry = { node: String(node), kind, tick: this.#trace.tick, because: because.map(String) };
    this.#entries.push(detail === undefined ? entry : { ...entry, detail });
  }
}

export class TraceTopics {
  readonly run = new TraceLog(this);
  readonly invalidate = new TraceLog(this);
  readonly gate = new TraceLog(this);
  readonly commit = new TraceLog(this);
  readonly send = new TraceLog(this);
  readonly handled = new TraceLog(this);
  #clock: Ticking | undefined;

  set clock(clock: Ticking) {
    this.#clock = clock;
  }

  get tick(): number {
    return this.#clock?.tick ?? 0;
  }
}
