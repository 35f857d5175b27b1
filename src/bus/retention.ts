/**
 * Removes settled rows that are old, or too many, in the background. SPEC: J74.
 *
 * One small step at a time, each a job of its own in the store's queue: a publish waits for at most one of them.
 * Between two steps of one sweep timers, sockets and other writers get in.
 */
import type { Host, Timer } from "../host/host.ts";
import { RETENTION_INTERVAL_MS, RETENTION_STEP_ROWS, TIMER_DELAY_MS_MAX } from "../limits.ts";
import { fromError } from "../message/error-data.ts";
import type { Retention as RetentionStep } from "../store/journal.ts";
import type { Store } from "../store/store.ts";
import { BusError } from "./bus-error.ts";
import type { BusObserver } from "./observation.ts";

/** Which settled rows of the journal are removed, and when. */
export interface RetentionPolicy {
  /** Settled events older than this go. */
  readonly maxAgeMs?: number;
  /** Of the settled events only so many stay, the newest. */
  readonly maxSettled?: number;
  /** How often to look. */
  readonly everyMs?: number;
}

export class RetentionKeeper {
  readonly #host: Host;
  readonly #store: Store;
  readonly #policy: RetentionPolicy;
  readonly #observe: BusObserver;
  #timer: Timer | undefined;
  #running = false;

  constructor(parts: { host: Host; store: Store; policy: RetentionPolicy | undefined; observe: BusObserver }) {
    this.#host = parts.host;
    this.#store = parts.store;
    this.#policy = parts.policy ?? {};
    this.#observe = parts.observe;
    checkPolicy(this.#policy);
  }

  start(): void {
    if (this.#policy.maxAgeMs === undefined && this.#policy.maxSettled === undefined) return;
    this.#running = true;
    this.#arm();
  }

  stop(): void {
    this.#running = false;
    this.#timer?.cancel();
  }

  /** Removes all rows that may go now; resolves with their number. */
  async sweep(): Promise<number> {
    let removed = 0;
    for (;;) {
      const step = this.#step();
      const went = await this.#store.retain(step);
      removed += went;
      if (went < step.limit) return removed;
      await this.#host.yield();
    }
  }

  #arm(): void {
    if (!this.#running) return;
    this.#timer = this.#host.timer(this.#policy.everyMs ?? RETENTION_INTERVAL_MS, () => void this.#turn(), {
      keepAlive: false,
    });
  }

  async #turn(): Promise<void> {
    try {
      await this.sweep();
    } catch (error) {
      this.#observe({ kind: "store-trouble", doing: "removing old events", error: fromError(error).message });
    }
    this.#arm();
  }

  #step(): RetentionStep {
    const { maxAgeMs, maxSettled } = this.#policy;
    return {
      ...(maxAgeMs === undefined ? {} : { settledBeforeMs: this.#store.now() - maxAgeMs }),
      ...(maxSettled === undefined ? {} : { keepSettled: maxSettled }),
      limit: RETENTION_STEP_ROWS,
    };
  }
}

function checkPolicy({ maxAgeMs = 0, maxSettled = 0, everyMs = 1 }: RetentionPolicy): void {
  const fits = maxAgeMs >= 0 && Number.isSafeInteger(maxSettled) && maxSettled >= 0;
  if (fits && Number.isFinite(maxAgeMs) && everyMs > 0 && everyMs <= TIMER_DELAY_MS_MAX) return;
  throw new BusError(
    "BUS_MISUSE",
    "retention takes maxAgeMs and a whole number maxSettled of at least 0, and everyMs of more than 0 and at most 100 years",
  );
}
