/**
 * Counts and durations of handlings since the start of the process, by kind, type and handler. SPEC: W12.
 *
 * A histogram has eight buckets for each power of two, from 1 µs to 71 min, so that a quantile is at most 12.5 % too
 * large. Beyond `METRIC_SERIES_MAX` series the type and handler are `other`.
 */
import { METRIC_SERIES_MAX } from "../limits.ts";

/** The end of a handling. `refused`: the handler, or the kernel, answered with a code below 500. */
export type HandlingOutcome = "done" | "refused" | "failed";

export interface DurationView {
  readonly count: number;
  readonly sumMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** How many took at most so long: `[ms, count]`, each count with those before it. */
  readonly atMost: readonly (readonly [ms: number, count: number])[];
}

export interface SeriesView {
  readonly kind: string;
  readonly type: string;
  readonly handler: string;
  readonly done: number;
  readonly refused: number;
  readonly failed: number;
  /** From being given to the end. */
  readonly took: DurationView;
  /** In the mailbox, where the actor tells. */
  readonly waited?: DurationView;
}

const BUCKETS_A_POWER = 8;
const POWER_BITS = 3;
const BUCKETS = BUCKETS_A_POWER * (32 - POWER_BITS + 1);
const US_MAX = 0xff_ff_ff_ff;
/** Powers of two of microseconds that `atMost` names: 64 µs to 67 s. */
const BOUND_POWERS = [6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26];

export class DurationHistogram {
  readonly #counts = new Uint32Array(BUCKETS);
  #count = 0;
  #sumUs = 0;
  #maxUs = 0;

  add(ms: number): void {
    const us = ms > 0 ? Math.min(US_MAX, Math.round(ms * 1_000)) : 0;
    const place = placeOf(us);
    this.#counts[place] = (this.#counts[place] as number) + 1;
    this.#count++;
    this.#sumUs += us;
    if (us > this.#maxUs) this.#maxUs = us;
  }

  get count(): number {
    return this.#count;
  }

  view(): DurationView {
    return {
      ...{ count: this.#count, sumMs: this.#sumUs / 1_000 },
      ...{ p50Ms: this.#quantile(0.5), p99Ms: this.#quantile(0.99), maxMs: this.#maxUs / 1_000 },
      atMost: BOUND_POWERS.map((power) => [2 ** power / 1_000, this.#below(placeOf(2 ** power))] as const),
    };
  }

  #quantile(share: number): number {
    let left = Math.ceil(this.#count * share);
    for (let place = 0; place < BUCKETS && left > 0; place++) {
      left -= this.#counts[place] as number;
      if (left <= 0) return Math.min(this.#maxUs, endOf(place)) / 1_000;
    }
    return this.#maxUs / 1_000;
  }

  #below(end: number): number {
    let count = 0;
    for (let place = 0; place < end; place++) count += this.#counts[place] as number;
    return count;
  }
}

/** Times below 8 µs have a bucket each. */
function placeOf(us: number): number {
  if (us < BUCKETS_A_POWER) return us;
  const shift = 31 - Math.clz32(us) - POWER_BITS;
  return (shift + 1) * BUCKETS_A_POWER + ((us >>> shift) & (BUCKETS_A_POWER - 1));
}

/** The longest time of a bucket. */
function endOf(place: number): number {
  if (place < BUCKETS_A_POWER) return place;
  const shift = Math.floor(place / BUCKETS_A_POWER) - 1;
  return (BUCKETS_A_POWER + (place % BUCKETS_A_POWER) + 1) * 2 ** shift - 1;
}

class Series {
  readonly kind: string;
  readonly type: string;
  readonly handler: string;
  readonly took = new DurationHistogram();
  readonly waited = new DurationHistogram();
  done = 0;
  refused = 0;
  failed = 0;

  constructor(kind: string, type: string, handler: string) {
    this.kind = kind;
    this.type = type;
    this.handler = handler;
  }

  view(): SeriesView {
    const { kind, type, handler, done, refused, failed, took, waited } = this;
    return {
      ...{ kind, type, handler, done, refused, failed, took: took.view() },
      ...(waited.count === 0 ? {} : { waited: waited.view() }),
    };
  }
}

const OTHER = "other";

export class HandlingMetrics {
  /** By type, then handler. */
  readonly #byType = new Map<string, Map<string, Series>>();
  readonly #all: Series[] = [];
  /** By kind. */
  readonly #others = new Map<string, Series>();

  /** `waitedMs` is undefined where the actor does not tell. */
  ended(
    { kind, type, handler }: { readonly kind: string; readonly type: string; readonly handler: string },
    outcome: HandlingOutcome,
    tookMs: number,
    waitedMs: number | undefined,
  ): void {
    const series = this.#byType.get(type)?.get(handler) ?? this.#seriesOf(kind, type, handler);
    series[outcome]++;
    series.took.add(tookMs);
    if (waitedMs !== undefined) series.waited.add(waitedMs);
  }

  view(): SeriesView[] {
    return [...this.#all, ...this.#others.values()].map((series) => series.view());
  }

  #seriesOf(kind: string, type: string, handler: string): Series {
    if (this.#all.length >= METRIC_SERIES_MAX) {
      const other = this.#others.get(kind) ?? new Series(kind, OTHER, OTHER);
      this.#others.set(kind, other);
      return other;
    }
    const series = new Series(kind, type, handler);
    const byHandler = this.#byType.get(type) ?? new Map<string, Series>();
    this.#byType.set(type, byHandler);
    byHandler.set(handler, series);
    this.#all.push(series);
    return series;
  }
}

/** The outcome of a handling from the text of its end: `replied`, `done`, or the code and text of a failure. */
export function outcomeOf(text: string): HandlingOutcome {
  if (text === "replied" || text === "done") return "done";
  return /^4\d\d: /.test(text) ? "refused" : "failed";
}
