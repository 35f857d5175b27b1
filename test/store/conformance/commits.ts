/** Commits through the seam: order of deciding, replay, preconditions, atomicity. */
import { describe, expect, test } from "#test";
import { PAYLOAD_BYTES_MAX } from "../../../src/limits.ts";
import type { CommitRequest } from "../../../src/store/commit.ts";
import type { CommitListener, Store } from "../../../src/store/store.ts";
import {
  append,
  claimUnderNewLease,
  commitBy,
  committed,
  currentValue,
  entries,
  entry,
  read,
  ref,
  remove,
  SPACE,
  set,
  settlement,
  write,
} from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

const PUT_TIMER = { op: "put", kind: "timer", key: "k", dueAtMs: 1, data: "ring" } as const;
const TAKE_TIMER = { op: "take", kind: "timer", key: "k" } as const;

/** Parts of every kind without preconditions. */
function allParts(): Partial<CommitRequest> {
  return {
    patches: [set("parts", [], { done: true })],
    entries: entries(2),
    due: [{ op: "put", kind: "timer", key: "parts", dueAtMs: 5, data: null }],
    basis: [{ node: "parts", fingerprint: "f", inputs: [] }],
    labels: [{ ...ref("parts"), path: [], labels: ["secret"] }],
  };
}

/** Which of those parts can be seen, each by itself. */
async function visibleParts(store: Store): Promise<boolean[]> {
  const [loaded, count, due, basis] = await Promise.all([
    store.load(SPACE, [ref("parts")]),
    store.count(),
    store.dueRows(5, 10),
    store.basis(SPACE, ["parts"]),
  ]);
  const document = loaded.documents[0];
  return [
    document?.value !== undefined,
    document?.labels.length === 1,
    count.pending === 2,
    due.some((row) => row.key === "parts"),
    basis.length === 1,
  ];
}

export function commitCases(open: OpenStore): void {
  describe("commits", () => {
    test("[S5] all parts of a commit land together", async () => {
      await using at = await open();
      committed(await at.store.commit(commitBy("s", 1, allParts())));
      expect(await visibleParts(at.store)).toEqual([true, true, true, true, true]);
      expect(await visibleParts(await at.reopen())).toEqual([true, true, true, true, true]);
    });

    test("[S5] all parts of a commit become visible together, also from another store object", async () => {
      await using at = await open();
      const other = await at.second();
      for (let n = 1; n <= 20; n++) {
        const done = at.store.commit(commitBy("s", n, { patches: [set("n", [], n)], entries: entries(1) }));
        for (const store of [at.store, other]) {
          const seen = (await currentValue(store, "n")) ?? 0;
          const { pending } = await store.count();
          expect(pending).toBeGreaterThanOrEqual(seen as number);
          expect((await currentValue(store, "n")) ?? 0).toBeGreaterThanOrEqual(pending);
        }
        committed(await done);
      }
    });

    test("[S5] a rejected commit leaves no part", async () => {
      await using at = await open();
      await write(at.store, set("a", [], 1));
      const [id] = await append(at.store, entry({}, { status: "done" }));
      const lost = { id: id!, lease: 1, attempt: 1, outcome: { kind: "done" } } as const;
      const known = entry({ data: "one" }, { status: "done" });
      await append(at.store, known);
      const contradicting = { ...known, message: { ...known.message, data: "two" } };
      const tooLarge = entry({ data: "x".repeat(PAYLOAD_BYTES_MAX) });
      const reasons: [string, Partial<CommitRequest>][] = [
        ["fell-with", { dependsOn: [77] }],
        ["document-exists", { preconditions: [{ kind: "absent", ...ref("a") }] }],
        ["origin-not-committed", { preconditions: [{ kind: "originCommitted", session: "x", localSequence: 1 }] }],
        ["due-row-gone", { due: [...(allParts().due ?? []), TAKE_TIMER] }],
        ["lease-lost", { settlements: [lost] }],
        ["read-moved", { reads: [read("a", [], 0)] }],
        ["message-exists", { entries: [...entries(2), contradicting] }],
        ["too-large", { entries: [...entries(2), tooLarge] }],
      ];
      for (const [n, [reason, parts]] of reasons.entries()) {
        const outcome = await at.store.commit(commitBy("s", n, { ...allParts(), ...parts }));
        expect(outcome).toMatchObject({ kind: "rejected", reason });
        expect(await visibleParts(at.store)).toEqual([false, false, false, false, false]);
      }
      expect((await at.store.load(SPACE, [])).sequence).toBe(1);
      expect(await at.store.count()).toEqual({ pending: 0, processing: 0, done: 2, failed: 0 });
      expect(await at.store.earliestDue()).toBeUndefined();
    });

    test("[S6] replay is decided before stacking, then preconditions, reads and claims", async () => {
      await using at = await open();
      await write(at.store, set("a", [], 1));
      const wrongClaim = { settlements: [{ id: 77, lease: 1, attempt: 1, outcome: { kind: "done" } as const }] };
      const wrongRead = { ...wrongClaim, reads: [read("a", [], 0)] };
      const wrongCondition = { ...wrongRead, preconditions: [{ kind: "absent", ...ref("a") } as const] };
      const wrongStack = { ...wrongCondition, dependsOn: [77] };
      const reason = async (parts: Partial<CommitRequest>) => {
        const outcome = await at.store.commit(commitBy("s", 1, parts));
        return outcome.kind === "rejected" ? outcome.reason : outcome.kind;
      };
      expect(await reason(wrongClaim)).toBe("lease-lost");
      expect(await reason(wrongRead)).toBe("read-moved");
      expect(await reason(wrongCondition)).toBe("document-exists");
      expect(await reason(wrongStack)).toBe("fell-with");
      expect(await reason({ digest: "first" })).toBe("committed");
      expect(await reason({ ...wrongStack, digest: "second" })).toBe("protocol");
      expect(await reason({ ...wrongStack, digest: "first" })).toBe("committed");
    });

    test("[S7] a repeated commit gets its first result, including journal ids, and has no effect", async () => {
      await using at = await open();
      await append(at.store, entry());
      const request = commitBy("s", 1, { patches: [set("a", [], 1)], entries: entries(3) });
      const first = committed(await at.store.commit(request));
      expect(first).toEqual({ kind: "committed", sequence: 1, journalIds: [2, 3, 4], replayed: false });
      await write(at.store, set("a", [], 2));
      const again = { ...first, replayed: true };
      expect(await at.store.commit(request)).toEqual(again);
      expect(await currentValue(at.store, "a")).toBe(2);
      expect(await at.store.count()).toEqual({ pending: 4, processing: 0, done: 0, failed: 0 });
      expect(await (await at.reopen()).commit(request)).toEqual(again);
    });

    test("[S7] a commit sent twice at once is made once", async () => {
      await using at = await open();
      const request = commitBy("s", 1, { patches: [set("a", [], 1)], entries: entries(1) });
      const outcomes = await Promise.all([
        at.store.commit(request),
        at.store.commit(request),
        at.store.commit(request),
      ]);
      expect(outcomes.map((outcome) => committed(outcome).replayed)).toEqual([false, true, true]);
      expect((await at.store.count()).pending).toBe(1);
    });

    test("[S13] [S167] a listener gets the same answer as a promise: later, once, in the order of calls", async () => {
      await using at = await open();
      const heard: [number, unknown][] = [];
      const ask = (local: number, parts: Partial<CommitRequest>) => {
        const listener: CommitListener = (answer) => heard.push([local, answer]);
        at.store.commit(commitBy("s", local, parts), listener)?.then(listener, listener);
      };
      ask(1, { patches: [set("a", [], 1)] });
      ask(2, { patches: [set("a", [], 2)], dependsOn: [7] });
      ask(3, { patches: [set("a", [], 3)], entries: entries(1) });
      expect(heard).toEqual([]);
      await write(at.store, set("b", [], 1));
      await write(at.store, set("b", [], 2));
      expect(heard).toEqual([
        [1, { kind: "committed", sequence: 1, journalIds: [], replayed: false }],
        [2, expect.objectContaining({ kind: "rejected", class: "stale", reason: "fell-with" })],
        [3, { kind: "committed", sequence: 2, journalIds: [1], replayed: false }],
      ]);
      await at.store.close();
      ask(4, {});
      expect(heard.length).toBe(3);
      await expect(at.store.commit(commitBy("s", 5))).rejects.toMatchObject({ code: "STORE_CLOSED" });
      await expect(at.store.commit(commitBy("s", 6))).rejects.toMatchObject({ code: "STORE_CLOSED" });
      expect(heard.slice(3)).toEqual([[4, expect.objectContaining({ code: "STORE_CLOSED" })]]);
    });

    test("[S162] a repeated identity with another digest is refused", async () => {
      await using at = await open();
      await at.store.commit(commitBy("s", 1, { patches: [set("a", [], 1)] }));
      const outcome = await at.store.commit(commitBy("s", 1, { patches: [set("a", [], 2)] }));
      expect(outcome).toMatchObject({ kind: "rejected", class: "refused", reason: "protocol" });
      expect(await currentValue(at.store, "a")).toBe(1);
    });

    test("[S163] a rejection is not stored: the same commit may succeed later", async () => {
      await using at = await open();
      const request = commitBy("s", 2, { patches: [set("a", [], 1)], dependsOn: [1] });
      expect(await at.store.commit(request)).toMatchObject({ class: "stale", reason: "fell-with" });
      committed(await at.store.commit(commitBy("s", 1)));
      expect(committed(await at.store.commit(request)).replayed).toBe(false);
    });

    test("[S8] a commit may stack on commits of its own session in the same batch", async () => {
      await using at = await open();
      const outcomes = await Promise.all([
        at.store.commit(commitBy("s", 1, { patches: [set("a", [], 1)] })),
        at.store.commit(commitBy("s", 2, { patches: [set("a", [], 2)], dependsOn: [1] })),
        at.store.commit(commitBy("s", 3, { patches: [set("a", [], 3)], dependsOn: [1, 2] })),
        at.store.commit(commitBy("t", 3, { dependsOn: [1] })),
      ]);
      expect(outcomes.slice(0, 3).map((outcome) => committed(outcome).sequence)).toEqual([1, 2, 3]);
      expect(outcomes[3]).toMatchObject({ class: "stale", reason: "fell-with" });
    });

    test("[S8] a commit stacked on a rejected one is rejected with it", async () => {
      await using at = await open();
      await write(at.store, set("a", [], 0));
      const [first, second] = await Promise.all([
        at.store.commit(commitBy("s", 1, { reads: [read("a", [], 0)], patches: [set("a", [], 1)] })),
        at.store.commit(commitBy("s", 2, { patches: [set("b", [], 2)], dependsOn: [1] })),
      ]);
      expect(first).toMatchObject({ class: "stale", reason: "read-moved" });
      expect(second).toMatchObject({ class: "stale", reason: "fell-with" });
      expect(await currentValue(at.store, "b")).toBeUndefined();
    });

    test("[S9] absent holds only for a document that never existed: a tombstone counts as present", async () => {
      await using at = await open();
      await write(at.store, set("there", [], null), set("gone", [], 1));
      await write(at.store, remove("gone", []));
      const tryAbsent = (n: number, id: string, space = SPACE) =>
        at.store.commit(commitBy("s", n, { space, preconditions: [{ kind: "absent", ...ref(id) }] }));
      const exists = { kind: "rejected", class: "permanent", reason: "document-exists" };
      expect(await tryAbsent(1, "there")).toMatchObject(exists);
      expect(await tryAbsent(1, "gone")).toMatchObject(exists);
      committed(await tryAbsent(1, "never"));
      committed(await tryAbsent(2, "there", "other"));
    });

    test("[S9] of two commits that create the same document under absent, one wins", async () => {
      await using at = await open();
      const other = await at.second();
      const create = (store: Store, session: string) =>
        store.commit(
          commitBy(session, 1, {
            patches: [set("receipt", [], session)],
            preconditions: [{ kind: "absent", ...ref("receipt") }],
          }),
        );
      const outcomes = await Promise.all([create(at.store, "a"), create(other, "b"), create(at.store, "c")]);
      expect(outcomes.filter((outcome) => outcome.kind === "committed").length).toBe(1);
    });

    test("[S9] originCommitted requires one commit, of any session and space", async () => {
      await using at = await open();
      committed(await at.store.commit(commitBy("parent", 7, { space: "other", patches: [set("a", [], 1)] })));
      const tryOrigin = (n: number, session: string, localSequence: number) =>
        at.store.commit(commitBy("s", n, { preconditions: [{ kind: "originCommitted", session, localSequence }] }));
      committed(await tryOrigin(1, "parent", 7));
      const notMade = { kind: "rejected", class: "permanent", reason: "origin-not-committed" };
      expect(await tryOrigin(2, "parent", 6)).toMatchObject(notMade);
      expect(await tryOrigin(2, "paren", 7)).toMatchObject(notMade);
    });

    test("[S9] a due row is taken by one commit only", async () => {
      await using at = await open();
      await at.store.changeDue([PUT_TIMER]);
      const take = (session: string) => at.store.commit(commitBy(session, 1, { due: [TAKE_TIMER] }));
      const outcomes = await Promise.all([take("a"), take("b")]);
      committed(outcomes[0]);
      expect(outcomes[1]).toMatchObject({ kind: "rejected", class: "permanent", reason: "due-row-gone" });
      expect(await at.store.earliestDue()).toBeUndefined();
    });

    test("[S9] a commit settles the claims that it holds, and is rejected if one is lost", async () => {
      await using at = await open();
      await append(at.store, ...entries(3));
      const [first, second, third] = await claimUnderNewLease(at.store, 3);
      const done = { kind: "done" } as const;
      const settle = (n: number, ...settlements: CommitRequest["settlements"]) =>
        at.store.commit(commitBy("s", n, { patches: [set(`d${n}`, [], n)], settlements }));
      committed(await settle(1, settlement(first!, done)));
      const lost = { kind: "rejected", class: "permanent", reason: "lease-lost" };
      expect(await settle(2, settlement(second!, done), settlement(first!, done))).toMatchObject(lost);
      expect(await settle(2, { ...settlement(second!, done), lease: second!.lease + 1 })).toMatchObject(lost);
      expect(await settle(2, { ...settlement(second!, done), attempt: 2 })).toMatchObject(lost);
      expect(await currentValue(at.store, "d2")).toBeUndefined();
      const stale = { settlements: [settlement(second!, done)], reads: [read("d1", [], 0)] };
      expect(await at.store.commit(commitBy("other", 1, stale))).toMatchObject({ reason: "read-moved" });
      committed(await settle(3, settlement(second!, done), settlement(third!, { kind: "failed", error: "no" })));
      expect(await at.store.count()).toEqual({ pending: 0, processing: 0, done: 2, failed: 1 });
    });

    test("[S12] a commit with only preconditions is decided, stored and answered again", async () => {
      await using at = await open();
      await write(at.store, set("a", [], 1));
      const request = commitBy("s", 1, { preconditions: [{ kind: "absent", ...ref("b") }] });
      expect(await at.store.commit(request)).toEqual({
        kind: "committed",
        sequence: 1,
        journalIds: [],
        replayed: false,
      });
      await write(at.store, set("b", [], 1));
      expect(await at.store.commit(request)).toMatchObject({ kind: "committed", sequence: 1, replayed: true });
      expect(await at.store.commit({ ...request, localSequence: 2 })).toMatchObject({ reason: "document-exists" });
      committed(
        await at.store.commit(
          commitBy("t", 1, { preconditions: [{ kind: "originCommitted", session: "s", localSequence: 1 }] }),
        ),
      );
    });

    test("[S13] [S167] commits are answered in the order of calls, none before its call has returned", async () => {
      await using at = await open();
      const answers: number[] = [];
      let returned = false;
      const commits = Array.from({ length: 30 }, async (_, n) => {
        const fails = n % 3 === 0 ? { dependsOn: [1_000] } : {};
        await at.store.commit(commitBy("s", n, { patches: [set("a", [], n)], ...fails }));
        expect(returned).toBe(true);
        answers.push(n);
      });
      returned = true;
      await Promise.all(commits);
      expect(answers).toEqual(commits.map((_, n) => n));
    });

    test("[S13] writes of every kind are applied in the order of calls", async () => {
      await using at = await open();
      const { lease } = await at.store.openLease(1_000);
      const [first, appended, , second, claims, results] = await Promise.all([
        at.store.commit(commitBy("s", 1, { patches: [set("a", [], 1)], entries: entries(1) })),
        at.store.append(entries(1)),
        at.store.changeDue([PUT_TIMER]),
        at.store.commit(commitBy("s", 2, { due: [TAKE_TIMER], dependsOn: [1] })),
        at.store.claim({ lease, limit: 5, kinds: ["event"] }),
        at.store.settle([{ id: 2, lease, attempt: 1, outcome: { kind: "done" } }]),
      ]);
      expect(committed(first).journalIds).toEqual([1]);
      expect(appended).toMatchObject({ ids: [2] });
      committed(second);
      expect(claims.map((claim) => claim.row.id)).toEqual([1, 2]);
      expect(results).toEqual(["settled"]);
    });
  });
}
