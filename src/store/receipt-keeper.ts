/**
 * Advances the horizon of a store with the clock and removes the receipts behind it. SPEC: S106. Off unless a retention
 * time is configured (decision 0014).
 *
 * It works in small steps, each a separate job in the store's queue, like the journal's retention. Failures are
 * reported and retried in the next round.
 */
import type { Host, Timer } from "../host/host.ts";
import {
  RECEIPT_SWEEP_MS_MAX,
  RECEIPT_SWEEP_MS_MIN,
  RECEIPT_SWEEPS_KEPT,
  RECEIPTS_KEEP_MS_MIN,
  RECEIPTS_STEP,
} from "../limits.ts";
import { type Store, StoreError } from "./store.ts";

/** How long receipts are kept. */
export interface ReceiptPolicy {
  /**
   * How long receipts are kept, counted from the creation of the message. A repeat within that time gets the first
   * answer; a later one is refused as too old. At least an hour. Applies to the whole store; the shortest time of all
   * kernels wins.
   */
  readonly keepMs: number;
}

export class ReceiptKeeper {
  readonly #host: Host;
  readonly #store: Store;
  readonly #keepMs: number;
  readonly #tell: (trouble: unknown) => void;
  #timer: Timer | undefined;
  #state: "running" | "stopped" = "stopped";

  constructor(parts: { host: Host; store: Store; policy: ReceiptPolicy; tell: (trouble: unknown) => void }) {
    this.#host = parts.host;
    this.#store = parts.store;
    this.#keepMs = parts.policy.keepMs;
    this.#tell = parts.tell;
    requireReceiptPolicy(parts.policy);
  }

  start(): void {
    this.#state = "running";
    this.#arm(RECEIPT_SWEEP_MS_MIN);
  }

  stop(): void {
    this.#state = "stopped";
    this.#timer?.cancel();
  }

  /** Removes all receipts that may go now and resolves with their number. */
  async sweep(): Promise<number> {
    const madeBeforeMs = this.#store.now() - this.#keepMs;
    let removed = 0;
    for (;;) {
      const step = await this.#store.forgetReceipts({ madeBeforeMs, limit: RECEIPTS_STEP });
      removed += step.removed;
      if (step.removed < RECEIPTS_STEP || this.#state === "stopped") return removed;
      await this.#host.yield();
    }
  }

  #arm(delayMs: number): void {
    this.#timer = this.#host.timer(delayMs, () => void this.#turn(), { keepAlive: false });
  }

  async #turn(): Promise<void> {
    try {
      await this.sweep();
    } catch (error) {
      if (this.#state === "running") this.#tell(error);
    }
    const everyMs = this.#keepMs / RECEIPT_SWEEPS_KEPT;
    if (this.#state === "running") this.#arm(Math.min(Math.max(everyMs, RECEIPT_SWEEP_MS_MIN), RECEIPT_SWEEP_MS_MAX));
  }
}

/** Throws for an invalid policy. */
export function requireReceiptPolicy({ keepMs }: ReceiptPolicy): void {
  if (keepMs >= RECEIPTS_KEEP_MS_MIN && Number.isFinite(keepMs)) return;
  const least = `receipts.keepMs must be at least ${RECEIPTS_KEEP_MS_MIN} ms, an hour, since clocks differ`;
  throw new StoreError("STORE_MISUSE", `${least}; got ${keepMs}. Leave it out to keep receipts for ever.`);
}
