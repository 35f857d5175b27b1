/** The journal as a queue: claims and the leases they are held under. */
import { describe, expect, test } from "#test";
import { EVENT_SUSPECT_DEATHS } from "../../../src/limits.ts";
import { START_MS } from "../controlled-host.ts";
import { append, claimedIds, entries, entry, rowOf, settlement } from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

const EVENTS = ["event"] as const;
const LEASE_MS = 10_000;

export function leaseCases(open: OpenStore): void {
  describe("leases", () => {
    test("[J15] claims follow ids, even if the clock jumps while appending", async () => {
      await using at = await open();
      for (const step of [0, -50_000, 90_000, -1_000_000, 3]) {
        at.host.stepClock(step);
        await append(at.store, entry());
      }
      const { lease } = await at.store.openLease(LEASE_MS);
      const first = await at.store.claim({ lease, limit: 3, kinds: EVENTS });
      const second = await at.store.claim({ lease, limit: 3, kinds: EVENTS });
      expect([...claimedIds(first), ...claimedIds(second)]).toEqual([1, 2, 3, 4, 5]);
    });

    test("[J15] a row that returns to pending is claimed before later ones", async () => {
      await using at = await open();
      await append(at.store, ...entries(4));
      const { lease } = await at.store.openLease(LEASE_MS);
      const claims = await at.store.claim({ lease, limit: 3, kinds: EVENTS });
      await at.store.settle([settlement(claims[1]!, { kind: "release" })]);
      expect(claimedIds(await at.store.claim({ lease, limit: 2, kinds: EVENTS }))).toEqual([2, 4]);
    });

    test("[J16] two claimers at once never get the same row, in one store object and in two", async () => {
      await using at = await open();
      const other = await at.second();
      await append(at.store, ...entries(40));
      const leases = await Promise.all([at.store.openLease(LEASE_MS), other.openLease(LEASE_MS)]);
      const claims = await Promise.all(
        Array.from({ length: 20 }, (_, n) => {
          const store = n % 2 ? at.store : other;
          return store.claim({ lease: leases[n % 2]!.lease, limit: 3, kinds: EVENTS });
        }),
      );
      const ids = claims.flatMap(claimedIds);
      expect(ids.length).toBe(40);
      expect(new Set(ids).size).toBe(40);
    });

    test("[J16] a row appended as claimed is not handed out", async () => {
      await using at = await open();
      const { lease } = await at.store.openLease(LEASE_MS);
      await append(at.store, entry({}, { status: "claimed", lease }), entry());
      expect(claimedIds(await at.store.claim({ lease, limit: 10, kinds: EVENTS }))).toEqual([2]);
    });

    test("[J17] a claim takes the requested kinds, up to its limit, and counts an attempt", async () => {
      await using at = await open();
      await append(
        at.store,
        ...(["command", "event", "query", "event", "command"] as const).map((kind) => entry({ kind })),
      );
      const { lease } = await at.store.openLease(LEASE_MS);
      expect(await at.store.claim({ lease, limit: 0, kinds: EVENTS })).toEqual([]);
      const [claim] = await at.store.claim({ lease, limit: 1, kinds: EVENTS });
      expect(claim).toEqual({ lease, attempt: 1, row: await rowOf(at.store, 2) });
      expect(claim?.row).toMatchObject({ status: "processing", lease, attempts: 1 });
      expect(claimedIds(await at.store.claim({ lease, limit: 10, kinds: ["command"] }))).toEqual([1, 5]);
      expect(claimedIds(await at.store.claim({ lease, limit: 10, kinds: ["event", "command"] }))).toEqual([4]);
      expect(await at.store.claim({ lease, limit: 10, kinds: ["event", "command"] })).toEqual([]);
    });

    test("[J132] a claim skips the topics in exceptTopics, suspects included, and a later claim takes their rows", async () => {
      await using at = await open();
      const of = (topic: string) => ({ ...entry(), topic });
      await append(at.store, of("slow"), of("quick"), of("slow"), of("quick"));
      const { lease: died } = await at.store.openLease(LEASE_MS);
      await at.store.claim({ lease: died, limit: 1, kinds: EVENTS });
      at.host.stepClock(LEASE_MS);
      await at.store.recover();
      const { lease } = await at.store.openLease(LEASE_MS);
      const claimed = async (exceptTopics: readonly string[], limit = 10) =>
        claimedIds(
          await at.store.claim({ lease, limit, kinds: EVENTS, exceptTopics, suspects: { from: 1, limit: 1 } }),
        );
      expect(await claimed(["slow"], 1)).toEqual([2]);
      expect(await claimed(["slow", "other"])).toEqual([4]);
      expect(await claimed(["slow"])).toEqual([]);
      expect(await claimed([])).toEqual([1, 3]);
    });

    test("[J87] leases that end while they hold a row are counted, and settling or requeueing resets the count", async () => {
      await using at = await open();
      await append(at.store, ...entries(2));
      const lose = async (how: "expired" | "closed") => {
        const { lease } = await at.store.openLease(LEASE_MS);
        const claims = await at.store.claim({ lease, limit: 2, kinds: EVENTS });
        if (how === "closed") await at.store.closeLease(lease);
        else at.host.stepClock(LEASE_MS);
        await at.store.recover();
        return claims;
      };
      const deaths = async () => [(await rowOf(at.store, 1)).deaths, (await rowOf(at.store, 2)).deaths];
      await lose("closed");
      expect(await deaths()).toEqual([undefined, undefined]);
      await lose("expired");
      await lose("expired");
      expect(await deaths()).toEqual([2, 2]);
      const { lease } = await at.store.openLease(LEASE_MS);
      const [first, second] = await at.store.claim({ lease, limit: 2, kinds: EVENTS });
      expect(first?.row.deaths).toBe(2);
      await at.store.settle([
        settlement(first!, { kind: "failed", error: "no" }),
        settlement(second!, { kind: "release" }),
      ]);
      expect(await deaths()).toEqual([undefined, 2]);
      await at.store.requeue([1]);
      expect(await deaths()).toEqual([undefined, 2]);
    });

    test("[J87] the deaths of a suspect count only after its handling has begun", async () => {
      await using at = await open();
      await append(at.store, ...entries(2));
      /** Claims both, begins the first if asked for, and dies or goes. */
      const lose = async (begin: boolean, how: "expired" | "closed" = "expired") => {
        const { lease } = await at.store.openLease(LEASE_MS);
        const [first] = await at.store.claim({ lease, limit: 2, kinds: EVENTS });
        if (begin) expect(await at.store.settle([settlement(first!, { kind: "begun" })])).toEqual(["settled"]);
        if (how === "closed") await at.store.closeLease(lease);
        else at.host.stepClock(LEASE_MS);
        await at.store.recover();
      };
      const deaths = async () => [(await rowOf(at.store, 1)).deaths, (await rowOf(at.store, 2)).deaths];
      await lose(false);
      await lose(false);
      await lose(false);
      expect(await deaths()).toEqual([EVENT_SUSPECT_DEATHS, EVENT_SUSPECT_DEATHS]);
      await lose(true);
      expect(await deaths()).toEqual([EVENT_SUSPECT_DEATHS + 1, EVENT_SUSPECT_DEATHS]);
      // It began under an earlier claim, not under this one.
      await lose(false);
      await lose(true, "closed");
      await lose(false);
      expect(await deaths()).toEqual([EVENT_SUSPECT_DEATHS + 1, EVENT_SUSPECT_DEATHS]);
    });

    test("[J164] graceful shutdowns count as one death, and only without a crash", async () => {
      await using at = await open();
      await append(at.store, ...entries(1));
      const lose = async (...said: readonly ("begun" | "left")[]) => {
        const { lease } = await at.store.openLease(LEASE_MS);
        const [claim] = await at.store.claim({ lease, limit: 1, kinds: EVENTS });
        const before = await rowOf(at.store, 1);
        for (const kind of said) expect(await at.store.settle([settlement(claim!, { kind })])).toEqual(["settled"]);
        expect(await rowOf(at.store, 1)).toEqual(before);
        at.host.stepClock(LEASE_MS);
        await at.store.recover();
        return (await rowOf(at.store, 1)).deaths;
      };
      expect(await lose("left")).toBe(1);
      expect(await lose("left")).toBe(1);
      expect(await lose()).toBe(2);
      expect(await lose("begun", "left")).toBe(2);
      // It was left under an earlier claim, not under this one.
      expect(await lose("begun")).toBe(3);
    });

    test("[J87] a begun row stays with its claimant and is not begun for another", async () => {
      await using at = await open();
      await append(at.store, ...entries(1));
      const { lease } = await at.store.openLease(LEASE_MS);
      const [claim] = await at.store.claim({ lease, limit: 1, kinds: EVENTS });
      const before = await rowOf(at.store, 1);
      expect(await at.store.settle([settlement(claim!, { kind: "begun" })])).toEqual(["settled"]);
      expect(await rowOf(at.store, 1)).toEqual(before);
      const other = { ...settlement(claim!, { kind: "begun" }), lease: lease + 1 };
      expect(await at.store.settle([other])).toEqual(["lease-lost"]);
      expect(await at.store.settle([settlement(claim!, { kind: "done" })])).toEqual(["settled"]);
    });

    test("[J165] a claim takes no more suspects than it requests, and does not stop at them", async () => {
      await using at = await open();
      await append(at.store, ...entries(3));
      const lost = await at.store.openLease(LEASE_MS);
      await at.store.claim({ lease: lost.lease, limit: 3, kinds: EVENTS });
      at.host.stepClock(LEASE_MS);
      await at.store.recover();
      await append(at.store, ...entries(3));
      const { lease } = await at.store.openLease(LEASE_MS);
      const claim = async (limit: number, suspects: number) =>
        claimedIds(await at.store.claim({ lease, limit, kinds: EVENTS, suspects: { from: 1, limit: suspects } }));
      expect(await claim(1, 0)).toEqual([4]);
      expect(await claim(2, 1)).toEqual([1, 5]);
      expect(await claim(5, 0)).toEqual([6]);
      expect(await claim(5, 1)).toEqual([2]);
      expect(claimedIds(await at.store.claim({ lease, limit: 5, kinds: EVENTS }))).toEqual([3]);
    });

    test("[J18] a lease that is not live claims no row; renewed in time, it claims again", async () => {
      await using at = await open();
      await append(at.store, ...entries(2));
      const expired = await at.store.openLease(LEASE_MS);
      const closed = await at.store.openLease(1_000_000);
      await at.store.closeLease(closed.lease);
      at.host.stepClock(LEASE_MS);
      for (const lease of [expired.lease, closed.lease, 99]) {
        expect(await at.store.claim({ lease, limit: 10, kinds: EVENTS })).toEqual([]);
      }
      expect(await at.store.renewLease(expired.lease, LEASE_MS)).toBe(true);
      expect(claimedIds(await at.store.claim({ lease: expired.lease, limit: 10, kinds: EVENTS }))).toEqual([1, 2]);
    });

    test("[J20] lease numbers increase, across store objects, reopenings and ended leases", async () => {
      await using at = await open();
      const other = await at.second();
      const first = await at.store.openLease(LEASE_MS);
      const second = await other.openLease(LEASE_MS);
      expect(first.expiresAtMs).toBe(START_MS + LEASE_MS);
      expect(second.lease).toBeGreaterThan(first.lease);
      await at.store.closeLease(first.lease);
      await at.store.closeLease(second.lease);
      at.host.stepClock(LEASE_MS);
      await at.store.recover();
      const store = await at.reopen();
      expect((await store.openLease(LEASE_MS)).lease).toBeGreaterThan(second.lease);
    });

    test("[J21] a lease is live until it expires, and each renewal extends it", async () => {
      await using at = await open();
      const { lease } = await at.store.openLease(LEASE_MS);
      await append(at.store, entry({}, { status: "claimed", lease }));
      at.host.stepClock(LEASE_MS - 1);
      expect(await at.store.recover()).toBe(0);
      expect(await at.store.renewLease(lease, LEASE_MS)).toBe(true);
      at.host.stepClock(LEASE_MS - 1);
      expect(await at.store.recover()).toBe(0);
      at.host.stepClock(1);
      expect(await at.store.recover()).toBe(1);
      expect(await at.store.renewLease(lease, LEASE_MS)).toBe(false);
    });

    test("[J21] an expired lease that was not recovered can be renewed; a closed or unknown one cannot", async () => {
      await using at = await open();
      const { lease } = await at.store.openLease(LEASE_MS);
      await append(at.store, entry({}, { status: "claimed", lease }));
      at.host.stepClock(LEASE_MS * 2);
      expect(await at.store.renewLease(lease, LEASE_MS)).toBe(true);
      expect(await at.store.recover()).toBe(0);
      await at.store.closeLease(lease);
      expect(await at.store.renewLease(lease, LEASE_MS)).toBe(false);
      expect(await at.store.renewLease(99, LEASE_MS)).toBe(false);
    });

    test("[J22] recover returns the rows without a live lease, and no others", async () => {
      await using at = await open();
      const dead = await at.store.openLease(LEASE_MS);
      const live = await at.store.openLease(LEASE_MS * 3);
      await append(
        at.store,
        entry({}, { status: "claimed", lease: dead.lease }),
        entry({}, { status: "claimed", lease: live.lease }),
        entry({}, { status: "claimed", lease: 77 }),
        entry({}, { status: "done" }),
        entry({}, { status: "failed", error: "no" }),
        entry(),
        entry({ kind: "command" }, { status: "claimed", lease: dead.lease }),
      );
      at.host.stepClock(LEASE_MS);
      expect(await (await at.second()).recover()).toBe(3);
      expect(await at.store.recover()).toBe(0);
      const statuses = (await at.store.query({ limit: 10 })).map((row) => row.status);
      expect(statuses).toEqual(["pending", "processing", "pending", "done", "failed", "pending", "pending"]);
      const recovered = await rowOf(at.store, 1);
      expect([recovered.attempts, recovered.lease]).toEqual([1, undefined]);
    });

    test("[J22] recover after reopening leaves the rows of a live process", async () => {
      await using at = await open();
      const { lease } = await at.store.openLease(LEASE_MS);
      await append(at.store, ...entries(2));
      await at.store.claim({ lease, limit: 1, kinds: EVENTS });
      const store = await at.reopen();
      expect(await store.recover()).toBe(0);
      at.host.stepClock(LEASE_MS);
      expect(await store.recover()).toBe(1);
      const next = await store.openLease(LEASE_MS);
      const claims = await store.claim({ lease: next.lease, limit: 5, kinds: EVENTS });
      expect(claims.map(({ row, attempt }) => [row.id, attempt])).toEqual([
        [1, 2],
        [2, 1],
      ]);
    });

    test("[J166] closing a lease returns its rows at once and reports their number", async () => {
      await using at = await open();
      await append(at.store, ...entries(3));
      const mine = await at.store.openLease(LEASE_MS);
      const theirs = await at.store.openLease(LEASE_MS);
      await at.store.claim({ lease: mine.lease, limit: 2, kinds: EVENTS });
      await at.store.claim({ lease: theirs.lease, limit: 1, kinds: EVENTS });
      expect(await at.store.closeLease(mine.lease)).toBe(2);
      expect(await at.store.closeLease(mine.lease)).toBe(0);
      expect(await at.store.count()).toEqual({ pending: 2, processing: 1, done: 0, failed: 0 });
    });
  });
}
