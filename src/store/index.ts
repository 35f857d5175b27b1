/**
 * `millrace/store`: the store interface and its memory backend, replicas with transactions, the journal and the due
 * table, on any JavaScript engine. `millrace/sqlite` has the backend on a file.
 */
/// <reference lib="esnext.disposable" preserve="true" />

export { type Host, HostError, type HostErrorCode, type Timer, type TimerOptions } from "../host/host.ts";
export { systemHost } from "../host/system-host.ts";
export type { Change, Notification, NotificationListener } from "./change.ts";
export type { Commit, CommitOutcome, Committed, Precondition } from "./commit.ts";
export type { Consumer, DeclaredConsumer, RemovalResult } from "./consumer.ts";
export { type Address, asLink, type DocumentRef, type Link, linkTo, SHARED_SCOPE } from "./document.ts";
export type { DueChange, DueRow } from "./due.ts";
export type {
  Claim,
  Delivery,
  JournalEntry,
  JournalQuery,
  JournalRow,
  JournalStatus,
  Settlement,
  VerifyReport,
} from "./journal.ts";
export { LabelError, type LabelErrorCode } from "./label.ts";
export { documentStore } from "./memory/document-store.ts";
export { MemoryDisk } from "./memory/memory-disk.ts";
export { type MemoryStoreOptions, memoryStore } from "./memory/memory-store.ts";
export type { ReceiptPolicy } from "./receipt-keeper.ts";
export { RETRY_RULES, type Rejection, type RejectionClass, type RejectionReason } from "./rejection.ts";
export { Replica, type ReplicaOptions } from "./replica.ts";
export { type Store, StoreError, type StoreErrorCode } from "./store.ts";
export type { Transaction, TransactionOptions } from "./transaction.ts";
