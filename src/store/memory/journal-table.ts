/**
 * The journal in memory: rows by id, and what is needed to find them by state without reading them all. A row's state is
 * changed by `#move` alone, which keeps every index true. SPEC: J10-J18, J22-J30.
 */
import type {
  Claim,
  ClaimRequest,
  JournalEntry,
  JournalQuery,
  JournalRow,
  JournalStatus,
  Retention,
  Settlement,
} from "../journal.ts";
import { sameMessage } from "../same-message.ts";
import { matches } from "./journal-filter.ts";
import {
  abandoned,
  claimed,
  isClaimable,
  type JournalRecord,
  type JournalState,
  messageOf,
  newRecord,
  orphaned,
  requeued,
  retryReleased,
  rowOf,
  settled,
} from "./journal-record.ts";
import type { LeaseTable } from "./lease-table.ts";

export class JournalTable {
  readonly #leases: LeaseTable;
  /** By id, which is also the order of insertion. */
  readonly #records = new Map<number, JournalRecord>();
  readonly #byMessageId = new Map<string, JournalRecord>();
  /** The id given last. Ids of removed rows do not come back. */
  #lastId = 0;
  readonly #counts: Record<JournalStatus, number> = { pending: 0, processing: 0, done: 0, failed: 0 };
  /** Ids of processing rows, by lease. */
  readonly #held = new Map<number, Set<number>>();
  /** Ids of pending rows that wait for their next attempt. */
  readonly #waiting = new Set<number>();
  /** No row of the kind with a smaller id is claimable: where a claim starts to look. */
  readonly #claimableFrom = { event: 1, command: 1 };

  constructor(leases: LeaseTable) {
    this.#leases = leases;
  }

  /** The id of a message that is in the journal, or earlier in the list, with other content. */
  findOtherContent(entries: readonly JournalEntry[]): string | undefined {
    const listed = new Map<string, JournalEntry>();
    for (const entry of entries) {
      const { id } = entry.message.metadata;
      const record = this.#byMessageId.get(id);
      const known = record === undefined ? listed.get(id) : { ...record, message: messageOf(record) };
      if (known !== undefined && !sameContent(known, entry)) return id;
      listed.set(id, entry);
    }
    return undefined;
  }

  has(messageId: string): boolean {
    return this.#byMessageId.has(messageId);
  }

  /** Whether it is there and may be handed out, now or when it is requeued. */
  isUnsettled(messageId: string): boolean {
    const record = this.#byMessageId.get(messageId);
    return record !== undefined && record.state.status !== "done";
  }

  /** Appends what is not there yet. Callers have asked `findOtherContent`. */
  append(entries: readonly JournalEntry[], nowMs: number): number[] {
    return entries.map((entry) => {
      const known = this.#byMessageId.get(entry.message.metadata.id);
      if (known !== undefined) {
        if (entry.as.status === "done" && known.state.status === "failed") {
          const { attempts } = known.state;
          this.#move(known, { ...newRecord(known.id, entry, nowMs).state, attempts });
        }
        return known.id;
      }
      const record = newRecord(++this.#lastId, entry, nowMs);
      this.#records.set(record.id, record);
      this.#byMessageId.set(record.messageId, record);
      this.#enter(record);
      return record.id;
    });
  }

  claim({ lease, limit, kinds, suspects }: ClaimRequest, nowMs: number): Claim[] {
    if (!this.#leases.isLive(lease, nowMs)) return [];
    const from = Math.min(...kinds.map((kind) => this.#claimableFrom[kind]));
    const claims: Claim[] = [];
    let id = from;
    let suspectsLeft = suspects?.limit ?? 0;
    let firstPassedOver = Number.POSITIVE_INFINITY;
    for (; id <= this.#lastId && claims.length < limit; id++) {
      const record = this.#records.get(id);
      if (record === undefined || !isClaimable(record.state) || !kinds.some((kind) => kind === record.kind)) continue;
      if (suspects !== undefined && record.state.deaths >= suspects.from && suspectsLeft-- <= 0) {
        firstPassedOver = Math.min(firstPassedOver, id);
        continue;
      }
      this.#move(record, claimed(record.state, lease));
      claims.push({ row: rowOf(record), lease, attempt: record.state.attempts });
    }
    const next = Math.min(id, firstPassedOver);
    for (const kind of kinds) this.#claimableFrom[kind] = Math.max(next, this.#claimableFrom[kind]);
    return claims;
  }

  holdsClaim({ id, lease, attempt }: Settlement): boolean {
    const state = this.#records.get(id)?.state;
    return state?.status === "processing" && state.lease === lease && state.attempts === attempt;
  }

  /** False, and nothing changed, when the claim is no longer held. */
  settle(settlement: Settlement, nowMs: number): boolean {
    const record = this.#records.get(settlement.id);
    if (record === undefined || !this.holdsClaim(settlement)) return false;
    for (const delivery of settlement.deliveries ?? []) record.deliveries.set(delivery.subscriber, { ...delivery });
    this.#move(record, settled(record.state, settlement.outcome, nowMs));
    return true;
  }

  /** Sends the rows of one lease back to pending. */
  abandonHeldBy(lease: number, become = abandoned): number {
    const ids = [...(this.#held.get(lease) ?? [])];
    for (const id of ids) {
      const record = this.#records.get(id)!;
      this.#move(record, become(record.state));
    }
    return ids.length;
  }

  /** Sends the rows of every lease that is not live back to pending. */
  recover(nowMs: number): number {
    let recovered = 0;
    for (const lease of [...this.#held.keys()]) {
      if (!this.#leases.isLive(lease, nowMs)) recovered += this.abandonHeldBy(lease, orphaned);
    }
    return recovered;
  }

  requeue(ids: readonly number[]): number[] {
    return ids.filter((id) => {
      const record = this.#records.get(id);
      if (record?.state.status !== "failed") return false;
      for (const { subscriber, status } of record.deliveries.values()) {
        if (status !== "done") record.deliveries.delete(subscriber);
      }
      this.#move(record, requeued(record.state));
      return true;
    });
  }

  releaseRetries(nowMs: number): { released: number; nextAtMs: number | undefined } {
    let released = 0;
    let nextAtMs: number | undefined;
    for (const id of [...this.#waiting]) {
      const record = this.#records.get(id)!;
      const atMs = record.state.nextAttemptAtMs!;
      if (atMs <= nowMs) {
        this.#move(record, retryReleased(record.state));
        released++;
      } else if (nextAtMs === undefined || atMs < nextAtMs) {
        nextAtMs = atMs;
      }
    }
    return { released, nextAtMs };
  }

  query(query: JournalQuery): JournalRow[] {
    const rows: JournalRow[] = [];
    for (const record of this.#candidates(query)) {
      if (rows.length >= query.limit) break;
      if (matches(record, query)) rows.push(rowOf(record));
    }
    return rows;
  }

  count(): Record<JournalStatus, number> {
    return { ...this.#counts };
  }

  retain({ settledBeforeMs, keepSettled, limit }: Retention): number {
    let overCount = keepSettled === undefined ? 0 : this.#counts.done - keepSettled;
    let removed = 0;
    for (const record of this.#records.values()) {
      if (removed >= limit) break;
      const { state } = record;
      // A failed row is a dead letter: it stays until it is requeued and handled.
      if (state.status !== "done") continue;
      const isOld = settledBeforeMs !== undefined && state.processedAtMs! < settledBeforeMs;
      if (isOld || overCount > 0) {
        this.#remove(record);
        removed++;
      }
      // Counted from the oldest on, so that what stays is the newest, whatever goes for its age.
      overCount--;
    }
    return removed;
  }

  get lastId(): number {
    return this.#lastId;
  }

  get size(): number {
    return this.#records.size;
  }

  /** What contradicts itself, one sentence each. */
  problems(): string[] {
    const problems: string[] = [];
    const counts: Record<JournalStatus, number> = { pending: 0, processing: 0, done: 0, failed: 0 };
    for (const { id, kind, state } of this.#records.values()) {
      counts[state.status]++;
      const isHeld = state.lease !== undefined && this.#held.get(state.lease)?.has(id) === true;
      if ((state.status === "processing") !== isHeld) problems.push(`row ${id} is ${state.status} and held: ${isHeld}`);
      const from = kind === "event" || kind === "command" ? this.#claimableFrom[kind] : 0;
      if (isClaimable(state) && id < from) problems.push(`row ${id} is claimable, but claims start at ${from}`);
    }
    for (const status of ["pending", "processing", "done", "failed"] as const) {
      if (counts[status] !== this.#counts[status]) {
        problems.push(`${counts[status]} rows are ${status}, and ${this.#counts[status]} were counted`);
      }
    }
    return problems;
  }

  /** Every row that can match, in the order asked for. */
  *#candidates({ id, messageId, cursor, order }: JournalQuery): Generator<JournalRecord> {
    if (id !== undefined || messageId !== undefined) {
      const record = id === undefined ? this.#byMessageId.get(messageId!) : this.#records.get(id);
      if (record !== undefined) yield record;
      return;
    }
    const step = order === "descending" ? -1 : 1;
    const [oldest] = this.#records.keys();
    const first = Math.max(oldest ?? 1, step > 0 && cursor !== undefined ? cursor + 1 : 1);
    const last = Math.min(this.#lastId, step < 0 && cursor !== undefined ? cursor - 1 : this.#lastId);
    for (let at = step > 0 ? first : last; at >= first && at <= last; at += step) {
      const record = this.#records.get(at);
      if (record !== undefined) yield record;
    }
  }

  #remove(record: JournalRecord): void {
    this.#leave(record);
    this.#records.delete(record.id);
    this.#byMessageId.delete(record.messageId);
  }

  #move(record: JournalRecord, next: JournalState): void {
    this.#leave(record);
    record.state = next;
    this.#enter(record);
  }

  #enter({ id, kind, state }: JournalRecord): void {
    this.#counts[state.status]++;
    if (state.lease !== undefined) {
      const ids = this.#held.get(state.lease) ?? new Set();
      this.#held.set(state.lease, ids.add(id));
    }
    if (state.nextAttemptAtMs !== undefined) this.#waiting.add(id);
    if (isClaimable(state) && (kind === "event" || kind === "command")) {
      this.#claimableFrom[kind] = Math.min(this.#claimableFrom[kind], id);
    }
  }

  #leave({ id, state }: JournalRecord): void {
    this.#counts[state.status]--;
    this.#waiting.delete(id);
    if (state.lease === undefined) return;
    const ids = this.#held.get(state.lease);
    ids?.delete(id);
    if (ids?.size === 0) this.#held.delete(state.lease);
  }
}

/** Content is the message, its topic and its source; how the row starts is not. */
function sameContent(a: Omit<JournalEntry, "as">, b: JournalEntry): boolean {
  return a.topic === b.topic && a.source === b.source && sameMessage(a.message, b.message);
}
