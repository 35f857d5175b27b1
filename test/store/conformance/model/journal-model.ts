/**
 * The journal and its leases as plainly as they can be said: an array of rows, searched from the start each time.
 * Written from the rules, not from a backend.
 */
import { EVENT_SUSPECT_DEATHS } from "../../../../src/limits.ts";
import type { Message } from "../../../../src/message/envelope.ts";
import {
  type ConsumerDeclaration,
  type ConsumerRemoval,
  type ConsumerTable,
  consumerKey,
  consumerOf,
  type RemovalResult,
} from "../../../../src/store/consumer.ts";
import type {
  Claim,
  ClaimRequest,
  Conclusion,
  Ending,
  JournalEntry,
  JournalRow,
  JournalStatus,
  Retention,
  Settlement,
} from "../../../../src/store/journal.ts";
import type { AppendOutcome, Lease, RequeueTarget, SettleResult } from "../../../../src/store/store.ts";

export type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Row = Mutable<JournalRow>;

const BY_STATUS: Readonly<Record<JournalStatus, number>> = { pending: 0, processing: 0, done: 0, failed: 0 };

export class JournalModel {
  rows: Row[] = [];
  #lastId = 0;
  #lastLease = 0;
  /** Expiry of each lease that has not ended. */
  readonly leases = new Map<number, number>();
  /** Reports of holders about their rows under the present claim. */
  readonly #said = new Map<number, "begun" | "left">();
  /** Rows that do not become claimable by time. */
  readonly #parked = new Set<number>();
  /** When each consumer was declared, by key, and which run under which lease. */
  readonly #declared = new Map<string, number>();
  readonly #running = new Map<number, readonly string[]>();
  version = 0;

  declare({ consumers, running }: ConsumerDeclaration, nowMs: number): ConsumerTable {
    const before = this.#declared.size;
    for (const key of consumers.map(consumerKey)) if (!this.#declared.has(key)) this.#declared.set(key, nowMs);
    if (this.#declared.size > before) this.version++;
    if (running !== undefined && this.leases.has(running.lease)) this.#running.set(running.lease, running.keys);
    return this.consumers(nowMs);
  }

  consumers(nowMs: number): ConsumerTable {
    const consumers = [...this.#declared.keys()].sort().map((key) => ({
      ...consumerOf(key),
      declaredAtMs: this.#declared.get(key)!,
      leases: this.#leasesOf(key, nowMs),
      waiting: this.#awaiting(key).length,
    }));
    return { version: this.version, consumers };
  }

  removeConsumer({ limit, exceptLease, ...consumer }: ConsumerRemoval, nowMs: number): RemovalResult {
    const key = consumerKey(consumer);
    if (!this.#declared.has(key)) return "unknown";
    if (this.#leasesOf(key, nowMs).some((lease) => lease !== exceptLease)) return "running";
    const ended = this.#awaiting(key).slice(0, limit);
    for (const row of ended) {
      this.#parked.delete(row.id);
      delete row.nextAttemptAtMs;
      row.deliveries = row.deliveries.map(({ awaits, ...delivery }) => {
        if (awaits === key) return { ...delivery, status: "removing" };
        return awaits === undefined ? delivery : { ...delivery, awaits };
      });
    }
    if (ended.length === limit) return "partly";
    this.#declared.delete(key);
    this.version++;
    return "removed";
  }

  #awaiting(key: string): Row[] {
    return this.rows.filter(({ deliveries }) => deliveries.some(({ awaits }) => awaits === key));
  }

  #leasesOf(key: string, nowMs: number): number[] {
    const live = [...this.leases].filter(([, expiresAtMs]) => expiresAtMs > nowMs).map(([lease]) => lease);
    return live.filter((lease) => this.#running.get(lease)?.includes(key));
  }

  isOutdated({ consumers }: { readonly consumers?: number | undefined }): boolean {
    return consumers !== undefined && consumers !== this.version;
  }

  append(entries: readonly JournalEntry[], nowMs: number): AppendOutcome {
    const before = { rows: [...this.rows], lastId: this.#lastId };
    const ids: number[] = [];
    let isRepeated = false;
    for (const entry of entries) {
      const known = this.rows.find((row) => row.message?.metadata.id === entry.message.metadata.id);
      if (known !== undefined && !sameContent(known, entry)) {
        this.rows = before.rows;
        this.#lastId = before.lastId;
        return { kind: "rejected", class: "permanent", reason: "message-exists", message: "" };
      }
      if (known !== undefined) isRepeated = true;
      ids.push(known?.id ?? this.#insert(entry, nowMs));
    }
    for (const [at, { as }] of entries.entries())
      if (as.status !== "done" || !this.isOutdated(as)) this.#repeat(ids[at]!, as, nowMs);
    return isRepeated ? { kind: "appended", ids, repeated: true } : { kind: "appended", ids };
  }

  /** A success makes up for a failure or a refusal; a refusal or failure replaces a refusal. */
  #repeat(id: number, as: JournalEntry["as"], nowMs: number): void {
    const row = this.rows.find((one) => one.id === id)!;
    const isSuccess = as.status === "done" && as.ending === undefined;
    if (as.status !== "done" && as.status !== "failed") return;
    if (row.outcome !== "refused" && !(row.status === "failed" && isSuccess)) return;
    row.status = as.status;
    row.processedAtMs = nowMs;
    endAs(row, as.status === "done" ? as.ending : undefined);
    if (as.status === "failed") row.error = as.error;
  }

  conclude(ids: readonly number[], { from, ending }: Conclusion, nowMs: number): number[] {
    return ids.filter((id) => {
      const row = this.rows.find((one) => one.id === id);
      if (row?.status !== from) return false;
      const { error } = row;
      row.status = "done";
      row.processedAtMs = nowMs;
      endAs(row, ending);
      if (from === "failed" && error !== undefined) row.error = error;
      delete row.deaths;
      delete row.nextAttemptAtMs;
      this.#parked.delete(id);
      row.deliveries = row.deliveries.map(({ awaits: _, ...delivery }) => delivery);
      return true;
    });
  }

  openLease(durationMs: number, nowMs: number): Lease {
    const lease = ++this.#lastLease;
    this.leases.set(lease, nowMs + durationMs);
    return { lease, expiresAtMs: nowMs + durationMs };
  }

  /** The store has given the newest lease another number. */
  renameLease(lease: number, given: number): void {
    this.leases.set(given, this.leases.get(lease)!);
    this.leases.delete(lease);
    this.#lastLease = given;
  }

  /** The store has given a new row another id. */
  renameRow(id: number, given: number): void {
    const row = this.rows.find((one) => one.id === id)!;
    row.id = given;
    this.rows.sort((a, b) => a.id - b.id);
    this.#lastId = Math.max(this.#lastId, given);
  }

  renewLease(lease: number, durationMs: number, nowMs: number): boolean {
    if (!this.leases.has(lease)) return false;
    this.leases.set(lease, nowMs + durationMs);
    return true;
  }

  closeLease(lease: number): number {
    this.leases.delete(lease);
    return this.#abandon((row) => row.lease === lease);
  }

  recover(nowMs: number): number {
    for (const [lease, expiresAtMs] of [...this.leases]) if (expiresAtMs <= nowMs) this.leases.delete(lease);
    return this.#abandon((row) => {
      const isOrphan = !this.leases.has(row.lease!);
      const { deaths = 0 } = row;
      const said = this.#said.get(row.id);
      if (isOrphan && said === "left") row.deaths = Math.max(deaths, 1);
      else if (isOrphan && (deaths < EVENT_SUSPECT_DEATHS || said === "begun")) row.deaths = deaths + 1;
      return isOrphan;
    });
  }

  claim({ lease, limit, kinds, suspects, consumers = [] }: ClaimRequest, nowMs: number): Claim[] {
    const expiresAtMs = this.leases.get(lease);
    if (expiresAtMs === undefined || expiresAtMs <= nowMs) return [];
    const claimable = this.rows.filter(
      (row) =>
        row.status === "pending" &&
        ((row.nextAttemptAtMs === undefined && !this.#parked.has(row.id)) ||
          row.deliveries.some(({ awaits }) => awaits !== undefined && consumers.includes(awaits))) &&
        kinds.some((kind) => kind === row.message?.kind),
    );
    const isSuspect = (row: Row) => suspects !== undefined && (row.deaths ?? 0) >= suspects.from;
    const allowed = claimable.filter(isSuspect).slice(0, suspects?.limit);
    const offered = claimable.filter((row) => !isSuspect(row) || allowed.includes(row));
    return offered.slice(0, limit).map((row) => {
      row.status = "processing";
      row.attempts++;
      this.#said.delete(row.id);
      this.#parked.delete(row.id);
      delete row.nextAttemptAtMs;
      row.deliveries = row.deliveries.map(({ awaits: _, ...delivery }) => delivery);
      row.lease = lease;
      return { row: structuredClone(row), lease, attempt: row.attempts };
    });
  }

  isHeld({ id, lease, attempt }: Settlement): boolean {
    const row = this.rows.find((one) => one.id === id);
    return row?.status === "processing" && row.lease === lease && row.attempts === attempt;
  }

  settle(settlement: Settlement, nowMs: number): SettleResult {
    const row = this.rows.find((one) => one.id === settlement.id);
    if (row === undefined || !this.isHeld(settlement)) return "lease-lost";
    if (this.isOutdated(settlement)) return "consumers-moved";
    for (const delivery of settlement.deliveries ?? []) {
      const others = row.deliveries.filter((one) => one.subscriber !== delivery.subscriber);
      row.deliveries = [...others, { ...delivery }];
    }
    const { outcome } = settlement;
    if (outcome.kind === "begun" || outcome.kind === "left") this.#said.set(row.id, outcome.kind);
    if (outcome.kind === "partial" || outcome.kind === "begun" || outcome.kind === "left") return "settled";
    delete row.lease;
    if (outcome.kind === "release") {
      row.status = "pending";
      row.attempts--;
      return "settled";
    }
    if (outcome.kind !== "waits") delete row.deaths;
    endAs(row, outcome.kind === "done" ? outcome.ending : undefined);
    if (outcome.kind !== "done") row.error = outcome.error;
    if (outcome.kind === "retry") {
      row.status = "pending";
      row.nextAttemptAtMs = outcome.atMs;
    } else if (outcome.kind === "waits") {
      row.status = "pending";
      if (outcome.atMs === undefined) this.#parked.add(row.id);
      else row.nextAttemptAtMs = outcome.atMs;
    } else {
      row.status = outcome.kind;
      row.processedAtMs = nowMs;
    }
    return "settled";
  }

  requeue(ids: readonly number[], onlyFor?: RequeueTarget): number[] {
    return ids.filter((id) => {
      const row = this.rows.find((one) => one.id === id);
      if (row?.status !== "failed" && row?.status !== "done") return false;
      if (row.status === "done" && row.outcome !== "unheard" && onlyFor === undefined) return false;
      row.status = "pending";
      endAs(row, undefined);
      delete row.deaths;
      delete row.processedAtMs;
      const { subscribers = [], others = [] } = onlyFor ?? {};
      row.deliveries = row.deliveries.filter(
        ({ status, subscriber }) => status === "done" && !subscribers.includes(subscriber),
      );
      for (const subscriber of others) {
        if (row.deliveries.some((one) => one.subscriber === subscriber)) continue;
        row.deliveries = [...row.deliveries, { subscriber, status: "done", attempts: 0 }];
      }
      return true;
    });
  }

  releaseRetries(nowMs: number): { released: number; nextAtMs: number | undefined } {
    let released = 0;
    for (const row of this.rows) {
      if (row.nextAttemptAtMs === undefined || row.nextAttemptAtMs > nowMs) continue;
      delete row.nextAttemptAtMs;
      released++;
    }
    const waiting = this.rows.flatMap((row) => row.nextAttemptAtMs ?? []);
    return { released, nextAtMs: waiting.length === 0 ? undefined : Math.min(...waiting) };
  }

  retain({ settledBeforeMs, keepSettled, limit }: Retention): number {
    const settled = this.rows.filter((row) => row.status === "done");
    const newest = keepSettled === undefined ? settled : settled.slice(Math.max(0, settled.length - keepSettled));
    const going = settled.filter(
      (row) => !newest.includes(row) || (settledBeforeMs !== undefined && row.processedAtMs! < settledBeforeMs),
    );
    const gone = going.slice(0, limit);
    this.rows = this.rows.filter((row) => !gone.includes(row));
    return gone.length;
  }

  count(): Record<JournalStatus, number> {
    const counts = { ...BY_STATUS };
    for (const row of this.rows) counts[row.status]++;
    return counts;
  }

  #insert({ message, topic, source, as }: JournalEntry, nowMs: number): number {
    const id = ++this.#lastId;
    const isOld = as.status === "done" && this.isOutdated(as);
    const status = isOld ? "pending" : as.status === "claimed" ? "processing" : as.status;
    const row: Row = { id, topic, source, message, status, createdAtMs: nowMs, attempts: 0, deliveries: [] };
    if (as.status === "claimed") {
      row.attempts = 1;
      row.lease = as.lease;
    }
    if (as.status === "failed") row.error = as.error;
    if (!isOld && as.status === "done") endAs(row, as.ending);
    if (!isOld && (as.status === "done" || as.status === "failed")) row.processedAtMs = nowMs;
    this.rows.push(row);
    return id;
  }

  #abandon(isIt: (row: Row) => boolean): number {
    const abandoned = this.rows.filter((row) => row.status === "processing" && isIt(row));
    for (const row of abandoned) {
      row.status = "pending";
      delete row.lease;
    }
    return abandoned.length;
  }
}

/** How the row ended, in place of how it ended or failed before. */
function endAs(row: Row, ending: Ending | undefined): void {
  delete row.error;
  delete row.outcome;
  delete row.reason;
  Object.assign(row, ending);
}

function sameContent(row: Row, { message, topic, source }: JournalEntry): boolean {
  const content = ({ kind, type, data, metadata }: Message) =>
    JSON.stringify(kind === "command" ? [kind, type, data] : [kind, type, data, metadata]);
  return (
    row.topic === topic &&
    (row.source === source || message.kind === "command") &&
    row.message !== undefined &&
    content(row.message) === content(message)
  );
}
