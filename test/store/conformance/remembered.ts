/**
 * Cases for a backend that answers from memory instead of reading: numbers that a session left out, claims that were
 * settled with others, a claim settled in a commit that is refused for another reason, and reads of unloaded documents.
 */
import { describe, expect, test } from "#test";
import { NOT_HERE } from "../../../src/store/commit.ts";
import type { Store } from "../../../src/store/store.ts";
import {
  append,
  claimUnderNewLease,
  commitBy,
  committed,
  entries,
  entry,
  read,
  rowOf,
  set,
  settlement,
  write,
} from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

const DONE = { kind: "done" } as const;

export function rememberedCases(open: OpenStore): void {
  describe("cached state", () => {
    test("[S7] [S8] [S9] numbers that a session skipped were not committed until they are, also after reopening", async () => {
      await using at = await open();
      for (const number of [1, 2, 5, 6, 9]) committed(await at.store.commit(commitBy("s", number)));
      const standing = (number: number, on: number) => commitBy("s", number, { dependsOn: [on] });
      const launched = (by: number) =>
        commitBy("t", 1, { preconditions: [{ kind: "originCommitted", session: "s", localSequence: by }] });
      const findsNone = async (store: Store) => {
        for (const missing of [3, 4, 7, 8, 10]) {
          expect(await store.commit(standing(20, missing))).toMatchObject({ class: "stale", reason: "fell-with" });
          expect(await store.commit(launched(missing))).toMatchObject({ reason: "origin-not-committed" });
        }
      };
      await findsNone(at.store);
      const store = await at.reopen();
      await findsNone(store);
      committed(await store.commit(commitBy("s", 4)));
      expect(await store.commit(commitBy("s", 4))).toMatchObject({ kind: "committed", replayed: true });
      committed(await store.commit(standing(20, 4)));
      expect(await store.commit(standing(21, 3))).toMatchObject({ class: "stale", reason: "fell-with" });
    });

    test("[J23] a claim settled together with others has ended, independent of their outcomes", async () => {
      await using at = await open();
      await append(at.store, ...entries(4));
      const [first, second, third, fourth] = await claimUnderNewLease(at.store, 4);
      const outcomes = [
        settlement(first!, DONE),
        settlement(second!, DONE),
        settlement(third!, { kind: "failed", error: "broke" }),
        settlement(fourth!, { kind: "retry", atMs: 1, error: "later" }),
      ];
      expect(await at.store.settle(outcomes)).toEqual(["settled", "settled", "settled", "settled"]);
      const again = [first, second, third, fourth].map((claim) =>
        settlement(claim!, { ...DONE, ending: { outcome: "unheard", reason: "again" } }),
      );
      for (const one of again) expect(await at.store.settle([one])).toEqual(["lease-lost"]);
      expect(await at.store.settle(again)).toEqual(["lease-lost", "lease-lost", "lease-lost", "lease-lost"]);
      const rows = await at.store.query({ limit: 10 });
      expect(rows.map(({ status, error }) => [status, error])).toEqual([
        ["done", undefined],
        ["done", undefined],
        ["failed", "broke"],
        ["pending", "later"],
      ]);
    });

    test("[J22] [J23] a claim has ended when its own holder has put the row back", async () => {
      await using at = await open();
      await append(at.store, ...entries(2));
      const { lease } = await at.store.openLease(1_000);
      const claims = await at.store.claim({ lease, limit: 2, kinds: ["event"] });
      at.host.stepClock(1_000);
      expect(await at.store.recover()).toBe(2);
      const late = claims.map((claim) => settlement(claim, DONE));
      expect(await at.store.settle([late[0]!])).toEqual(["lease-lost"]);
      expect(await at.store.settle(late)).toEqual(["lease-lost", "lease-lost"]);
      expect(await at.store.commit(commitBy("s", 1, { settlements: [late[1]!] }))).toMatchObject({
        reason: "lease-lost",
      });
      expect((await at.store.query({ limit: 10 })).map(({ status }) => status)).toEqual(["pending", "pending"]);
    });

    test("[S5] [J161] a commit whose event is refused settles no row", async () => {
      await using at = await open();
      const [taken] = await append(at.store, entry({ id: "taken", data: 1 }));
      const claims = await claimUnderNewLease(at.store, 1);
      const of = settlement(claims[0]!, DONE);
      const refused = commitBy("s", 1, { settlements: [of], entries: [entry({ id: "taken", data: 2 })] });
      expect(await at.store.commit(refused)).toMatchObject({ class: "permanent", reason: "message-exists" });
      expect((await rowOf(at.store, taken!)).status).toBe("processing");
      committed(await at.store.commit(commitBy("s", 2, { settlements: [of], entries: [entry()] })));
      expect((await rowOf(at.store, taken!)).status).toBe("done");
    });

    test("[S10] [S11] a read of an unloaded document that exists is stale, for any writer and any path", async () => {
      await using at = await open();
      const early = (number: number, id: string) => commitBy("s", number, { reads: [read(id, ["a"], NOT_HERE)] });
      await write(at.store, set("theirs", [], { b: 1 }));
      committed(await at.store.commit(commitBy("s", 1, { patches: [set("own", [], { b: 1 })] })));
      await write(at.store, set("theirs", ["b"], 2));
      for (const id of ["theirs", "own"])
        expect(await at.store.commit(early(2, id))).toMatchObject({ class: "stale", reason: "read-moved" });
      committed(await at.store.commit(early(3, "nobody's")));
    });
  });
}
