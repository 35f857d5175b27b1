/**
 * The workload of the crashed programs: rounds of all operations of the store, chosen by a seed, on a real file. Each
 * operation is reported when it begins and when its promise has resolved; the listener is a log or a pipe.
 */
import { DatabaseSync } from "node:sqlite";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import type { Claim } from "../../src/store/journal.ts";
import { type Lease, type Store, StoreError } from "../../src/store/store.ts";
import {
  Author,
  entryOf,
  firingOf,
  handlingOf,
  LANES,
  ledgerOf,
  type Published,
  publishedIn,
  SPACE,
  TIMER,
} from "./handling.ts";
import type { Answer, Deed, HistoryMark } from "./history.ts";
import { laterHost, openStore, type StoreSetting } from "./store-setting.ts";

export interface WorkloadPlan extends StoreSetting {
  /** Makes ids and sessions unique where several programs follow each other on one file. */
  readonly name: string;
  readonly seed: number;
  readonly rounds: number;
  /** Deeds are numbered on from here; later programs on the same file have greater numbers. */
  readonly deedsBefore: number;
  /** A program that follows a killed one lives when that one's lease has expired. */
  readonly clockAheadMs: number;
  /** Whether another connection copies the log into the database now and then. */
  readonly foreignCheckpoints: boolean;
}

/** Points inside an operation at which a test may end the process. */
export type Probe = "after-claim" | "mid-handler" | "before-commit" | "after-receipt" | "before-recover";

export interface Listener {
  told(mark: HistoryMark): void;
  reached(probe: Probe): void;
  /** The store refused or failed: the operation is not acknowledged. */
  refused(deed: Deed, reason: string): void;
}

const LEDGER_KEYS = 12;
const LEASE_MS = 3_600_000;
const DUE_ROWS_MAX = 1_000;

export class Workload {
  readonly #plan: WorkloadPlan;
  readonly #listener: Listener;
  readonly #random: SeededRandom;
  /** Handled and not yet fired. */
  #waiting: string[] = [];
  #published = 0;
  #deeds: number;

  constructor(plan: WorkloadPlan, listener: Listener) {
    this.#plan = plan;
    this.#listener = listener;
    this.#random = new SeededRandom(plan.seed);
    this.#deeds = plan.deedsBefore;
  }

  async run(): Promise<void> {
    for (let round = 0, lives = 0; round < this.#plan.rounds; ) {
      const life = await this.#begin(`${this.#plan.name}-${++lives}`);
      do await this.round(life);
      while (++round < this.#plan.rounds && this.#random.below(8) !== 0);
      await this.#end(life);
    }
  }

  async #begin(name: string): Promise<Life> {
    const store = await openStore(this.#plan, laterHost(this.#plan.clockAheadMs));
    return this.begin(store, name);
  }

  /** The first steps on a store that was just opened. */
  async begin(store: Store, name: string): Promise<Life> {
    this.#listener.reached("before-recover");
    await store.recover();
    const life = new Life(store, await store.openLease(LEASE_MS), name);
    const due = await store.dueRows(Number.MAX_SAFE_INTEGER, DUE_ROWS_MAX);
    this.#waiting = due.filter((row) => row.kind === TIMER).map((row) => row.key);
    return life;
  }

  async round(life: Life): Promise<void> {
    const work: Promise<void>[] = [];
    const canWrite = await life.makeLedgers();
    for (let i = this.#random.below(3); i >= 0; i--) work.push(this.#publish(life));
    for (let i = this.#random.below(3); i > 0 && canWrite; i--) work.push(this.#write(life));
    for (const event of this.#waiting.splice(0, this.#random.below(3))) work.push(this.#fire(life, event));
    work.push(this.#dispatch(life));
    await Promise.all(work);
    if (this.#random.below(4) === 0) await this.#retain(life);
    if (this.#plan.foreignCheckpoints && this.#random.below(6) === 0)
      this.#checkpoint(this.#random.below(2) === 0 ? "TRUNCATE" : "PASSIVE");
  }

  async #publish(life: Life): Promise<void> {
    const events = Array.from({ length: 1 + this.#random.below(3) }, () => this.#newEvent());
    await this.#does({ kind: "publish", events }, async () => {
      const outcome = await life.store.append(events.map(entryOf));
      return outcome.kind === "appended" ? { ids: outcome.ids } : outcome.reason;
    });
  }

  #newEvent(): Published {
    const id = `${this.#plan.name}-event-${++this.#published}`;
    // Some payloads are longer than a page, so that overflow pages take part.
    const length = this.#random.below(12) === 0 ? 5_000 : 20 + this.#random.below(300);
    return {
      id,
      topic: this.#random.below(4) === 0 ? "plain" : "work",
      text: `payload-of-${id}:`.padEnd(length, "abcdefghijklmnopqrstuvwxyz"),
    };
  }

  async #write(life: Life): Promise<void> {
    const key = `key-${this.#random.below(LEDGER_KEYS)}`;
    const n = this.#deeds + 1;
    const text = `ledger-text-${n}:`.padEnd(20 + this.#random.below(200), "zyxwvutsrqponmlkjihgfedcba");
    await this.#does({ kind: "write", key, text }, async () => {
      const operations = [{ op: "set", path: [key], value: { n, text } }] as const;
      const patches = (["a", "b"] as const).map((half) => ({ ...ledgerOf(half), operations }));
      const outcome = await life.store.commit(life.ledger.request({ patches }));
      return outcome.kind === "committed" ? {} : outcome.reason;
    });
  }

  async #fire(life: Life, event: string): Promise<void> {
    const text = `fired-text-of-${event}`;
    await this.#does({ kind: "fire", event }, async () => {
      const outcome = await life.store.commit(firingOf(life.timers, event, text));
      return outcome.kind === "committed" ? {} : outcome.reason;
    });
  }

  async #dispatch(life: Life): Promise<void> {
    let claims: readonly Claim[] = [];
    const limit = 1 + this.#random.below(6);
    await this.#does({ kind: "claim" }, async () => {
      claims = await life.store.claim({ lease: life.lease.lease, limit, kinds: ["event"] });
      return { claims: claims.map(({ row, attempt }) => ({ id: row.id, attempt })) };
    });
    this.#listener.reached("after-claim");
    // Claims that are not settled are the case for recovery.
    const held = claims.filter(() => this.#random.below(10) !== 0);
    const lanes = Array.from({ length: LANES }, (_, lane) =>
      this.#lane(
        life,
        lane,
        held.filter(({ row }) => row.topic === "work" && row.id % LANES === lane),
      ),
    );
    const plain = held.filter(({ row }) => row.topic === "plain").map((claim) => this.#settle(life, claim));
    await Promise.all([...lanes, ...plain]);
  }

  /** One after the other: they all count on the same counter. */
  async #lane(life: Life, lane: number, claims: readonly Claim[]): Promise<void> {
    for (const claim of claims) {
      const event = publishedIn(claim.row);
      await this.#does({ kind: "handle", event: event.id, lane }, async () => {
        const request = await handlingOf(life.store, life.lane(lane), claim, event, lane);
        this.#listener.reached("mid-handler");
        const answer = life.store.commit(request);
        this.#listener.reached("before-commit");
        const outcome = await answer;
        if (outcome.kind !== "committed") return outcome.reason;
        this.#listener.reached("after-receipt");
        this.#waiting.push(event.id);
        return {};
      });
    }
  }

  async #settle(life: Life, claim: Claim): Promise<void> {
    const { id: event } = publishedIn(claim.row);
    const target = { id: claim.row.id, lease: claim.lease, attempt: claim.attempt };
    const error = `failure-of-${event}`;
    const fails = this.#random.below(4) === 0;
    await this.#does(fails ? { kind: "fail", event, error } : { kind: "settle", event }, async () => {
      const outcome = fails ? ({ kind: "failed", error } as const) : ({ kind: "done" } as const);
      const [result] = await life.store.settle([{ ...target, outcome }]);
      return result === "settled" ? {} : "lease-lost";
    });
  }

  async #retain(life: Life): Promise<void> {
    await this.#does({ kind: "retain" }, async () => {
      await life.store.retain({ keepSettled: 8, limit: 1 + this.#random.below(10) });
      return {};
    });
  }

  #checkpoint(mode: "PASSIVE" | "TRUNCATE"): void {
    const connection = new DatabaseSync(this.#plan.path);
    connection.exec(`PRAGMA wal_checkpoint(${mode})`);
    connection.close();
  }

  async #end(life: Life): Promise<void> {
    if (this.#random.below(2) === 0) await life.store.closeLease(life.lease.lease);
    await life.store.close();
  }

  /** A text in the place of an answer is the reason for which the store said no. */
  async #does(deed: Deed, run: () => Promise<Answer | string>): Promise<void> {
    const n = ++this.#deeds;
    this.#listener.told({ begin: n, deed });
    let answer: Answer | string;
    try {
      answer = await run();
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      this.#listener.refused(deed, error.code);
      return;
    }
    if (typeof answer === "string") this.#listener.refused(deed, answer);
    else this.#listener.told({ ack: n, answer });
  }
}

/** One opening of the store, with the sessions and the lease that belong to it. */
export class Life {
  readonly store: Store;
  readonly lease: Lease;
  readonly ledger: Author;
  readonly timers: Author;
  readonly #lanes: readonly Author[];
  #hasLedgers = false;

  constructor(store: Store, lease: Lease, name: string) {
    this.store = store;
    this.lease = lease;
    this.ledger = new Author(`ledger-${name}`);
    this.timers = new Author(`timers-${name}`);
    this.#lanes = Array.from({ length: LANES }, (_, lane) => new Author(`lane-${lane}-${name}`));
  }

  /** Both at once, if they are not there yet. False when the store could not. */
  async makeLedgers(): Promise<boolean> {
    if (this.#hasLedgers) return true;
    const ledgers = (["a", "b"] as const).map(ledgerOf);
    const loaded = await this.store.load(SPACE, ledgers);
    this.#hasLedgers = loaded.documents.every((ledger) => ledger.value !== undefined);
    if (this.#hasLedgers) return true;
    // Without a precondition: a document with `absent` is a receipt for tests that plant bugs in receipts.
    const operations = [{ op: "set", path: [], value: {} }] as const;
    const patches = ledgers.map((ledger) => ({ ...ledger, operations }));
    const outcome = await this.store.commit(this.ledger.request({ patches }));
    this.#hasLedgers = outcome.kind === "committed";
    return this.#hasLedgers;
  }

  lane(lane: number): Author {
    const author = this.#lanes[lane];
    if (!author) throw new Error(`there is no lane ${lane}`);
    return author;
  }
}
