/** How claims end: outcomes, fencing, deliveries, retries, requeueing. */
import { describe, expect, test } from "#test";
import type { Delivery, JournalRow } from "../../../src/store/journal.ts";
import { START_MS } from "../controlled-host.ts";
import { append, claimedIds, claimUnderNewLease, entries, entry, rowOf, settlement } from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

const EVENTS = ["event"] as const;
const LEASE_MS = 10_000;
const DONE = { kind: "done" } as const;

function bySubscriber({ deliveries }: JournalRow): Delivery[] {
  return [...deliveries].sort((a, b) => (a.subscriber < b.subscriber ? -1 : 1));
}

export function settlingCases(open: OpenStore): void {
  describe("settling", () => {
    test("[J23] a late settlement of a recovered row has no effect, before and after it was claimed again", async () => {
      await using at = await open();
      await append(at.store, ...entries(2));
      const { lease } = await at.store.openLease(LEASE_MS);
      const zombies = await at.store.claim({ lease, limit: 2, kinds: EVENTS });
      at.host.stepClock(LEASE_MS);
      await at.store.recover();
      const late = zombies.map((claim) => ({
        ...settlement(claim, DONE),
        deliveries: [{ subscriber: "s", status: "done", attempts: 1 } as const],
      }));
      expect(await at.store.settle(late)).toEqual(["lease-lost", "lease-lost"]);
      const claims = await claimUnderNewLease(at.store, 1);
      expect(await at.store.settle(late)).toEqual(["lease-lost", "lease-lost"]);
      expect(await at.store.settle([settlement(claims[0]!, DONE)])).toEqual(["settled"]);
      const rows = await at.store.query({ limit: 10 });
      expect(rows.map(({ status, attempts }) => [status, attempts])).toEqual([
        ["done", 2],
        ["pending", 1],
      ]);
      expect(rows.flatMap((row) => row.deliveries)).toEqual([]);
    });

    test("[J23] a claim under an expired lease that was not recovered can still be settled", async () => {
      await using at = await open();
      await append(at.store, entry());
      const { lease } = await at.store.openLease(LEASE_MS);
      const [claim] = await at.store.claim({ lease, limit: 1, kinds: EVENTS });
      at.host.stepClock(LEASE_MS * 2);
      expect(await at.store.settle([settlement(claim!, DONE)])).toEqual(["settled"]);
    });

    test("[J23] a settlement needs the claim's id, lease and attempt; each has its own answer", async () => {
      await using at = await open();
      await append(at.store, ...entries(3));
      const [first, second] = await claimUnderNewLease(at.store, 2);
      const of = settlement(first!, DONE);
      expect(
        await at.store.settle([
          { ...of, id: 3 },
          { ...of, id: 99 },
          { ...of, lease: of.lease + 1 },
          { ...of, attempt: 0 },
          { ...of, attempt: 2 },
          settlement(second!, { kind: "failed", error: "no" }),
          of,
          of,
        ]),
      ).toEqual([
        "lease-lost",
        "lease-lost",
        "lease-lost",
        "lease-lost",
        "lease-lost",
        "settled",
        "settled",
        "lease-lost",
      ]);
      expect(await at.store.count()).toEqual({ pending: 1, processing: 0, done: 1, failed: 1 });
      expect(await at.store.settle([])).toEqual([]);
    });

    test("[J23] [J24] many rows settled at once are answered one by one, and rows between them stay", async () => {
      await using at = await open();
      await append(at.store, ...entries(9));
      const claims = await claimUnderNewLease(at.store, 9);
      const noted = { kind: "done", ending: { outcome: "unheard", reason: "no subscriber" } } as const;
      const odd = claims.filter(({ row }) => row.id % 2 === 1);
      expect(await at.store.settle(odd.map((claim) => settlement(claim, noted)))).toEqual(odd.map(() => "settled"));
      expect(await at.store.count()).toEqual({ pending: 0, processing: 4, done: 5, failed: 0 });
      expect(await rowOf(at.store, 5)).toMatchObject({ outcome: "unheard", reason: "no subscriber" });
      // One of them was lost, and a row between them is ours and not settled: as many are held as are settled.
      await at.store.settle([settlement(claims[3]!, { kind: "release" })]);
      const [two, four, eight] = [claims[1]!, claims[3]!, claims[7]!].map((claim) => settlement(claim, DONE));
      expect(await at.store.settle([two!, four!, eight!])).toEqual(["settled", "lease-lost", "settled"]);
      expect((await rowOf(at.store, 4)).status).toBe("pending");
      expect((await rowOf(at.store, 6)).status).toBe("processing");
    });

    test("[J24] each outcome gives the row its state", async () => {
      await using at = await open();
      await append(at.store, ...entries(5));
      const claims = await claimUnderNewLease(at.store, 5);
      at.host.stepClock(500);
      await at.store.settle([
        settlement(claims[0]!, DONE),
        settlement(claims[1]!, { kind: "done", ending: { outcome: "unheard", reason: "no subscriber" } }),
        settlement(claims[2]!, { kind: "failed", error: "boom" }),
        settlement(claims[3]!, { kind: "retry", atMs: START_MS + 9_000, error: "not yet" }),
        settlement(claims[4]!, { kind: "release" }),
      ]);
      const processedAtMs = START_MS + 500;
      const rows = await (await at.reopen()).query({ limit: 10 });
      const states = rows.map(({ message, topic, source, createdAtMs, deliveries, ...state }) => state);
      expect(states).toEqual([
        { id: 1, status: "done", attempts: 1, processedAtMs },
        { id: 2, status: "done", attempts: 1, processedAtMs, outcome: "unheard", reason: "no subscriber" },
        { id: 3, status: "failed", attempts: 1, processedAtMs, error: "boom" },
        { id: 4, status: "pending", attempts: 1, nextAttemptAtMs: START_MS + 9_000, error: "not yet" },
        { id: 5, status: "pending", attempts: 0 },
      ]);
    });

    test("[J24] a row that is done after a retry has no error", async () => {
      await using at = await open();
      await append(at.store, entry());
      const [first] = await claimUnderNewLease(at.store, 1);
      await at.store.settle([settlement(first!, { kind: "retry", atMs: START_MS, error: "not yet" })]);
      await at.store.releaseRetries(START_MS);
      const [second] = await claimUnderNewLease(at.store, 1);
      await at.store.settle([settlement(second!, DONE)]);
      const row = await rowOf(at.store, 1);
      expect([row.status, row.error, row.nextAttemptAtMs, row.attempts]).toEqual(["done", undefined, undefined, 2]);
    });

    test("[J25] a partial settlement records deliveries and keeps the claim; later ones replace by subscriber", async () => {
      await using at = await open();
      await append(at.store, entry());
      const [claim] = await claimUnderNewLease(at.store, 1);
      const deliver = (outcome: Parameters<typeof settlement>[1], ...deliveries: Delivery[]) =>
        at.store.settle([{ ...settlement(claim!, outcome), deliveries }]);
      const first: Delivery = { subscriber: "a", status: "done", attempts: 1 };
      const retry: Delivery = { subscriber: "b", status: "retry", attempts: 1, error: "later" };
      expect(await deliver({ kind: "partial" }, first)).toEqual(["settled"]);
      expect(await rowOf(at.store, 1)).toMatchObject({ status: "processing", deliveries: [first] });
      expect(await deliver({ kind: "partial" }, retry)).toEqual(["settled"]);
      expect(bySubscriber(await rowOf(at.store, 1))).toEqual([first, retry]);
      const failed: Delivery = { subscriber: "b", status: "failed", attempts: 2, error: "never" };
      expect(await deliver({ kind: "failed", error: "b: never" }, failed)).toEqual(["settled"]);
      const row = await rowOf(await at.reopen(), 1);
      expect(row).toMatchObject({ status: "failed", error: "b: never" });
      expect(bySubscriber(row)).toEqual([first, failed]);
    });

    test("[J25] deliveries recorded before a row goes back come with its next claim", async () => {
      await using at = await open();
      await append(at.store, ...entries(3));
      const { lease } = await at.store.openLease(LEASE_MS);
      const claims = await at.store.claim({ lease, limit: 3, kinds: EVENTS });
      const deliveries: Delivery[] = [{ subscriber: "a", status: "done", attempts: 1 }];
      await at.store.settle([
        { ...settlement(claims[0]!, { kind: "release" }), deliveries },
        { ...settlement(claims[1]!, { kind: "retry", atMs: START_MS, error: "x" }), deliveries },
        { ...settlement(claims[2]!, { kind: "partial" }), deliveries },
      ]);
      await at.store.closeLease(lease);
      await at.store.releaseRetries(START_MS);
      const again = await claimUnderNewLease(at.store, 3);
      expect(again.map(({ row, attempt }) => [attempt, row.deliveries])).toEqual([
        [1, deliveries],
        [2, deliveries],
        [2, deliveries],
      ]);
    });

    test("[J25] a row without recorded deliveries has none", async () => {
      await using at = await open();
      await append(at.store, entry());
      const [claim] = await claimUnderNewLease(at.store, 1);
      await at.store.settle([settlement(claim!, DONE)]);
      expect((await rowOf(at.store, 1)).deliveries).toEqual([]);
    });

    test("[J26] a retry is not claimable before it is released, and is then claimed in its old place", async () => {
      await using at = await open();
      await append(at.store, ...entries(3));
      const { lease } = await at.store.openLease(1_000_000);
      const claims = await at.store.claim({ lease, limit: 2, kinds: EVENTS });
      await at.store.settle([
        settlement(claims[0]!, { kind: "retry", atMs: START_MS + 2_000, error: "x" }),
        settlement(claims[1]!, { kind: "retry", atMs: START_MS + 1_000, error: "x" }),
      ]);
      expect(await at.store.releaseRetries(START_MS + 999)).toEqual({ released: 0, nextAtMs: START_MS + 1_000 });
      expect(claimedIds(await at.store.claim({ lease, limit: 1, kinds: EVENTS }))).toEqual([3]);
      expect(await at.store.releaseRetries(START_MS + 1_000)).toEqual({ released: 1, nextAtMs: START_MS + 2_000 });
      const [again] = await at.store.claim({ lease, limit: 5, kinds: EVENTS });
      expect(again).toMatchObject({ attempt: 2, row: { id: 2, attempts: 2 } });
      expect(again?.row.nextAttemptAtMs).toBeUndefined();
      const store = await at.reopen();
      expect(await store.releaseRetries(START_MS + 9_000)).toEqual({ released: 1, nextAtMs: undefined });
      expect(await store.releaseRetries(START_MS + 9_000)).toEqual({ released: 0, nextAtMs: undefined });
      expect(claimedIds(await store.claim({ lease, limit: 5, kinds: EVENTS }))).toEqual([1]);
    });

    test("[J26] recover and requeue do not make a waiting retry claimable", async () => {
      await using at = await open();
      await append(at.store, entry());
      const [claim] = await claimUnderNewLease(at.store, 1);
      await at.store.settle([settlement(claim!, { kind: "retry", atMs: START_MS + 1_000, error: "x" })]);
      await at.store.recover();
      expect(await at.store.requeue([1])).toEqual([]);
      expect(await claimUnderNewLease(at.store, 1)).toEqual([]);
    });

    test("[J27] requeue puts failed rows back, keeps successful deliveries and removes the others", async () => {
      await using at = await open();
      await append(at.store, entry());
      const [claim] = await claimUnderNewLease(at.store, 1);
      const deliveries: Delivery[] = [
        { subscriber: "a", status: "done", attempts: 1 },
        { subscriber: "b", status: "failed", attempts: 3, error: "no" },
        { subscriber: "c", status: "retry", attempts: 1, error: "later" },
      ];
      await at.store.settle([{ ...settlement(claim!, { kind: "failed", error: "b: no" }), deliveries }]);
      expect(await at.store.requeue([1])).toEqual([1]);
      const row = await rowOf(at.store, 1);
      expect(row).toMatchObject({ status: "pending", attempts: 1, deliveries: [deliveries[0]] });
      expect([row.error, row.processedAtMs, row.lease]).toEqual([undefined, undefined, undefined]);
      const [again] = await claimUnderNewLease(at.store, 1);
      expect(again).toMatchObject({ attempt: 2, row: { deliveries: [deliveries[0]] } });
    });

    test("[J27] requeue changes only failed rows, each once", async () => {
      await using at = await open();
      const { lease } = await at.store.openLease(LEASE_MS);
      const failed = { status: "failed", error: "no" } as const;
      await append(
        at.store,
        entry(),
        entry({}, { status: "claimed", lease }),
        entry({}, { status: "done" }),
        entry({}, failed),
        entry({ kind: "command" }, failed),
        entry({}, failed),
      );
      expect(await at.store.requeue([1, 2, 3, 4, 5, 4, 99])).toEqual([4, 5]);
      expect(await at.store.requeue([4, 5])).toEqual([]);
      expect(await at.store.requeue([])).toEqual([]);
      expect(await at.store.count()).toEqual({ pending: 3, processing: 1, done: 1, failed: 1 });
    });
  });
}
