/**
 * The last handlings of this process, in memory: which message was handled by which handler, when, for how long, and
 * with which outcome. Queries and plain commands leave no row in the journal; here they can still be explained. SPEC:
 * K70, K71.
 *
 * A ring of columns: a new handling replaces the oldest. A place is the number of a handling, so that an end that comes
 * after the replacement has no effect.
 */
import type { Host } from "../host/host.ts";
import { HANDLINGS_MAX } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { HandlingMetrics, outcomeOf } from "./handling-metrics.ts";

export interface HandlingView {
  readonly id: string;
  readonly kind: string;
  readonly type: string;
  readonly causation?: string;
  readonly correlation?: string;
  /** The capability or subscriber. */
  readonly handler: string;
  /** The sender of the message: a capability, a client of an adapter, the program, the kernel. */
  readonly askedBy: string;
  readonly attempt: number;
  /** Wall clock when the handler was given the message. */
  readonly givenAtMs: number;
  /** Time in the mailbox, where the actor tells; part of `tookMs`. */
  readonly waitedMs?: number;
  /** From being given to the end; absent while it is handled. */
  readonly tookMs?: number;
  /** `replied`, `done`, or the code and text of the failure; absent while it is handled. */
  readonly outcome?: string;
}

/** Handlings of one handler that have ended, and their durations. */
export interface HandlingTotals {
  readonly count: number;
  readonly failed: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface Texts {
  readonly kind: string;
  readonly type: string;
  readonly id: string;
  readonly causation: string | undefined;
  readonly correlation: string | undefined;
  readonly handler: string;
  readonly askedBy: string;
  outcome: string | undefined;
}

/** Stands for a time that has not come. */
const NEVER = -1;

export class HandlingRing {
  readonly #host: Host;
  readonly #size: number;
  readonly #texts: Texts[] = [];
  readonly #places: Float64Array;
  readonly #attempts: Uint32Array;
  /** On the monotonic clock. */
  readonly #givenAt: Float64Array;
  readonly #begunAt: Float64Array;
  readonly #endedAt: Float64Array;
  /** Added to the monotonic clock it gives the wall clock: one look at a clock is enough for both. */
  readonly #wallBaseMs: number;
  #next = 0;
  /** Counts and durations of all handlings since the start. */
  readonly metrics = new HandlingMetrics();

  constructor(host: Host, size: number = HANDLINGS_MAX) {
    this.#host = host;
    this.#size = size;
    this.#places = new Float64Array(size);
    this.#attempts = new Uint32Array(size);
    this.#wallBaseMs = host.now() - host.monotonic();
    this.#givenAt = new Float64Array(size);
    this.#begunAt = new Float64Array(size);
    this.#endedAt = new Float64Array(size);
  }

  get size(): number {
    return Math.min(this.#next, this.#size);
  }

  /** A handler is given a message; gives the place of the handling. */
  given({ kind, type, metadata }: Message, handler: string, askedBy: string, attempt = 1): number {
    const place = this.#next++;
    const at = place % this.#size;
    const { id, causation, correlation } = metadata;
    const cause = causation ?? undefined;
    this.#texts[at] = { kind, type, id, causation: cause, correlation, handler, askedBy, outcome: undefined };
    this.#places[at] = place;
    this.#attempts[at] = attempt;
    this.#givenAt[at] = this.#host.monotonic();
    this.#begunAt[at] = NEVER;
    this.#endedAt[at] = NEVER;
    return place;
  }

  /** `begunAt`: when the handler began, on the monotonic clock, where the actor tells. */
  ended(place: number, outcome: string, begunAt: number = NEVER): void {
    const at = place % this.#size;
    const texts = this.#texts[at];
    if (!texts || this.#places[at] !== place || texts.outcome !== undefined) return;
    texts.outcome = outcome;
    this.#begunAt[at] = begunAt;
    const endedAt = this.#host.monotonic();
    this.#endedAt[at] = endedAt;
    const givenAt = this.#givenAt[at] as number;
    const waitedMs = begunAt === NEVER ? undefined : begunAt - givenAt;
    this.metrics.ended(texts, outcomeOf(outcome), endedAt - givenAt, waitedMs);
  }

  /** Handlings whose message has one of the ids, is caused by one, or correlates with one; the oldest first. */
  find(ids: ReadonlySet<string>, limit: number): HandlingView[] {
    const found: HandlingView[] = [];
    for (let place = this.#next - this.size; place < this.#next && found.length < limit; place++) {
      const at = place % this.#size;
      const { id, causation, correlation } = this.#texts[at] as Texts;
      const isFound =
        ids.has(id) ||
        (causation !== undefined && ids.has(causation)) ||
        (correlation !== undefined && ids.has(correlation));
      if (isFound) found.push(this.#view(at));
    }
    return found;
  }

  /** The last handlings of one handler, the newest first. */
  lastOf(handler: string, limit: number): HandlingView[] {
    const found: HandlingView[] = [];
    for (let place = this.#next - 1; place >= this.#next - this.size && found.length < limit; place--) {
      const at = place % this.#size;
      if (this.#texts[at]?.handler === handler) found.push(this.#view(at));
    }
    return found;
  }

  /** By handler. Reads the whole ring. */
  totals(): Map<string, HandlingTotals> {
    const byHandler = new Map<string, { tookMs: number[]; failed: number }>();
    for (let at = 0; at < this.size; at++) {
      const { handler, outcome } = this.#texts[at] as Texts;
      if (outcome === undefined) continue;
      const found = byHandler.get(handler) ?? { tookMs: [], failed: 0 };
      byHandler.set(handler, found);
      found.tookMs.push((this.#endedAt[at] ?? 0) - (this.#givenAt[at] ?? 0));
      if (outcome !== "replied" && outcome !== "done") found.failed++;
    }
    return new Map([...byHandler].map(([handler, { tookMs, failed }]) => [handler, totalsOf(tookMs, failed)]));
  }

  #view(at: number): HandlingView {
    const { outcome, causation, correlation, ...texts } = this.#texts[at] as Texts;
    const [givenAt, begunAt, endedAt] = [this.#givenAt[at] ?? 0, this.#begunAt[at] ?? 0, this.#endedAt[at] ?? 0];
    return {
      ...texts,
      ...(causation === undefined ? {} : { causation }),
      ...(correlation === undefined ? {} : { correlation }),
      ...{ attempt: this.#attempts[at] ?? 1, givenAtMs: Math.round(this.#wallBaseMs + givenAt) },
      ...(begunAt === NEVER ? {} : { waitedMs: begunAt - givenAt }),
      ...(endedAt === NEVER ? {} : { tookMs: endedAt - givenAt }),
      ...(outcome === undefined ? {} : { outcome }),
    };
  }
}

function totalsOf(tookMs: readonly number[], failed: number): HandlingTotals {
  const sorted = Float64Array.from(tookMs).sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { count: sorted.length, failed, p50Ms: at(0.5), p99Ms: at(0.99) };
}
