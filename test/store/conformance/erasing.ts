/** Erasing the data of a subject: the same result on every backend. */
import { expect, test } from "#test";
import type { Store } from "../../../src/store/store.ts";
import {
  append,
  claimUnderNewLease,
  commitBy,
  currentValue,
  entry,
  ref,
  rowOf,
  SPACE,
  set,
  settlement,
  write,
} from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

const RECEIPT = "receipt/ask anna";

/** Documents, messages and a receipt of `anna`, and others that are not hers. */
async function planted(store: Store): Promise<readonly number[]> {
  await write(store, set("users/anna", [], { text: "planted" }), set("users/joanna", [], "other"));
  await write(store, set("list", [], ["anna"]), set(RECEIPT, [], { request: "r", result: "planted" }));
  const ids = await append(
    store,
    entry({ id: "ask anna", data: { user: "anna", text: "planted" } }),
    entry({ id: "follows", data: "planted", causation: "ask anna" }),
    entry({ id: "other", data: "joanna" }),
    entry({ id: "waits", data: "anna" }),
  );
  const claims = await claimUnderNewLease(store, 3);
  const outcomes = [{ kind: "done" }, { kind: "failed", error: "no anna" }, { kind: "done" }] as const;
  await store.settle(outcomes.map((outcome, at) => settlement(claims[at]!, outcome)));
  return ids;
}

const COUNTS = { documents: 1, rows: 2, receipts: 1, left: { unsettled: 1, due: 0, documents: ["home/space/list"] } };

export function erasingCases(open: OpenStore): void {
  test("[S145] erase finds and removes named documents, texts of settled messages and results of receipts", async () => {
    await using under = await open();
    const { store } = under;
    const ids = await planted(store);
    expect(await store.erase({ subject: "anna", apply: false })).toEqual(COUNTS);
    expect(await currentValue(store, "users/anna")).toEqual({ text: "planted" });
    expect(await store.erase({ subject: "anna", apply: true })).toEqual(COUNTS);
    expect(await currentValue(store, "users/anna")).toBeUndefined();
    expect(await currentValue(store, "users/joanna")).toBe("other");
    expect(await currentValue(store, RECEIPT)).toEqual({ $erased: true });
    const rows = await Promise.all(ids.map((id) => rowOf(store, id)));
    const erased = { $erased: expect.any(String) };
    expect(rows.map(({ message }) => message?.data)).toEqual([erased, erased, "joanna", "anna"]);
    expect(rows[1]).toMatchObject({ status: "failed", error: "erased" });
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
    const again = { ...COUNTS, documents: 0, rows: 0, receipts: 0 };
    expect(await store.erase({ subject: "anna", apply: true })).toEqual(again);
  });

  test("[S146] after an erasure the feed has a gap, so that replicas load again, and watchers are told", async () => {
    await using under = await open();
    const { store } = under;
    await planted(store);
    const { head } = await store.changesSince(SPACE, 0, 10);
    const told = Promise.withResolvers<void>();
    const stop = store.watch(({ spaces }) => (spaces?.includes(SPACE) === false ? undefined : told.resolve()));
    await store.erase({ subject: "anna", apply: true });
    await told.promise;
    stop();
    expect(await store.changesSince(SPACE, head, 10)).toEqual({
      commits: [],
      head: head + 1,
      history: expect.any(String),
      gap: true,
    });
    expect(await store.changesSince(SPACE, head + 1, 10)).toMatchObject({ commits: [], gap: false });
    const reads = [{ ...ref("users/anna"), path: [], depth: "deep" as const, sequence: head }];
    const stale = await store.commit(commitBy("stale", 1, { reads, patches: [set("a", [], 1)] }));
    expect(stale).toMatchObject({ kind: "rejected" });
    expect(await store.commit(commitBy("new", 1, { patches: [set("a", [], 2)] }))).toMatchObject({ kind: "committed" });
    expect(await currentValue(store, "a")).toBe(2);
  });

  test("[S147] a message that was erased is still known under its id: the same one is a repeat, another is refused", async () => {
    await using under = await open();
    const { store } = under;
    const [first] = await planted(store);
    await store.erase({ subject: "anna", apply: true });
    const same = entry({ id: "ask anna", data: { user: "anna", text: "planted" } });
    expect(await store.append([same])).toMatchObject({ kind: "appended", ids: [first] });
    expect(await store.append([entry({ id: "ask anna", data: "other" })])).toMatchObject({ kind: "rejected" });
  });

  test("[S148] the row of the message that asks for an erasure loses its payload, and is not reported as left", async () => {
    await using under = await open();
    const { store } = under;
    const ids = await planted(store);
    const erased = await store.erase({ subject: "anna", apply: true, askedBy: "waits" });
    expect(erased).toMatchObject({ rows: 2, left: { unsettled: 0 } });
    expect(await rowOf(store, ids[3]!)).toMatchObject({
      status: "pending",
      message: { data: { $erased: expect.any(String) } },
    });
    expect(await store.verify()).toMatchObject({ ok: true });
  });

  test("[S149] a subject of fewer than three characters is refused", async () => {
    await using under = await open();
    await expect(under.store.erase({ subject: "an", apply: true })).rejects.toMatchObject({ code: "STORE_MISUSE" });
  });
}
