/**
 * The journal's rows: append, claim, settle, recover. SPEC: J10-J27. `journal-query.ts` reads, `journal-retention.ts`
 * removes.
 *
 *              claim                     settle done
 *   pending ──────────> processing ───────────────────> done
 *     ^  ^                 │  │          settle failed
 *     │  └──settle retry───┘  └────────────────────────> failed
 *     ├────────────── recover / requeue ───────────────────┤
 *     └──conclude (cancelled)──> done <──conclude (discarded)┘
 *
 * Every method runs inside the writer's transaction. Ids and hashes are counted in memory, and the head is written once
 * per batch. An append is one statement per row; consecutive rows are claimed and settled by one statement.
 */
import type { Claim, ClaimRequest, Conclusion, Delivery, Settlement } from "../journal.ts";
import { type Rejection, rejected } from "../rejection.ts";
import type { RequeueTarget } from "../store.ts";
import type { Row, SqliteConnection } from "./connection.ts";
import { deliveriesOf } from "./delivery-rows.ts";
import { type DoneRows, HeldClaims } from "./held-claims.ts";
import { endingOf, equallyDoneFrom, isDone, rangesOf } from "./id-ranges.ts";
import { type EncodedEntry, holdsSameContent, journalRow, PARKED_S } from "./journal-entry.ts";
import { RowHasher } from "./journal-hash.ts";
import { journalStatements } from "./journal-statements.ts";
import type { TableCache } from "./table-cache.ts";

export type Appended = { readonly kind: "appended"; readonly ids: number[]; readonly repeated?: true } | Rejection;

interface Head {
  /** The greatest id ever in the journal. */
  lastId: number;
  /** Hash of the last signed row. */
  hash: string;
  state: "written" | "moved";
}

export class JournalTable implements TableCache {
  readonly #connection: SqliteConnection;
  readonly #held = new HeldClaims();
  readonly #hasher = new RowHasher();
  #head: Head | undefined;
  /** A skipped duplicate advances the engine's id counter; unused ids must not be skipped. */
  #counterAhead = false;
  /** Consumers that rows may wait for; undefined if they must be read. */
  #awaitedKeys: Set<string> | undefined;
  readonly #sql;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.#sql = journalStatements(connection);
  }

  append(entries: readonly EncodedEntry[]): Appended {
    const { lastId, hash, state } = this.#readHead();
    const outcome = this.#appendAll(entries);
    if (outcome.kind === "rejected") this.#takeBack({ lastId, hash, state });
    return outcome;
  }

  claim({ lease, limit, kinds, suspects, consumers = [], exceptTopics = [] }: ClaimRequest): Claim[] {
    const except = JSON.stringify(exceptTopics);
    const offered = [...new Set(kinds)];
    const from = suspects?.from ?? Number.MAX_SAFE_INTEGER;
    const awaited = this.#awaitedAmong(consumers);
    const rows = firstById(
      offered.flatMap((kind) => [
        this.#sql.claimable.all(kind, from, except, limit),
        ...awaited.map((key) => this.#sql.awaited.all(key, kind, 0, from, except, limit)),
      ]),
      limit,
    );
    const most = suspects?.limit ?? 0;
    const doubtful =
      most === 0
        ? []
        : offered.flatMap((kind) => [
            this.#sql.suspects.all(kind, from, except, most),
            ...awaited.map((key) => this.#sql.awaited.all(key, kind, from, Number.MAX_SAFE_INTEGER, except, most)),
          ]);
    const claimed = firstById([rows, firstById(doubtful, most)], limit);
    const deliveries = this.#withoutAwaits(deliveriesOf(this.#connection, claimed));
    const ids = claimed.map(({ id }) => Number(id));
    for (const { first, last } of rangesOf(ids)) this.#sql.claim.run(lease, first, last);
    const claims = claimed.map((row) => claimOf(row, lease, deliveries));
    for (const { row, attempt } of claims) this.#held.hold(row.id, lease, attempt);
    return claims;
  }

  /** The given consumers that rows wait for. */
  #awaitedAmong(consumers: readonly string[]): readonly string[] {
    if (consumers.length === 0) return consumers;
    this.#awaitedKeys ??= new Set(this.#sql.awaitedKeys.all().map(({ awaits }) => String(awaits)));
    const { size } = this.#awaitedKeys;
    return size === 0 ? [] : consumers.filter((key) => this.#awaitedKeys?.has(key));
  }

  /** A claimed row waits for no consumer. Its next settlement names the consumers again. */
  #withoutAwaits(deliveries: ReadonlyMap<number, readonly Delivery[]>): ReadonlyMap<number, readonly Delivery[]> {
    const claimed = new Map<number, readonly Delivery[]>();
    for (const [id, list] of deliveries) {
      const isAwaited = list.some(({ awaits }) => awaits !== undefined);
      if (isAwaited) this.#sql.forgetAwaits.run(id);
      claimed.set(id, isAwaited ? list.map(({ awaits: _, ...delivery }) => delivery) : list);
    }
    return claimed;
  }

  /** Ends the waiting of up to `limit` rows for a consumer and returns their number. */
  stopWaiting(key: string, limit: number): number {
    this.#writeDone();
    const ids = this.#sql.eventsAwaiting.all(key, limit).map(({ event }) => Number(event));
    const list = JSON.stringify(ids);
    this.#sql.removeAwaited.run(key, list);
    this.#sql.unpark.run(list);
    return ids.length;
  }

  holdsClaim(settlement: Settlement): boolean {
    if (this.#held.isHeld(settlement)) return true;
    this.#writeDone();
    const { id, lease, attempt } = settlement;
    return this.#sql.held.get(id, lease, attempt) !== undefined;
  }

  /** False without a change if the claim is no longer held. */
  settle(settlement: Settlement, nowMs: number): boolean {
    if (isDone(settlement) && this.#held.isHeld(settlement)) {
      this.#held.done(settlement.id, endingOf(settlement), nowMs);
      return true;
    }
    this.#writeDone();
    this.#held.release(settlement.id);
    if (!this.#settleRow(settlement, nowMs)) return false;
    for (const delivery of settlement.deliveries ?? []) this.#putDelivery(settlement.id, delivery);
    return true;
  }

  /** Settles many claims in order; returns for each whether its claim was still held. */
  settleAll(settlements: readonly Settlement[], nowMs: number): boolean[] {
    if (settlements.every((one) => isDone(one) && this.#held.isHeld(one))) {
      return settlements.map((one) => this.settle(one, nowMs));
    }
    this.#writeDone();
    for (const { id } of settlements) this.#held.release(id);
    const held: boolean[] = [];
    while (held.length < settlements.length) {
      const start = held.length;
      const count = equallyDoneFrom(settlements, start);
      if (count > 1 && this.#settleTogether(settlements.slice(start, start + count), nowMs)) {
        for (let i = 0; i < count; i++) held.push(true);
      } else {
        // One by one within this range: at least one of its claims was lost.
        const end = start + Math.max(count, 1);
        for (const one of settlements.slice(start, end)) held.push(this.settle(one, nowMs));
      }
    }
    return held;
  }

  /** Sends the rows of one lease back to pending. */
  abandonHeldBy(lease: number): number {
    this.#writeDone();
    this.#held.forget();
    return this.#sql.abandon.run(lease);
  }

  /** Sends rows back to pending whose lease is not in the lease table. */
  abandonUnheld(): number {
    this.#writeDone();
    this.#held.forget();
    return this.#sql.abandonUnheld.run();
  }

  requeue(ids: readonly number[], onlyFor?: RequeueTarget): number[] {
    this.#writeDone();
    return ids.filter((id) => {
      if (this.#sql.requeue.run(id, onlyFor === undefined ? 0 : 1) === 0) return false;
      this.#sql.forgetFailures.run(id);
      for (const subscriber of onlyFor?.subscribers ?? []) this.#sql.forgetDelivery.run(id, subscriber);
      for (const subscriber of onlyFor?.others ?? []) this.#sql.countAsDone.run(id, subscriber);
      return true;
    });
  }

  /** Closes rows that have the status `from`; returns their ids. */
  conclude(ids: readonly number[], { from, ending }: Conclusion, nowMs: number): number[] {
    this.#writeDone();
    return ids.filter((id) => {
      if (this.#sql.conclude.run(nowMs / 1_000, ending.outcome, ending.reason, id, from) === 0) return false;
      if (from === "pending") this.#sql.forgetAwaits.run(id);
      return true;
    });
  }

  releaseRetries(nowMs: number): { released: number; nextAtMs: number | undefined } {
    const released = this.#sql.releaseRetries.run(nowMs / 1_000);
    const next = this.#sql.nextRetry.get()?.["next"];
    const isTime = typeof next === "number" && next !== PARKED_S;
    return { released, nextAtMs: isTime ? Math.round(next * 1_000) : undefined };
  }

  flush(): void {
    this.#writeDone();
    const head = this.#head;
    if (head?.state === "moved") {
      this.#sql.writeHead.run(head.lastId, head.hash);
      head.state = "written";
    }
    if (this.#counterAhead) {
      this.#sql.resetCounter.run(this.#readHead().lastId);
      this.#counterAhead = false;
    }
  }

  forget(): void {
    this.#held.forget();
    this.#awaitedKeys = undefined;
    this.#head = undefined;
    this.#counterAhead = false;
  }

  #appendAll(entries: readonly EncodedEntry[]): Appended {
    const ids: number[] = [];
    const repeated: { readonly id: number; readonly entry: EncodedEntry }[] = [];
    for (const entry of entries) {
      let id = this.#appendOne(entry);
      if (id === undefined) {
        id = this.#idOfSame(entry);
        if (id !== undefined) repeated.push({ id, entry });
      }
      if (id === undefined) {
        const message = `message ${entry.messageId} is in the journal with other content`;
        return rejected("permanent", "message-exists", message);
      }
      ids.push(id);
    }
    if (repeated.length === 0) return { kind: "appended", ids };
    // Only when all entries are accepted: a refused append changes no row.
    for (const { id, entry } of repeated) this.#repeat(id, entry);
    return { kind: "appended", ids, repeated: true };
  }

  /** A success replaces a failure or refusal; a refusal or failure replaces a refusal. Other rows are unchanged. */
  #repeat(id: number, { as, createdAt }: EncodedEntry): void {
    const ending = as.status === "done" ? as.ending : undefined;
    if (ending !== undefined) this.#sql.replaceRefusal.run("done", createdAt, null, ending.outcome, ending.reason, id);
    else if (as.status === "done") this.#sql.succeedAfterAll.run(createdAt, id);
    else if (as.status === "failed") this.#sql.replaceRefusal.run("failed", createdAt, as.error, null, null, id);
  }

  /**
   * A later entry was refused, so the earlier ones are removed by id: a savepoint for every call would cost as much as
   * a row.
   */
  #takeBack(before: Head): void {
    for (let id = before.lastId + 1; id <= this.#readHead().lastId; id++) this.#held.release(id);
    this.#sql.removeAfter.run(before.lastId);
    this.#head = before;
    this.#counterAhead = true;
  }

  /** The new row's id, or undefined if the message id exists already. */
  #appendOne(entry: EncodedEntry): number | undefined {
    const head = this.#readHead();
    const id = head.lastId + 1;
    const hash = this.#hasher.hash(head.hash, id, entry);
    const { as, createdAt } = entry;
    const settled = as.status === "done" || as.status === "failed";
    const inserted = this.#sql.insert.run(
      id,
      entry.correlation,
      entry.topic,
      entry.source,
      entry.payload,
      as.status === "claimed" ? "processing" : as.status,
      createdAt,
      settled ? createdAt : null,
      as.status === "failed" ? as.error : null,
      as.status === "done" ? (as.ending?.outcome ?? null) : null,
      as.status === "done" ? (as.ending?.reason ?? null) : null,
      entry.messageId,
      entry.kind,
      entry.type,
      entry.causation,
      entry.timestamp,
      entry.metadata,
      as.status === "claimed" ? 1 : 0,
      as.status === "claimed" ? as.lease : null,
      hash,
    );
    if (inserted === 0) {
      this.#counterAhead = true;
      return undefined;
    }
    head.lastId = id;
    head.hash = hash;
    head.state = "moved";
    if (as.status === "claimed") this.#held.hold(id, as.lease, 1);
    this.#connection.work.bytesWritten += entry.bytes;
    return id;
  }

  /** The id of the row with the same message, topic and source; undefined if the content differs. */
  #idOfSame(entry: EncodedEntry): number | undefined {
    const row = this.#sql.byMessageId.get(entry.messageId);
    return row !== undefined && holdsSameContent(row, entry) ? Number(row["id"]) : undefined;
  }

  #settleRow({ id, lease, attempt, outcome }: Settlement, nowMs: number): boolean {
    const now = nowMs / 1_000;
    switch (outcome.kind) {
      case "partial":
        return this.#sql.held.get(id, lease, attempt) !== undefined;
      case "begun":
        return this.#sql.begin.run(id, lease, attempt) > 0;
      case "left":
        return this.#sql.leave.run(id, lease, attempt) > 0;
      case "done":
        return (
          this.#sql.settleDone.run(
            ...[now, outcome.ending?.outcome ?? null, outcome.ending?.reason ?? null],
            ...[id, lease, attempt],
          ) > 0
        );
      case "failed":
        return this.#sql.settle.run("failed", now, outcome.error, null, id, lease, attempt) > 0;
      case "retry":
        return this.#sql.settle.run("pending", null, outcome.error, outcome.atMs / 1_000, id, lease, attempt) > 0;
      case "waits": {
        const at = outcome.atMs === undefined ? PARKED_S : outcome.atMs / 1_000;
        return this.#sql.wait.run(outcome.error, at, id, lease, attempt) > 0;
      }
      case "release":
        return this.#sql.giveBack.run(id, lease, attempt) > 0;
    }
  }

  /** Settles rows of one lease with ascending ids if all claims are held; otherwise changes no row. */
  #settleTogether(settlements: readonly Settlement[], nowMs: number): boolean {
    const first = settlements[0]!;
    const ids = settlements.map(({ id }) => id);
    const found = this.#sql.heldAmong.get(JSON.stringify(ids), first.lease, first.attempt);
    if (found?.["held"] !== ids.length) return false;
    this.#settleRows({ ids, ending: endingOf(first), atMs: nowMs });
    return true;
  }

  /** Writes the settlements known to be valid. Called before claims are looked up in the table. */
  #writeDone(): void {
    for (const rows of this.#held.takeDone()) this.#settleRows(rows);
  }

  #settleRows({ ids, ending, atMs }: DoneRows): void {
    const [at, outcome, reason] = [atMs / 1_000, ending?.outcome ?? null, ending?.reason ?? null];
    const first = ids[0]!;
    const areNeighbours = ids.every((id, index) => id === first + index);
    if (areNeighbours) this.#sql.settleRange.run(at, outcome, reason, first, first + ids.length - 1);
    // Other rows lie in between, for example the commands that emitted the events.
    else this.#sql.settleAmong.run(at, outcome, reason, JSON.stringify(ids));
  }

  #putDelivery(event: number, delivery: Delivery): void {
    const { subscriber, status, attempts, error = null, nextAttemptAtMs, awaits = null } = delivery;
    const at = nextAttemptAtMs === undefined ? null : nextAttemptAtMs / 1_000;
    this.#sql.putDelivery.run(event, subscriber, status, attempts, error, at, awaits);
    if (awaits !== null) this.#awaitedKeys?.add(awaits);
  }

  #readHead(): Head {
    if (this.#head) return this.#head;
    const { last_id, hash, max_id, counter } = this.#sql.readHead.get() ?? this.#foundHead();
    const lastId = Math.max(Number(last_id), Number(max_id ?? 0), Number(counter ?? 0));
    this.#head = { lastId, hash: String(hash), state: "written" };
    return this.#head;
  }

  /** The engine's table of counters was emptied by hand (to restart ids at 1): the head is rebuilt from the rows. */
  #foundHead(): Row {
    this.#sql.findHead.run();
    return this.#sql.readHead.get()!;
  }
}

/** The first rows of several ordered lists. A row may wait for several consumers, and counts once. */
function firstById(lists: readonly Row[][], limit: number): Row[] {
  const given = lists.filter((rows) => rows.length > 0);
  if (given.length < 2) return given[0]?.slice(0, limit) ?? [];
  const byId = new Map(given.flat().map((row) => [Number(row["id"]), row]));
  return [...byId.values()].sort((a, b) => Number(a["id"]) - Number(b["id"])).slice(0, limit);
}

/** The row after its claim, changed in place: a copy costs more than the read did. */
function claimOf(row: Row, lease: number, deliveries: ReadonlyMap<number, readonly Delivery[]>): Claim {
  const attempt = Number(row["attempts"]) + 1;
  row["status"] = "processing";
  row["attempts"] = attempt;
  row["lease"] = lease;
  row["next_attempt_at"] = null;
  return { row: journalRow(row, deliveries.get(Number(row["id"])) ?? []), lease, attempt };
}
