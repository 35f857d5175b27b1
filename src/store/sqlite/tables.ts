/**
 * All tables of one connection, flushed and cleared together.
 */
import { outlivedEntry } from "../commit-rules.ts";
import { BasisTable } from "./basis-table.ts";
import { CommitLog } from "./commit-log.ts";
import type { SqliteConnection, Statement } from "./connection.ts";
import { ConsumerRows } from "./consumer-table.ts";
import { DocumentTable } from "./document-table.ts";
import { DueTable } from "./due-table.ts";
import type { EncodedEntry } from "./journal-entry.ts";
import { type Appended, JournalTable } from "./journal-table.ts";
import { LabelTable } from "./label-table.ts";
import { LeaseTable } from "./lease-table.ts";
import { SpaceTable } from "./space-table.ts";
import type { TableCache } from "./table-cache.ts";

export class Tables implements TableCache {
  readonly journal: JournalTable;
  readonly leases: LeaseTable;
  readonly consumers: ConsumerRows;
  readonly due: DueTable;
  readonly spaces: SpaceTable;
  readonly commits: CommitLog;
  readonly documents: DocumentTable;
  readonly labels: LabelTable;
  readonly basis: BasisTable;
  readonly receipts: ReceiptTable;
  readonly #history: Statement;
  /** As it was read last. */
  knownHistory: string;
  #isHistoryKnown = true;

  constructor(connection: SqliteConnection) {
    this.#history = connection.prepare("SELECT history FROM store_file");
    this.knownHistory = String(this.#history.get()?.["history"]);
    this.journal = new JournalTable(connection);
    this.leases = new LeaseTable(connection);
    this.consumers = new ConsumerRows(connection, this.leases);
    this.due = new DueTable(connection);
    this.spaces = new SpaceTable(connection);
    this.commits = new CommitLog(connection);
    this.documents = new DocumentTable(connection);
    this.labels = new LabelTable(connection);
    this.basis = new BasisTable(connection);
    this.receipts = new ReceiptTable(connection);
  }

  /** The id of the data's history. It changes if another program restores a copy into the file. */
  get history(): string {
    if (!this.#isHistoryKnown) this.knownHistory = String(this.#history.get()?.["history"]);
    this.#isHistoryKnown = true;
    return this.knownHistory;
  }

  /** Appends messages to the journal unless one is older than the receipt horizon. */
  append(entries: readonly EncodedEntry[]): Appended {
    const { horizonMs } = this.receipts;
    const old = horizonMs > 0 && outlivedEntry(entries, horizonMs, (id) => this.receipts.hasEvent(id));
    return old || this.journal.append(this.#decided(entries));
  }

  /** Entries decided by an old version of the consumer table start as pending. */
  #decided(entries: readonly EncodedEntry[]): readonly EncodedEntry[] {
    const isOld = ({ as }: EncodedEntry) =>
      as.status === "done" && as.consumers !== undefined && as.consumers !== this.consumers.version;
    if (!entries.some(isOld)) return entries;
    return entries.map((entry) => (isOld(entry) ? { ...entry, as: { status: "pending" } } : entry));
  }

  flush(): void {
    this.journal.flush();
    this.spaces.flush();
    this.commits.flush();
    this.documents.flush();
    this.basis.flush();
  }

  forget(): void {
    this.journal.forget();
    this.spaces.forget();
    this.commits.forget();
    this.documents.forget();
    this.basis.forget();
    this.receipts.forget();
    this.consumers.forget();
    this.#isHistoryKnown = false;
  }
}

/**
 * The receipt horizon, and the journal status of events with receipts. SPEC: S100-S102. `receipt-removal.ts` removes
 * receipts.
 */
class ReceiptTable implements TableCache {
  /** Undefined if it must be read. */
  #horizonMs: number | undefined;
  readonly #sql;

  constructor(connection: SqliteConnection) {
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
