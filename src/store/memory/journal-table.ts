/**
 * The journal in memory: rows by id, with indexes by state. `#enter` and `#leave` around each state change keep the
 * indexes consistent. SPEC: J10-J18, J22-J30.
 */

import { digestIn, tombstone } from "../erase.ts";
import type {
  Claim,
  ClaimRequest,
  Conclusion,
  Delivery,
  JournalEntry,
  JournalQuery,
  JournalRow,
  JournalStatus,
  Retention,
  Settlement,
} from "../journal.ts";
import type { GoneRows, JournalPage } from "../journal-position.ts";
import { sameMessage, sameSource } from "../same-message.ts";
import type { RequeueTarget } from "../store.ts";
import type { ConsumerRows } from "./consumer-table.ts";
import {
  abandoned,
  claimed,
  concluded,
  isClaimable,
  isRequeueable,
  type JournalRecord,
  type JournalState,
  matches,
  messageOf,
  newRecord,
  orphaned,
  PARKED_MS,
  repeated,
  requeued,
  retryReleased,
  rowOf,
  settled,
} from "./journal-record.ts";
import type { LeaseTable } from "./lease-table.ts";

/** Greater than all ids. */
const END = Number.POSITIVE_INFINITY;

/** Numbers the rows that one store object appends. */
export interface LaneWriter {
  readonly lane: number;
  /** The next id, greater than the previous one of the lane. */
  next(previous: number): number;
}

/** A page of a follower, with the last id that it has passed in each lane. */
export interface FollowedRows extends Pick<JournalPage, "rows" | "gone" | "isFull"> {
  readonly lanes: ReadonlyMap<number, number>;
}

export class JournalTable {
  readonly #leases: LeaseTable;
  readonly #records = new Map<number, JournalRecord>();
  /** Ids in order, with those of removed rows until there are more of them than of others. */
  #ids: number[] = [];
  /** The last id of each lane, also where its row was removed. */
  readonly #lastIds = new Map<number, number>();
  readonly #byMessageId = new Map<string, JournalRecord>();
  readonly #counts: Record<JournalStatus, number> = { pending: 0, processing: 0, done: 0, failed: 0 };
  /** Ids of processing rows, by lease. */
  readonly #held = new Map<number, Set<number>>();
  /** Ids of pending rows that wait for their next attempt. */
  readonly #waiting = new Set<number>();
  /** No row of the kind with a smaller id is claimable: the start of the next claim's scan. */
  readonly #claimableFrom = { event: 0, command: 0 };
  /** Ids of pending rows that wait for a consumer, by its key. */
  readonly #awaited = new Map<string, Set<number>>();
  readonly #consumers: ConsumerRows;

  constructor(leases: LeaseTable, consumers: ConsumerRows) {
    this.#leases = leases;
    this.#consumers = consumers;
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

  /** Whether it exists and may still be claimed, now or after a requeue. */
  isUnsettled(messageId: string): boolean {
    const record = this.#byMessageId.get(messageId);
    return record !== undefined && record.state.status !== "done";
  }

  /** Appends new messages. The caller has checked `findOtherContent`. */
  append(entries: readonly JournalEntry[], nowMs: number, lane: LaneWriter): number[] {
    return entries.map((given) => {
      const entry = this.#decided(given);
      const known = this.#byMessageId.get(entry.message.metadata.id);
      if (known !== undefined) {
        const state = repeated(known.state, entry.as, nowMs);
        if (state !== undefined) this.#move(known, state);
        return known.id;
      }
      const record = this.#insert(entry, nowMs, lane);
      this.#byMessageId.set(record.messageId, record);
      this.#enter(record);
      return record.id;
    });
  }

  #insert(entry: JournalEntry, nowMs: number, writer: LaneWriter): JournalRecord {
    const { lane } = writer;
    const previous = this.#lastIds.get(lane) ?? 0;
    const id = writer.next(previous);
    const record = newRecord({ id, lane, previous }, entry, nowMs);
    this.#records.set(id, record);
    this.#lastIds.set(lane, id);
    // Mostly the greatest: another lane may be ahead.
    if (id > (this.#ids.at(-1) ?? 0)) this.#ids.push(id);
    else this.#ids.splice(this.#indexOf(id), 0, id);
    return record;
  }

  /** The index of the first id that is `id` or greater. */
  #indexOf(id: number): number {
    let [low, high] = [0, this.#ids.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#ids[middle]! < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** An entry decided by an old version of the consumer table starts as pending. */
  #decided(entry: JournalEntry): JournalEntry {
    const { as } = entry;
    if (as.status !== "done" || as.consumers === undefined || as.consumers === this.#consumers.version) return entry;
    return { ...entry, as: { status: "pending" } };
  }

  claim(request: ClaimRequest, nowMs: number): Claim[] {
    const { lease, limit, kinds, suspects, consumers = [], exceptTopics = [] } = request;
    if (!this.#leases.isLive(lease, nowMs)) return [];
    const claims: Claim[] = [];
    const isWanted = (record: JournalRecord | undefined) => kinds.some((kind) => kind === record?.kind);
    const awaited = this.#awaitedBy(consumers).filter((id) => isWanted(this.#records.get(id)));
    const passedOver = new Set(exceptTopics);
    let suspectsLeft = suspects?.limit ?? 0;
    let firstPassedOver = Number.POSITIVE_INFINITY;
    let at = this.#indexOf(Math.min(...kinds.map((kind) => this.#claimableFrom[kind])));
    let from = this.#ids[at] ?? END;
    while (claims.length < limit) {
      at = this.#nextClaimable(at, isWanted);
      from = this.#ids[at] ?? END;
      const id = Math.min(from, awaited[0] ?? END);
      if (id === END) break;
      if (awaited[0] === id) awaited.shift();
      if (from === id) from = this.#ids[++at] ?? END;
      const record = this.#records.get(id)!;
      const isPassedOver =
        passedOver.has(record.topic) ||
        (suspects !== undefined && record.state.deaths >= suspects.from && suspectsLeft-- <= 0);
      if (isPassedOver) {
        firstPassedOver = Math.min(firstPassedOver, id);
        continue;
      }
      this.#take(record, lease);
      claims.push({ row: rowOf(record), lease, attempt: record.state.attempts });
    }
    const next = Math.min(from, firstPassedOver);
    for (const kind of kinds) this.#claimableFrom[kind] = Math.max(next, this.#claimableFrom[kind]);
    return claims;
  }

  /** The index of the first claimable row from an index on; the number of ids if there is none. */
  #nextClaimable(from: number, isWanted: (record: JournalRecord) => boolean): number {
    for (let at = from; at < this.#ids.length; at++) {
      const record = this.#records.get(this.#ids[at]!);
      if (record !== undefined && isClaimable(record.state) && isWanted(record)) return at;
    }
    return this.#ids.length;
  }

  /** A claimed row waits for no consumer. Its next settlement names the consumers again. */
  #take(record: JournalRecord, lease: number): void {
    this.#leave(record);
    dropAwaits(record);
    record.state = claimed(record.state, lease);
    this.#enter(record);
  }

  /** Ids of rows that wait for one of the consumers, sorted. */
  #awaitedBy(consumers: readonly string[]): number[] {
    const ids = new Set(consumers.flatMap((key) => [...(this.#awaited.get(key) ?? [])]));
    return [...ids].sort((a, b) => a - b);
  }

  /** The number of rows that wait for a consumer. */
  waiting(key: string): number {
    return this.#awaited.get(key)?.size ?? 0;
  }

  /** Ends the waiting of up to `limit` rows for a consumer and returns their number. */
  stopWaiting(key: string, limit: number): number {
    const ids = [...(this.#awaited.get(key) ?? [])].slice(0, limit);
    for (const id of ids) {
      const record = this.#records.get(id)!;
      this.#leave(record);
      for (const delivery of record.deliveries.values()) {
        if (delivery.awaits === key) record.deliveries.set(delivery.subscriber, removedOf(delivery));
      }
      record.state = retryReleased(record.state);
      this.#enter(record);
    }
    return ids.length;
  }

  holdsClaim({ id, lease, attempt }: Settlement): boolean {
    const state = this.#records.get(id)?.state;
    return state?.status === "processing" && state.lease === lease && state.attempts === attempt;
  }

  /** False without a change if the claim is no longer held. */
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

  requeue(ids: readonly number[], onlyFor?: RequeueTarget): number[] {
    return ids.filter((id) => {
      const record = this.#records.get(id);
      if (record === undefined || !isRequeueable(record.state, onlyFor && "done")) return false;
      for (const { subscriber, status } of record.deliveries.values()) {
        if (status !== "done" || onlyFor?.subscribers.includes(subscriber)) record.deliveries.delete(subscriber);
      }
      for (const subscriber of onlyFor?.others ?? []) {
        if (!record.deliveries.has(subscriber))
          record.deliveries.set(subscriber, { subscriber, status: "done", attempts: 0 });
      }
      this.#move(record, requeued(record.state));
      return true;
    });
  }

  conclude(ids: readonly number[], conclusion: Conclusion, nowMs: number): number[] {
    return ids.filter((id) => {
      const record = this.#records.get(id);
      if (record?.state.status !== conclusion.from) return false;
      this.#leave(record);
      dropAwaits(record);
      record.state = concluded(record.state, conclusion, nowMs);
      this.#enter(record);
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
      if (state.status !== "done") continue;
      const isOld = settledBeforeMs !== undefined && state.processedAtMs! < settledBeforeMs;
      if (isOld || overCount > 0) {
        this.#remove(record);
        removed++;
      }
      // Counted from the oldest on, so that the newest rows stay, independent of removals by age.
      overCount--;
    }
    return removed;
  }

  records(): Iterable<JournalRecord> {
    return this.#records.values();
  }

  /** The position after all rows, by lane. */
  get lastIds(): ReadonlyMap<number, number> {
    return this.#lastIds;
  }

  /** Rows that a follower has not passed, at most `limit`, with the removed rows between them. */
  follow(passed: ReadonlyMap<number, number>, limit: number, topic?: string): FollowedRows {
    const [rows, gone]: [JournalRow[], GoneRows[]] = [[], []];
    const lanes = new Map(passed);
    const noteGone = (lane: number, through: number) => {
      if (topic === undefined && through > (lanes.get(lane) ?? 0)) gone.push({ before: rows.length, lane, through });
    };
    const first = Math.min(...[...this.#lastIds.keys()].map((lane) => passed.get(lane) ?? 0));
    let at = this.#indexOf(first);
    for (; at < this.#ids.length && rows.length < limit; at++) {
      const record = this.#records.get(this.#ids[at]!);
      if (record === undefined || record.id <= (lanes.get(record.lane) ?? 0)) continue;
      if (topic !== undefined && record.topic !== topic) continue;
      noteGone(record.lane, record.previous);
      lanes.set(record.lane, record.id);
      rows.push(rowOf(record));
    }
    const isFull = rows.length === limit;
    if (!isFull) {
      for (const [lane, last] of this.#lastIds) {
        noteGone(lane, last);
        lanes.set(lane, last);
      }
    }
    return { rows, gone, lanes, isFull };
  }

  get size(): number {
    return this.#records.size;
  }

  /** Inconsistencies, one sentence each. */
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

  /** Every row that can match, in the requested order. */
  *#candidates({ id, messageId, cursor, order }: JournalQuery): Generator<JournalRecord> {
    if (id !== undefined || messageId !== undefined) {
      const record = id === undefined ? this.#byMessageId.get(messageId!) : this.#records.get(id);
      if (record !== undefined) yield record;
      return;
    }
    const isDown = order === "descending";
    let at = isDown ? this.#ids.length - 1 : 0;
    if (cursor !== undefined) at = isDown ? this.#indexOf(cursor) - 1 : this.#indexOf(cursor);
    for (; at >= 0 && at < this.#ids.length; at += isDown ? -1 : 1) {
      const id = this.#ids[at]!;
      const record = id === cursor ? undefined : this.#records.get(id);
      if (record !== undefined) yield record;
    }
  }

  #remove(record: JournalRecord): void {
    this.#leave(record);
    this.#records.delete(record.id);
    this.#byMessageId.delete(record.messageId);
    if (this.#ids.length > 2 * this.#records.size) this.#ids = this.#ids.filter((id) => this.#records.has(id));
  }

  #move(record: JournalRecord, next: JournalState): void {
    this.#leave(record);
    record.state = next;
    this.#enter(record);
  }

  #enter(record: JournalRecord): void {
    const { id, kind, state } = record;
    this.#counts[state.status]++;
    if (state.lease !== undefined) {
      const ids = this.#held.get(state.lease) ?? new Set();
      this.#held.set(state.lease, ids.add(id));
    }
    if (state.nextAttemptAtMs !== undefined && state.nextAttemptAtMs !== PARKED_MS) this.#waiting.add(id);
    if (state.status === "pending") {
      for (const key of awaitedKeys(record)) this.#awaited.set(key, (this.#awaited.get(key) ?? new Set()).add(id));
    }
    if (isClaimable(state) && (kind === "event" || kind === "command")) {
      this.#claimableFrom[kind] = Math.min(this.#claimableFrom[kind], id);
    }
  }

  #leave(record: JournalRecord): void {
    const { id, state } = record;
    this.#counts[state.status]--;
    this.#waiting.delete(id);
    if (state.status === "pending") {
      for (const key of awaitedKeys(record)) this.#awaited.get(key)?.delete(id);
    }
    if (state.lease === undefined) return;
    const ids = this.#held.get(state.lease);
    ids?.delete(id);
    if (ids?.size === 0) this.#held.delete(state.lease);
  }
}

/** Keys of the consumers that a row waits for. */
function awaitedKeys({ deliveries }: JournalRecord): string[] {
  return [...deliveries.values()].flatMap(({ awaits }) => awaits ?? []);
}

/** The delivery of a removed consumer. */
function removedOf({ awaits: _, ...delivery }: Delivery): Delivery {
  return { ...delivery, status: "removing" };
}

/** The content is the message, the topic and, except for commands, the source, without the initial state. */
function sameContent(a: Omit<JournalEntry, "as">, b: JournalEntry): boolean {
  if (a.topic !== b.topic || !sameSource(a, b)) return false;
  const erased = digestIn(a.message.data);
  if (erased === undefined) return sameMessage(a.message, b.message);
  return a.message.kind === b.message.kind && digestIn(tombstone(b.message.data)) === erased;
}

/** The row no longer waits for consumers. */
function dropAwaits({ deliveries }: JournalRecord): void {
  for (const { awaits, ...delivery } of deliveries.values()) {
    if (awaits !== undefined) deliveries.set(delivery.subscriber, delivery);
  }
}
