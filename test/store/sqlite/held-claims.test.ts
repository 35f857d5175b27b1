import { describe, expect, test } from "vitest";
import type { JournalEntry, Settlement } from "../../../src/store/journal.ts";
import type { Store } from "../../../src/store/store.ts";
import {
  append,
  claimedIds,
  claimUnderNewLease,
  commitBy,
  committed,
  entries,
  entry,
  ref,
  rowOf,
  set,
} from "../conformance/requests.ts";
import { StoreFile } from "./store-file.ts";

const DONE = { kind: "done" } as const;

async function setup() {
  const file = new StoreFile();
  const store = await file.open();
  const { lease } = await store.openLease(60_000);
  const done = (id: number, attempt = 1): Settlement => ({ id, lease, attempt, outcome: DONE });
  const claimed: JournalEntry["as"] = { status: "claimed", lease };
  return { file, store, lease, done, claimed, [Symbol.asyncDispose]: () => file[Symbol.asyncDispose]() };
}

/** A commit with a settlement alone. */
function settlingCommit(store: Store, number: number, ...settlements: Settlement[]) {
  return store.commit(commitBy("handler", number, { settlements, patches: [set(`document ${number}`, [], 1)] }));
}

describe("claims that this process has written itself", () => {
  test("[J23] the second settlement of a claim in one batch finds the claim lost", async () => {
    await using at = await setup();
    await append(at.store, ...Array.from({ length: 5 }, () => entry({}, at.claimed)));
    const answers = await Promise.all([
      at.store.settle([at.done(1)]),
      at.store.settle([at.done(1), at.done(2)]),
      at.store.settle([at.done(3)]),
      settlingCommit(at.store, 1, at.done(3)),
      at.store.settle([at.done(4)]),
      settlingCommit(at.store, 2, at.done(4), at.done(5)),
    ]);
    const isLost = { reason: "lease-lost" };
    expect(answers).toMatchObject([["settled"], ["lease-lost", "settled"], ["settled"], isLost, ["settled"], isLost]);
    expect(await at.store.count()).toEqual({ pending: 0, processing: 1, done: 4, failed: 0 });
  });

  test("[J23] a settlement with another lease or attempt than the holder's has no effect", async () => {
    await using at = await setup();
    const { lease: other } = await at.store.openLease(60_000);
    await append(at.store, entry({}, at.claimed));
    expect(await at.store.settle([{ ...at.done(1), lease: other }])).toEqual(["lease-lost"]);
    expect(await at.store.settle([at.done(1, 2)])).toEqual(["lease-lost"]);
    expect(await rowOf(at.store, 1)).toMatchObject({ status: "processing", lease: at.lease, attempts: 1 });
    expect(await at.store.settle([at.done(1)])).toEqual(["settled"]);
  });

  test("[J166] a lease closed in the same batch returns the rows that were not settled before", async () => {
    await using at = await setup();
    await append(at.store, entry({}, at.claimed), entry({}, at.claimed));
    const answers = await Promise.all([
      at.store.settle([at.done(1)]),
      at.store.closeLease(at.lease),
      at.store.settle([at.done(2)]),
    ]);
    expect(answers).toEqual([["settled"], 1, ["lease-lost"]]);
    expect(await at.store.count()).toEqual({ pending: 1, processing: 0, done: 1, failed: 0 });
  });

  test("[J10] [J23] the id of a refused row cannot be settled", async () => {
    await using at = await setup();
    await append(at.store, entry({ id: "taken", data: 1 }));
    const refused = at.store.append([entry({}, at.claimed), entry({ id: "taken", data: 2 })]);
    const answers = await Promise.all([refused, append(at.store, entry()), at.store.settle([at.done(2)])]);
    expect(answers).toMatchObject([{ reason: "message-exists" }, [2], ["lease-lost"]]);
    expect(await rowOf(at.store, 2)).toMatchObject({ status: "pending", attempts: 0 });
  });

  test("[J24] rows settled in one batch as done, failed and released have these states", async () => {
    await using at = await setup();
    await append(at.store, ...Array.from({ length: 5 }, () => entry({}, at.claimed)));
    await Promise.all([
      at.store.settle([at.done(1)]),
      at.store.settle([{ ...at.done(2), outcome: { kind: "failed", error: "no" } }]),
      at.store.settle([{ ...at.done(3), outcome: { kind: "release" } }]),
      at.store.settle([
        { ...at.done(4), outcome: { kind: "done", ending: { outcome: "unheard", reason: "no subscriber" } } },
      ]),
      at.store.settle([at.done(5)]),
    ]);
    const rows = await at.store.query({ limit: 10 });
    expect(rows.map(({ status, error, reason }) => [status, error ?? reason])).toEqual([
      ["done", undefined],
      ["failed", "no"],
      ["pending", undefined],
      ["done", "no subscriber"],
      ["done", undefined],
    ]);
    expect(rows.every(({ processedAtMs }, index) => (processedAtMs === undefined) === (index === 2))).toBe(true);
    expect(claimedIds(await claimUnderNewLease(at.store, 10))).toEqual([3]);
  });

  test("[J30] a row settled in the same batch can be removed", async () => {
    await using at = await setup();
    await append(at.store, entry({}, at.claimed), entry({}, at.claimed));
    const answers = await Promise.all([
      at.store.settle([at.done(1)]),
      at.store.retain({ keepSettled: 0, limit: 10 }),
      at.store.settle([at.done(2)]),
    ]);
    expect(answers).toEqual([["settled"], 1, ["settled"]]);
    expect(await at.store.verify()).toMatchObject({ ok: true, rows: 1 });
  });

  test("[J16] [S22] a claim that another store object took meanwhile is lost", async () => {
    await using at = await setup();
    await append(at.store, ...entries(3));
    const mine = await claimUnderNewLease(at.store, 3);
    const other = await at.file.open();
    await other.closeLease(mine[0]!.lease);
    expect(await other.claim({ lease: at.lease, limit: 1, kinds: ["event"] })).toHaveLength(1);
    const all = [1, 2, 3].map((id) => ({ id, lease: mine[0]!.lease, attempt: 1, outcome: DONE }));
    expect(await at.store.settle(all)).toEqual(["lease-lost", "lease-lost", "lease-lost"]);
    expect(await at.store.settle([at.done(1, 2)])).toEqual(["settled"]);
  });
});

describe("receipts", () => {
  const receipt = (number: number, name: string, parts = {}) =>
    commitBy("handler", number, {
      preconditions: [{ kind: "absent", ...ref(name) }],
      patches: [set(name, [], { number }), set("book", [], { number })],
      ...parts,
    });

  test("[S9] of two commits of one batch that create the same document one is made", async () => {
    await using at = await setup();
    const answers = await Promise.all([at.store.commit(receipt(1, "r")), at.store.commit(receipt(2, "r"))]);
    expect(answers).toMatchObject([{ kind: "committed" }, { class: "permanent", reason: "document-exists" }]);
    expect((await at.store.load("home", [ref("r"), ref("book")])).documents).toMatchObject([
      { value: { number: 1 }, sequence: 1 },
      { value: { number: 1 }, sequence: 1 },
    ]);
  });

  test("[S5] [S9] a document of a refused commit does not exist", async () => {
    await using at = await setup();
    committed(await at.store.commit(receipt(1, "first")));
    await append(at.store, entry({ id: "taken", data: 1 }), entry({}, at.claimed));
    const lost = { settlements: [at.done(2, 7)] };
    const stale = { reads: [{ ...ref("book"), path: [], depth: "deep", sequence: 0 }], session: "other" };
    const twice = { preconditions: [ref("a"), ref("first")].map((one) => ({ kind: "absent", ...one })) };
    const taken = { entries: [entry({ id: "taken", data: 2 })] };
    for (const [index, parts] of [lost, stale, twice, taken].entries()) {
      expect(await at.store.commit(receipt(2 + index, "a", parts))).toMatchObject({ kind: "rejected" });
      expect((await at.store.load("home", [ref("a")])).documents[0]).toMatchObject({ sequence: 0, value: undefined });
    }
    committed(await at.store.commit(receipt(9, "a", { settlements: [at.done(2)] })));
    expect(await at.store.commit(receipt(10, "a"))).toMatchObject({ reason: "document-exists" });
    expect(await at.store.verify()).toMatchObject({ ok: true, documents: 3, problems: [] });
  });

  test("[S9] a document that was only referenced so far can be created", async () => {
    await using at = await setup();
    committed(await at.store.commit(commitBy("s", 1, { labels: [{ ...ref("r"), path: [], labels: ["secret"] }] })));
    await at.store.close();
    const store = await at.file.open();
    committed(await store.commit(receipt(1, "r")));
    expect((await store.load("home", [ref("r")])).documents[0]).toMatchObject({ value: { number: 1 }, sequence: 2 });
  });

  test("[S10] [S14] a receipt can be written again, also in its own batch", async () => {
    await using at = await setup();
    await Promise.all([
      at.store.commit(receipt(1, "r")),
      at.store.commit(commitBy("handler", 2, { patches: [set("r", ["more"], 1)] })),
      at.store.commit(commitBy("handler", 3, { patches: [set("r", ["more"], 2)] })),
    ]);
    expect((await at.store.load("home", [ref("r")])).documents[0]).toMatchObject({
      value: { number: 1, more: 2 },
      sequence: 3,
    });
    const behind = { reads: [{ ...ref("r"), path: ["more"], depth: "deep" as const, sequence: 2 }] };
    expect(await at.store.commit(commitBy("other", 1, behind))).toMatchObject({ reason: "read-moved" });
    expect(await at.store.verify()).toMatchObject({ ok: true, problems: [] });
  });
});
