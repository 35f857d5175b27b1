/**
 * Random histories of repeated requests, sends and events, from two store objects, while receipts are removed, settled
 * rows are deleted, claims are lost and the store is opened again. No message may take effect twice, and every accepted
 * event must take effect once.
 */
import fc from "fast-check";
import { describe, expect, test } from "#test";
import { periodOf, periodText } from "../../../src/message/id-time.ts";
import type { Precondition } from "../../../src/store/commit.ts";
import type { Settlement } from "../../../src/store/journal.ts";
import { madeAt } from "../../../src/store/receipt-name.ts";
import type { Store } from "../../../src/store/store.ts";
import { START_MS } from "../controlled-host.ts";
import { commitBy, committed, entry, ref, set, settlement } from "./requests.ts";
import type { OpenStore, StoreUnderTest } from "./store-under-test.ts";

const HOUR_MS = 3_600_000;
/** Of each kind; one is made each hour. */
const MESSAGES = 6;
/** More than a backend may leave in the feed before it shortens it. */
const FEED_COMMITS = 210;
const DONE = { kind: "done" } as const;

/** As often as it is named. */
const DEEDS = [
  ...["request", "request", "send", "send", "publish", "publish", "publish", "work", "work", "work"],
  ...["forget", "forget", "pass feed", "retain", "requeue", "reopen"],
];
const step = fc.record({
  deed: fc.constantFrom(...DEEDS),
  /** Through which of the two store objects. */
  by: fc.nat(1),
  /** Which message. */
  number: fc.nat(MESSAGES - 1),
  how: fc.constantFrom("done", "fail", "late"),
  hours: fc.nat(MESSAGES),
  limit: fc.nat(5),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

export function receiptHistories(open: OpenStore, runs: number): void {
  describe("histories of receipts", () => {
    test("[S101] [S102] [S103] in random histories with removals no message takes effect twice, and each journaled one does once", async () => {
      const seen = new Map<string, number>();
      const property = fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
        await using at = await open({ changesKept: 5 });
        const history = new History(at, seen);
        await history.begin();
        for (const one of steps) await history.do(one);
        await history.end();
      });
      await fc.assert(property, { numRuns: runs });
      if (runs >= ENOUGH_RUNS) expect([...seen.keys()].sort()).toEqual(SIGHTS);
    });
  });
}

/** Outcomes that must occur in enough histories; otherwise they prove little. */
const ENOUGH_RUNS = 50;
const SIGHTS = [
  "document-exists",
  "found again",
  "lease-lost",
  "old event handled",
  "refused event",
  "removed",
  "too-old",
];

class History {
  readonly #at: StoreUnderTest;
  readonly #seen: Map<string, number>;
  #stores: Store[] = [];
  readonly #effects = new Map<string, number>();
  readonly #takenIn = new Set<string>();
  #commits = 0;
  #horizonMs = 0;

  constructor(at: StoreUnderTest, seen: Map<string, number>) {
    this.#at = at;
    this.#seen = seen;
  }

  async begin(): Promise<void> {
    this.#stores = [this.#at.store, await this.#at.second()];
  }

  async do({ deed, by, number, how, hours, limit }: Step): Promise<void> {
    const store = this.#stores[by]!;
    switch (deed) {
      case "request":
        return this.#handle(store, `receipt/${uuidAt(number)}`);
      case "send":
        return this.#handle(store, `receipt:stream:${sendAt(number)}`);
      case "publish":
        return this.#publish(store, uuidAt(MESSAGES + number));
      case "work":
        return this.#work(store, how);
      case "forget":
        return this.#forget(store, hours, limit);
      case "pass feed":
        return this.#passFeed(store);
      case "retain":
        await store.retain({ keepSettled: 0, limit: 100 });
        return;
      case "requeue":
        await this.#requeue(store);
        return;
      default:
        this.#stores = [await this.#at.reopen(), await this.#at.second()];
    }
  }

  /** Works off all accepted events. */
  async end(): Promise<void> {
    const [store] = this.#stores as [Store];
    await store.recover();
    while ((await store.count()).pending + (await this.#requeue(store)) > 0) await this.#work(store, "done");
    for (const [name, times] of this.#effects) expect([name, times]).toEqual([name, 1]);
    for (const id of this.#takenIn) expect([id, this.#effects.get(eventReceipt(id))]).toEqual([id, 1]);
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
  }

  async #handle(store: Store, name: string, settlements: readonly Settlement[] = []): Promise<void> {
    const preconditions: Precondition[] = [{ kind: "absent", ...ref(name), madeAtMs: madeAt(name) }];
    const parts = { preconditions, settlements, patches: [set(name, [], {}), set("busy", [], this.#commits)] };
    const outcome = await store.commit(commitBy(`session ${++this.#commits}`, 1, parts));
    if (outcome.kind === "rejected") return this.#see(outcome.reason);
    this.#effects.set(name, (this.#effects.get(name) ?? 0) + 1);
    if (settlements.length > 0 && (madeAt(name) as number) < this.#horizonMs) this.#see("old event handled");
  }

  async #publish(store: Store, id: string): Promise<void> {
    const outcome = await store.append([entry({ id })]);
    if (outcome.kind === "appended") this.#takenIn.add(id);
    else this.#see(outcome.reason === "too-old" ? "refused event" : outcome.reason);
  }

  async #work(store: Store, how: string): Promise<void> {
    const { lease } = await store.openLease(1_000);
    const [claim] = await store.claim({ lease, limit: 1, kinds: ["event"] });
    if (claim === undefined) return;
    if (how === "late") {
      // Its lease ends, and its later calls must have no effect.
      this.#at.host.stepClock(2_000);
      await store.recover();
    }
    const name = eventReceipt(claim.row.message!.metadata.id);
    const isOver = this.#effects.get(name);
    await this.#handle(store, name, [settlement(claim, how === "fail" ? { kind: "partial" } : DONE)]);
    if (isOver !== undefined) {
      this.#see("found again");
      await store.settle([settlement(claim, DONE)]);
    }
    if (how === "fail") await store.settle([settlement(claim, { kind: "failed", error: "broke" })]);
  }

  async #forget(store: Store, hours: number, limit: number): Promise<void> {
    const { removed, horizonMs } = await store.forgetReceipts({ madeBeforeMs: START_MS + hours * HOUR_MS, limit });
    expect(horizonMs).toBeGreaterThanOrEqual(this.#horizonMs);
    this.#horizonMs = horizonMs;
    if (removed > 0) this.#see("removed");
  }

  async #requeue(store: Store): Promise<number> {
    const failed = await store.query({ status: "failed", limit: 100 });
    return (await store.requeue(failed.map(({ id }) => id))).length;
  }

  async #passFeed(store: Store): Promise<void> {
    const commits = Array.from({ length: FEED_COMMITS }, () =>
      store.commit(commitBy(`session ${++this.#commits}`, 1, { patches: [set("busy", [], this.#commits)] })),
    );
    for (const outcome of await Promise.all(commits)) committed(outcome);
    const last = [set(`last ${++this.#commits}`, [], 1)];
    committed(await store.commit(commitBy(`session ${this.#commits}`, 1, { patches: last })));
  }

  #see(sight: string): void {
    this.#seen.set(sight, (this.#seen.get(sight) ?? 0) + 1);
  }
}

function uuidAt(number: number): string {
  const time = (START_MS + (number % MESSAGES) * HOUR_MS).toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${String(number).padStart(12, "0")}`;
}

function sendAt(number: number): string {
  return `${periodText(periodOf(START_MS + number * HOUR_MS))}${"c".repeat(24)}.${number}`;
}

function eventReceipt(id: string): string {
  return `receipt:event:${id} worker ${id.length}`;
}
