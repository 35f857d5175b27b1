/**
 * Receipts with an end: the horizon, the requests that it refuses, and the rows that are removed or kept when it moves.
 */
import { describe, expect, test } from "#test";
import { periodOf, periodText } from "../../../src/message/id-time.ts";
import type { CommitOutcome, CommitRequest, Precondition } from "../../../src/store/commit.ts";
import { madeAt } from "../../../src/store/receipt-name.ts";
import type { Store } from "../../../src/store/store.ts";
import { START_MS } from "../controlled-host.ts";
import {
  append,
  claimUnderNewLease,
  commitBy,
  committed,
  currentValue,
  entries,
  entry,
  ref,
  rowOf,
  SPACE,
  set,
  settlement,
} from "./requests.ts";
import type { OpenStore, StoreUnderTest } from "./store-under-test.ts";

const HOUR_MS = 3_600_000;
/** After all horizons of these cases. */
const LATER_MS = 10 * HOUR_MS;
const DONE = { kind: "done" } as const;
/** A short feed, since receipts go only when it no longer reaches their commits. */
const SHORT = { changesKept: 5 };
/** More than a backend may leave in the feed before it shortens it. */
const FEED_COMMITS = 300;

let lastDigits = 0;

/** A UUIDv7 of a time. */
function idAt(timeMs: number): string {
  const time = timeMs.toString(16).padStart(12, "0");
  const digits = (++lastDigits).toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${digits}`;
}

function sendIdAt(timeMs: number): string {
  return `${periodText(periodOf(timeMs))}${"a".repeat(24)}.${++lastDigits}`;
}

const requestReceipt = (id: string) => `receipt/${id}`;
const sendReceipt = (id: string) => `receipt:stream:${id}`;
const eventReceipt = (id: string, subscriber = "s") => `receipt:event:${id} ${subscriber} ${id.length}`;

let lastHandling = 0;

/** A commit that leaves a receipt, as the rooms above make it. */
function handling(name: string, parts: Partial<CommitRequest> = {}): CommitRequest {
  const absent: Precondition = { kind: "absent", ...ref(name), madeAtMs: madeAt(name) };
  const patches = [set(name, [], { by: name }), ...(parts.patches ?? [])];
  return commitBy(`handler ${++lastHandling}`, 1, { ...parts, patches, preconditions: [absent] });
}

function forget(store: Store, madeBeforeMs: number, limit = 1_000): Promise<number> {
  return store.forgetReceipts({ madeBeforeMs, limit }).then(({ removed }) => removed);
}

/** Leaves the commits so far behind the feed. */
async function passFeed({ store }: Pick<StoreUnderTest, "store">): Promise<void> {
  const commits: Promise<CommitOutcome>[] = [];
  for (let n = 0; n < FEED_COMMITS; n++) commits.push(store.commit(commitBy(`feed ${++lastHandling}`, 1, BUSY)));
  for (const outcome of await Promise.all(commits)) committed(outcome);
  // Shortening the feed is work for after a batch.
  for (let n = 0; n < 3; n++) committed(await store.commit(commitBy(`feed ${++lastHandling}`, 1, BUSY)));
  // The document that came last may stay.
  committed(
    await store.commit(commitBy(`feed ${++lastHandling}`, 1, { patches: [set(`last ${lastHandling}`, [], 1)] })),
  );
}

const BUSY = { patches: [set("busy", [], 1)] };

export function receiptCases(openAtStart: OpenStore): void {
  const open: OpenStore = async (options) => {
    const at = await openAtStart(options);
    // The horizon is at most the store's clock.
    at.host.stepClock(LATER_MS);
    return at;
  };
  describe("receipts with an end", () => {
    for (const [what, nameAt] of [
      ["a request", (timeMs: number) => requestReceipt(idAt(timeMs))],
      ["a send", (timeMs: number) => sendReceipt(sendIdAt(timeMs))],
    ] as const) {
      test(`[S100] [S101] ${what} made before the horizon is refused, with or without a receipt, also after reopening`, async () => {
        await using at = await open(SHORT);
        const [handled, never, young] = [0, 1, 2 * HOUR_MS].map((ms) => nameAt(START_MS + ms)) as [
          string,
          string,
          string,
        ];
        committed(await at.store.commit(handling(handled)));
        await passFeed(at);
        expect(await forget(at.store, START_MS + HOUR_MS)).toBe(1);
        expect(await currentValue(at.store, handled)).toBe(undefined);
        const store = await at.reopen();
        for (const name of [handled, never]) {
          expect(await store.commit(handling(name))).toMatchObject({ class: "permanent", reason: "too-old" });
          expect(await currentValue(store, name)).toBe(undefined);
        }
        committed(await store.commit(handling(young)));
        expect(await store.commit(handling(young))).toMatchObject({ reason: "document-exists" });
        expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
      });
    }

    test("[S100] the horizon only moves forward, for every store object on the same data at once", async () => {
      await using at = await open();
      const other = await at.second();
      committed(await other.commit(handling(requestReceipt(idAt(START_MS)))));
      expect(await at.store.forgetReceipts({ madeBeforeMs: 0, limit: 1 })).toEqual({ removed: 0, horizonMs: 0 });
      const later = START_MS + HOUR_MS;
      expect(await at.store.forgetReceipts({ madeBeforeMs: later, limit: 1 })).toEqual({
        removed: 0,
        horizonMs: later,
      });
      expect(await other.forgetReceipts({ madeBeforeMs: START_MS, limit: 1 })).toEqual({
        removed: 0,
        horizonMs: later,
      });
      const justBefore = handling(requestReceipt(idAt(later - 1)));
      expect(await other.commit(justBefore)).toMatchObject({ reason: "too-old" });
      committed(await other.commit(handling(requestReceipt(idAt(later)))));
    });

    test("[S101] a too-old refusal names the creation time, the horizon and a remedy", async () => {
      await using at = await open();
      await forget(at.store, START_MS + HOUR_MS);
      expect(await at.store.commit(handling(requestReceipt(idAt(START_MS))))).toMatchObject({
        message: expect.stringMatching(/2026-01-01T00:00:00.000Z.*since 2026-01-01T01:00:00.000Z.*new id/),
      });
    });

    test("[S101] an existing receipt answers at any age; the replay check comes first", async () => {
      await using at = await open();
      const made = handling(requestReceipt(idAt(START_MS)));
      committed(await at.store.commit(made));
      await forget(at.store, START_MS + HOUR_MS);
      expect(await at.store.commit(handling(made.patches[0]!.id))).toMatchObject({ reason: "document-exists" });
      expect(await at.store.commit(made)).toMatchObject({ kind: "committed", replayed: true });
    });

    test("[S178] [S180] ids without a time keep their receipts, and so do documents with similar names", async () => {
      await using at = await open(SHORT);
      const lasting = [
        requestReceipt("order-17"),
        requestReceipt("01234567-89ab-4cde-8000-000000000000"),
        requestReceipt(idAt(START_MS).toUpperCase()),
        sendReceipt("f".repeat(32)),
        eventReceipt("order-17"),
      ];
      for (const name of lasting) committed(await at.store.commit(handling(name)));
      const users = requestReceipt(idAt(START_MS));
      committed(await at.store.commit(commitBy("user", 1, { patches: [set(users, [], "paid")] })));
      const guarded = requestReceipt(idAt(START_MS));
      const preconditions = [{ kind: "absent", ...ref(guarded) } as const];
      committed(await at.store.commit(commitBy("user", 2, { patches: [set(guarded, [], "paid")], preconditions })));
      await passFeed(at);
      expect(await forget(at.store, START_MS + HOUR_MS)).toBe(0);
      for (const name of lasting)
        expect(await at.store.commit(handling(name))).toMatchObject({ reason: "document-exists" });
      for (const name of [users, guarded]) expect(await currentValue(at.store, name)).toBe("paid");
    });

    test("[S103] receipts of commits within the feed stay, and readers of the feed miss no commit", async () => {
      await using at = await open();
      const name = requestReceipt(idAt(START_MS));
      committed(await at.store.commit(handling(name)));
      committed(await at.store.commit(commitBy("s", 1, { patches: [set("later", [], 1)] })));
      expect(await forget(at.store, START_MS + HOUR_MS)).toBe(0);
      const { commits } = await at.store.changesSince(SPACE, 0, 10);
      expect(commits.map(({ patches }) => patches.map(({ id }) => id))).toEqual([[name], ["later"]]);
    });

    test("[S103] large, labelled and overwritten receipts leave no trace; documents beside them stay", async () => {
      await using at = await open(SHORT);
      const [large, labelled, removed] = [1, 2, 3].map((ms) => requestReceipt(idAt(START_MS + ms))) as [
        string,
        string,
        string,
      ];
      const big = handling(large);
      const value = { text: "x".repeat(5_000) };
      committed(await at.store.commit({ ...big, patches: [set(large, [], value), set("beside", [], value)] }));
      const labels = [{ ...ref(labelled), path: [], labels: ["secret"] }];
      committed(await at.store.commit(handling(labelled, { labels })));
      committed(await at.store.commit(handling(removed)));
      const patches = [{ ...ref(removed), operations: [{ op: "delete", path: [] } as const] }];
      committed(await at.store.commit(commitBy("user", 1, { patches })));
      await passFeed(at);
      expect(await forget(at.store, START_MS + HOUR_MS)).toBe(3);
      const { documents } = await at.store.load(SPACE, [large, labelled, removed].map(ref));
      for (const document of documents) expect(document).toMatchObject({ value: undefined, sequence: 0, labels: [] });
      const store = await at.reopen();
      expect(await currentValue(store, "beside")).toEqual(value);
      expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
    });

    test("[S103] a receipt whose name was read by a node or labelled before it existed is removed like others", async () => {
      await using at = await open(SHORT);
      const [read, labelled] = [1, 2].map((ms) => requestReceipt(idAt(START_MS + ms))) as [string, string];
      const inputs = [{ ...ref(read), sequence: 0, reads: [{ path: [], depth: "deep" } as const] }];
      committed(await at.store.commit(commitBy("nodes", 1, { basis: [{ node: "reader", fingerprint: "f", inputs }] })));
      const labels = [{ ...ref(labelled), path: [], labels: ["secret"] }];
      committed(await at.store.commit(commitBy("nodes", 2, { labels })));
      for (const name of [read, labelled]) committed(await at.store.commit(handling(name)));
      await passFeed(at);
      expect(await forget(at.store, START_MS + HOUR_MS)).toBe(2);
    });

    test("[S180] a document written later under a name that was once claimed absent is no receipt", async () => {
      await using at = await open(SHORT);
      const name = requestReceipt(idAt(START_MS));
      const absent: Precondition = { kind: "absent", ...ref(name), madeAtMs: madeAt(name) };
      const asked = { patches: [set("beside", [], 1)], preconditions: [absent] };
      committed(await at.store.commit(commitBy("s", 1, asked)));
      await passFeed(at);
      expect(await forget(at.store, START_MS)).toBe(0);
      committed(await at.store.commit(commitBy("s", 2, { patches: [set(name, [], "mine")] })));
      await passFeed(at);
      expect(await forget(at.store, START_MS + HOUR_MS)).toBe(0);
      expect(await currentValue(at.store, name)).toBe("mine");
    });

    test("[S104] at most limit receipts are removed per call, in every space, and the rest later", async () => {
      await using at = await open(SHORT);
      const spaces = [SPACE, "other"];
      for (let n = 0; n < 30; n++) {
        const made = handling([requestReceipt(idAt(START_MS + n)), sendReceipt(sendIdAt(START_MS))][n % 2] as string);
        committed(await at.store.commit({ ...made, space: spaces[n % 3 === 0 ? 1 : 0] as string }));
      }
      await passFeed(at);
      const busy = Array.from({ length: FEED_COMMITS }, () => commitBy(`feed ${++lastHandling}`, 1, BUSY));
      for (const one of busy) committed(await at.store.commit({ ...one, space: "other" }));
      const went: number[] = [];
      for (let n = 0; n < 4; n++) went.push(await forget(at.store, START_MS + HOUR_MS, 12));
      expect(went).toEqual([12, 12, 6, 0]);
    });

    test("[S105] a node that has read a removed receipt has no basis", async () => {
      await using at = await open(SHORT);
      const name = requestReceipt(idAt(START_MS));
      const { sequence } = committed(await at.store.commit(handling(name)));
      const input = { ...ref(name), sequence, reads: [{ path: [], depth: "deep" } as const] };
      const basis = [
        { node: "reader", fingerprint: "f", inputs: [input] },
        { node: "other", fingerprint: "f", inputs: [{ ...input, ...ref("busy") }] },
      ];
      committed(await at.store.commit(commitBy("nodes", 1, { basis })));
      await passFeed(at);
      expect(await forget(at.store, START_MS + HOUR_MS)).toBe(1);
      expect((await at.store.basis(SPACE, ["reader", "other"])).map(({ node }) => node)).toEqual(["other"]);
    });

    test("[S15] a receipt time that differs from the one in its name is misuse", async () => {
      await using at = await open();
      const name = requestReceipt(idAt(START_MS));
      const preconditions = [{ kind: "absent", ...ref(name), madeAtMs: START_MS + 1 } as const];
      await expect(at.store.commit(commitBy("s", 1, { preconditions }))).rejects.toMatchObject({
        code: "STORE_MISUSE",
      });
      // The horizon would never come back from there.
      for (const madeBeforeMs of [Number.NaN, 2 ** 48])
        await expect(at.store.forgetReceipts({ madeBeforeMs, limit: 1 })).rejects.toMatchObject({
          code: "STORE_MISUSE",
        });
    });
  });

  describe("receipts of events", () => {
    test("[S102] an event made before the horizon is refused, alone or with a commit, unless it is stored", async () => {
      await using at = await open();
      const [there, stranger] = [idAt(START_MS), idAt(START_MS)];
      const [id] = await append(at.store, entry({ id: there }));
      await forget(at.store, START_MS + HOUR_MS);
      expect(await append(at.store, entry({ id: there }))).toEqual([id]);
      const refused = [entry(), entry({ id: stranger })];
      expect(await at.store.append(refused)).toMatchObject({ class: "permanent", reason: "too-old" });
      const parts = { entries: refused, patches: [set("with", [], 1)] };
      expect(await at.store.commit(commitBy("s", 1, parts))).toMatchObject({ reason: "too-old" });
      expect(await currentValue(at.store, "with")).toBe(undefined);
      expect((await at.store.count()).pending).toBe(1);
      expect(await append(at.store, entry({ id: "order-17" }), entry({ id: stranger, kind: "command" }))).toHaveLength(
        2,
      );
    });

    test("[S179] a waiting event of any age is handled once by the holder of its claim", async () => {
      await using at = await open(SHORT);
      const id = idAt(START_MS);
      await append(at.store, entry({ id }));
      await forget(at.store, START_MS + HOUR_MS);
      const [claim] = await claimUnderNewLease(at.store, 1);
      const first = [settlement(claim!, { kind: "partial" })];
      committed(await at.store.commit(handling(eventReceipt(id, "a"), { settlements: first })));
      await passFeed(at);
      // Its other subscriber is not done with it.
      expect(await forget(at.store, START_MS + 2 * HOUR_MS)).toBe(0);
      expect(await at.store.commit(handling(eventReceipt(id, "a"), { settlements: first }))).toMatchObject({
        reason: "document-exists",
      });
      const last = [settlement(claim!, DONE)];
      committed(await at.store.commit(handling(eventReceipt(id, "b"), { settlements: last })));
      await passFeed(at);
      expect(await forget(at.store, START_MS + 2 * HOUR_MS)).toBe(2);
      expect(await at.store.append([entry({ id })])).toMatchObject({ kind: "appended" });
      expect(await claimUnderNewLease(at.store, 1)).toEqual([]);
      expect(await at.store.retain({ keepSettled: 0, limit: 10 })).toBe(1);
      expect(await at.store.append([entry({ id })])).toMatchObject({ reason: "too-old" });
    });

    test("[S179] a failed event keeps its receipts until it is requeued and done, or discarded", async () => {
      await using at = await open(SHORT);
      const ids = [idAt(START_MS), idAt(START_MS)] as const;
      const rows = await append(at.store, ...ids.map((id) => entry({ id })));
      for (const claim of await claimUnderNewLease(at.store, 2)) {
        const name = eventReceipt(claim.row.message!.metadata.id);
        committed(await at.store.commit(handling(name, { settlements: [settlement(claim, { kind: "partial" })] })));
        await at.store.settle([settlement(claim, { kind: "failed", error: "broke" })]);
      }
      await passFeed(at);
      expect(await forget(at.store, START_MS + HOUR_MS)).toBe(0);
      expect(await at.store.requeue([rows[0]!])).toEqual([rows[0]]);
      const [again] = await claimUnderNewLease(at.store, 1);
      const settlements = [settlement(again!, DONE)];
      expect(await at.store.commit(handling(eventReceipt(ids[0]), { settlements }))).toMatchObject({
        reason: "document-exists",
      });
      expect(await at.store.settle(settlements)).toEqual(["settled"]);
      expect(await rowOf(at.store, rows[0]!)).toMatchObject({ status: "done" });
      expect(await forget(at.store, START_MS + HOUR_MS)).toBe(1);
      expect(await at.store.retain({ keepSettled: 0, limit: 10 })).toBe(1);
      expect(await forget(at.store, START_MS + HOUR_MS)).toBe(0);
      const ending = { outcome: "discarded", reason: "no use" } as const;
      expect(await at.store.conclude([rows[1]!], { from: "failed", ending })).toEqual([rows[1]]);
      expect(await forget(at.store, START_MS + HOUR_MS)).toBe(1);
    });

    test("[S102] no append is refused before the horizon has moved", async () => {
      await using at = await open();
      expect(await append(at.store, entry({ id: idAt(0) }), ...entries(2))).toEqual([1, 2, 3]);
    });
  });
}
