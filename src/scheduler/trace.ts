/**
 * What has happened, for whoever wants to look back: one bounded list for each topic, kept while that is turned on. Whoever lets something happen
 * asks `on` first, so that a topic which is off costs one comparison and makes nothing. SPEC: R17.
 *
 * | topic | an entry for each | `node` | `because` |
 * |---|---|---|---|
 * | run | run, and what went wrong with one | the node | what it had read and has changed |
 * | invalidate | change that a node has to run for | the node | what has changed |
 * | gate | time that a node is held back | the node | what it has to run for |
 * | commit | commit applied, arrived or taken back here | the node that made it, or the space | its session and number |
 * | send | send | the stream | the node or the event that it was sent by; `detail` is its event id |
 * | handled | end of a send, whichever | the stream | its event id |
 */
import { TRACE_ENTRIES_MAX } from "../limits.ts";

export type TraceTopic = "run" | "invalidate" | "gate" | "commit" | "send" | "handled";

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
  /** The graph's tick: the order in which things happened. */
  readonly tick: number;
  readonly because: readonly string[];
  readonly detail?: string;
}

/** What an entry is made of; addresses become text only here. */
interface Happening {
  readonly node: { toString(): string };
  readonly kind: TraceEntry["kind"];
  readonly because: readonly { toString(): string }[];
  readonly detail?: string | undefined;
}

/** Tells the order in which things happen; the graph. */
interface Ticking {
  readonly tick: number;
}

export class TraceLog {
  on = false;
  readonly #trace: Trace;
  #entries: TraceEntry[] = [];

  constructor(trace: Trace) {
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

export class Trace {
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
