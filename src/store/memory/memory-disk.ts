/**
 * The data of memory stores: documents, journal, leases, consumers and timers. It ends with the process. SPEC: S22,
 * S24.
 */
import type { Erased, EraseRequest } from "../erase.ts";
import { ConsumerRows } from "./consumer-table.ts";
import { DocumentDisk, type JournalTables } from "./document-disk.ts";
import { DueTable } from "./due-table.ts";
import { eraseFrom } from "./erase-memory.ts";
import { JournalTable } from "./journal-table.ts";
import { LeaseTable } from "./lease-table.ts";

/** The data of a memory store. It outlives the store, so that a test can crash and restart. */
export class MemoryDisk extends DocumentDisk {
  readonly hasJournal = true;
  readonly leases = new LeaseTable();
  readonly consumers = new ConsumerRows(this.leases);
  readonly journal = new JournalTable(this.leases, this.consumers);
  readonly due = new DueTable();

  get tables(): JournalTables {
    return this;
  }

  erase(request: EraseRequest): Erased {
    return eraseFrom(this, request);
  }
}
