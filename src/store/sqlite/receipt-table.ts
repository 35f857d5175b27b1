/** The horizon, and what the journal says of the events that receipts are of. SPEC: S100-S102. Removing them is `receipt-removal.ts`. */
import type { Connection } from "./connection.ts";
import type { TableCache } from "./table-cache.ts";

export class ReceiptTable implements TableCache {
  /** Undefined when it has to be looked up. */
  #horizonMs: number | undefined;
  readonly #sql;

  constructor(connection: Connection) {
    this.#sql = {
      horizon: connection.prepare("SELECT made_before_ms FROM receipt_horizon"),
      raise: connection.prepare("UPDATE receipt_horizon SET made_before_ms = ?"),
      status: connection.prepare("SELECT status FROM event_journal WHERE message_id = ?"),
    };
  }

  /** Of what was made before, receipts may have been removed. 0 while none was. */
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

  /** Whether it is there and may be handed out, now or when it is requeued. */
  isUnsettled(messageId: string): boolean {
    const row = this.#sql.status.get(messageId);
    return row !== undefined && row["status"] !== "done";
  }

  /** Nothing is held back. */
  flush(): void {}

  forget(): void {
    this.#horizonMs = undefined;
  }
}
