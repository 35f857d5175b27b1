/**
 * One query that clients watch together: the readers that ask the same query with the same data and clearance share one
 * effect. A burst of answers is told once. SPEC: W70-W72.
 *
 *     first reader ──> effect runs ──answer──> told now ──further answers──> told after LIVE_QUERY_MS, the last one
 *     last reader leaves ──> effect ends
 */
import type { Host, Timer } from "../host/host.ts";
import { LIVE_QUERY_MS } from "../limits.ts";
import { contentId } from "../message/content-id.ts";
import { type ErrorData, Failure, fromError } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { cloneData } from "../message/json-copy.ts";
import { problemText } from "../message/problem.ts";

export interface WatchedQuery {
  readonly type: string;
  readonly data: Json;
  /** The clearance of the readers; without one it is unlimited. */
  readonly clearance?: readonly string[];
}

/** Hears of the answers of one query. */
export interface Watcher {
  answer(value: unknown): void;
  failed(error: unknown): void;
}

/** Starts to report a query's answers; the returned function ends it. Undefined if no app has the query. */
export type WatchQuery = (query: WatchedQuery, watcher: Watcher) => (() => void) | undefined;

/** The newest outcome of the query. Readers share it. */
export type LiveOutcome = { readonly answer: Json; readonly version: string } | { readonly error: ErrorData };

export interface LiveReader {
  /** The query has another outcome. */
  hear(): void;
}

export class SharedQuery {
  readonly readers = new Set<LiveReader>();
  /** Undefined until the first run is confirmed. */
  outcome: LiveOutcome | undefined;
  readonly #host: Host;
  #stop: () => void = () => undefined;
  #toldAt = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;

  /** Undefined if no app has the query. */
  static of(host: Host, query: WatchedQuery, watchQuery: WatchQuery): SharedQuery | undefined {
    const made = new SharedQuery(host);
    const stop = watchQuery(query, {
      answer: (value) => made.#answered(value),
      failed: (thrown) => made.#note({ error: fromError(thrown) }),
    });
    if (stop === undefined) return undefined;
    made.#stop = stop;
    return made;
  }

  private constructor(host: Host) {
    this.#host = host;
  }

  end(): void {
    this.#timer?.cancel();
    this.#stop();
  }

  #answered(value: unknown): void {
    const copy = cloneData(value ?? null);
    if (copy.kind === "impure") {
      const text = `the answer of a live query is not JSON: ${problemText(copy.problem)}`;
      return this.#note({ error: fromError(new Failure(500, text)) });
    }
    this.#note({ answer: copy.value, version: versionOf(copy.value) });
  }

  #note(outcome: LiveOutcome): void {
    this.outcome = outcome;
    if (this.#timer !== undefined) return;
    const waitMs = this.#toldAt + LIVE_QUERY_MS - this.#host.monotonic();
    if (waitMs <= 0) this.#tell();
    else this.#timer = this.#host.timer(waitMs, () => this.#tell(), { keepAlive: false });
  }

  #tell(): void {
    this.#timer = undefined;
    this.#toldAt = this.#host.monotonic();
    for (const reader of [...this.readers]) reader.hear();
  }
}

const VERSION_LENGTH = 32;

/** Equal answers have one version, also in another process and after a restart. */
export function versionOf(answer: Json): string {
  return contentId(answer).slice(0, VERSION_LENGTH);
}
