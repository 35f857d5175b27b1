/**
 * The receipt horizon, and the journal status of events with receipts. SPEC: S100-S102. `receipt-removal.ts` removes
 * receipts.
 */
import type { Connection } from "./connection.ts";
import type { TableCache } from "./table-cache.ts";

export class ReceiptTable implements TableCache {
  /** Undefined if it must be read. */
  #horizonMs: number | undefined;
  readonly #sql;

  constructor(connection: Connection) {
    this.#sql = {
      horizon: connection.prepare("SELECT made_before_ms FROM receipt_horizon"),
      raise: connection.prepare("UPDATE receipt_horizon SET made_before_ms = ?"),
      status: connection.prepare("SELECT status FROM event_journal WHERE message_id = ?"),
    };
  }

  /** Receipts of messages made before this time may have been removed. 0 if none was. */
  get horizonMs(): number {
    this.#horizonMs ??= Number(this.#sql.horizon.get()?.["made_before_ms"] ?? 0);
    return this.#horizonMs;
  }

  raiseHorizon(timeMs: number): void {
    if (timeMs <= this.horizonMs) return;
    this.#sql.raise.run(timeMs);
    this.#horizonMs = timeMs;
  }

  /** Whether the event is in the journal. */
  hasEvent(messageId: string): boolean {
    return this.#sql.status.get(messageId) !== undefined;
  }

  /** Whether the event exists and may still be claimed, now or after a requeue. */
  isUnsettled(messageId: string): boolean {
    const row = this.#sql.status.get(messageId);
    return row !== undefined && row["status"] !== "done";
  }

  /** There are no buffered writes. */
  flush(): void {}

  forget(): void {
    this.#horizonMs = undefined;
  }
}
