/** Lists of documents by a prefix of their ids, and commits that claim that a set has not changed. */
import { describe, expect, test } from "#test";
import { SHARED_SCOPE } from "../../../src/store/document.ts";
import type { Store } from "../../../src/store/store.ts";
import { commitBy, ref, remove, SPACE, set, splice, write } from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

async function idsOf(store: Store, prefix: string, after?: string, limit = 1_000): Promise<string[]> {
  const { documents } = await store.list(SPACE, { scope: SHARED_SCOPE, prefix, after, limit });
  return documents.map(({ id }) => id);
}

/** A commit that claims the set under a prefix, and writes elsewhere. */
function claiming(store: Store, session: string, prefix: string, sequence: number) {
  const preconditions = [{ kind: "members", scope: SHARED_SCOPE, prefix, sequence } as const];
  return store.commit(commitBy(session, sequence + 1, { preconditions, patches: [set("elsewhere", [], sequence)] }));
}

export function listCases(open: OpenStore): void {
  describe("lists", () => {
    test("[S122] a list has the documents with a value and an id with the prefix, and their sequences", async () => {
      await using at = await open();
      await write(at.store, set("order/2", [], 2), set("order/1", [], 1), set("orders", [], 0), set("orde", [], 0));
      await write(at.store, set("order/2", [], 3));
      const page = await at.store.list(SPACE, { scope: SHARED_SCOPE, prefix: "order/", limit: 10 });
      const documents = [
        { id: "order/1", sequence: 1, labels: [] },
        { id: "order/2", sequence: 2, labels: [] },
      ];
      expect(page).toEqual({ sequence: 2, documents });
      expect(await idsOf(at.store, "")).toEqual(["orde", "order/1", "order/2", "orders"]);
      expect(await idsOf(at.store, "none")).toEqual([]);
      expect(await idsOf(await at.reopen(), "order/")).toEqual(["order/1", "order/2"]);
    });

    test("[S122] a tombstone is in no list, and a document that is set again is", async () => {
      await using at = await open();
      await write(at.store, set("a/1", [], 1), set("a/2", [], 2));
      await write(at.store, remove("a/1", []));
      expect(await idsOf(at.store, "a/")).toEqual(["a/2"]);
      await write(at.store, set("a/1", [], 1), set("a/2", [], []));
      await write(at.store, splice("a/2", [], 0, 0, [1]), remove("a/2", []));
      expect(await idsOf(at.store, "a/")).toEqual(["a/1"]);
      expect(await idsOf(await at.reopen(), "a/")).toEqual(["a/1"]);
    });

    test("[S122] a list contains no other scopes or spaces", async () => {
      await using at = await open();
      const mine = { scope: "user:1", id: "a", operations: [{ op: "set", path: [], value: 1 } as const] };
      await write(at.store, mine, set("b", [], 1));
      const page = await at.store.list(SPACE, { scope: "user:1", prefix: "", limit: 10 });
      expect(page.documents.map(({ id }) => id)).toEqual(["a"]);
      expect((await at.store.list("other", { scope: "user:1", prefix: "", limit: 10 })).documents).toEqual([]);
    });

    test("[S123] pages continue after an id, in the order of UTF-8", async () => {
      await using at = await open();
      const ids = ["", "p", "pa", "pa\u{10ffff}", "p\u{10ffff}", "p\u{1f600}x", "p\ue000", "pz", "p\ud7ff", "q"];
      await write(at.store, ...ids.map((id) => set(id, [], 1)));
      const sorted = (list: string[]) => list.sort((a, b) => (utf8(a) < utf8(b) ? -1 : 1));
      for (const prefix of ["", "p", "pa", "p\u{10ffff}", "p\ud7ff"]) {
        const expected = sorted(ids.filter((id) => id.startsWith(prefix)));
        const paged: string[] = [];
        for (let page = await idsOf(at.store, prefix, undefined, 2); ; ) {
          paged.push(...page);
          if (page.length < 2) break;
          page = await idsOf(at.store, prefix, page.at(-1), 2);
        }
        expect(paged).toEqual(expected);
      }
      expect(await idsOf(at.store, "p", "a")).toEqual(await idsOf(at.store, "p"));
      expect(await idsOf(at.store, "p", "zz")).toEqual([]);
    });

    test("[S123] a page outside of 1 to 1,000 documents is misuse", async () => {
      await using at = await open();
      for (const limit of [0, 1_001, 1.5])
        await expect(idsOf(at.store, "", undefined, limit)).rejects.toMatchObject({ code: "STORE_MISUSE" });
    });

    test("[S124] a list contains the labels of its documents", async () => {
      await using at = await open();
      await write(at.store, set("a", [], { x: 1 }), set("b", [], 1));
      await at.store.commit(commitBy("s", 1, { labels: [{ ...ref("a"), path: ["x"], labels: ["secret"] }] }));
      const { documents } = await at.store.list(SPACE, { scope: SHARED_SCOPE, prefix: "", limit: 10 });
      expect(documents.map(({ labels }) => labels)).toEqual([[{ path: ["x"], labels: ["secret"] }], []]);
    });

    test("[S125] a claim on a set fails after any session created or removed a document of it", async () => {
      await using at = await open();
      await write(at.store, set("a/1", [], 1));
      expect(await claiming(at.store, "s", "a/", 1)).toMatchObject({ kind: "committed" });
      // The commit that claimed wrote elsewhere; this one creates.
      await at.store.commit(commitBy("s", 100, { patches: [set("a/2", [], 1)] }));
      const stale = { kind: "rejected", class: "stale", reason: "read-moved" };
      expect(await claiming(at.store, "s", "a/", 2)).toMatchObject(stale);
      expect(await claiming(at.store, "t", "a/", 2)).toMatchObject(stale);
      expect(await claiming(at.store, "t", "", 2)).toMatchObject(stale);
      expect(await claiming(at.store, "t", "a/2", 3)).toMatchObject({ kind: "committed" });
      await write(at.store, remove("a/1", []));
      expect(await claiming(at.store, "u", "a/", 4)).toMatchObject(stale);
      expect(await claiming(await at.reopen(), "v", "a/", 4)).toMatchObject(stale);
    });

    test("[S125] a claim on a set holds while its documents change and others are created or removed", async () => {
      await using at = await open();
      await write(at.store, set("a/1", [], { n: 1 }));
      await write(at.store, set("a/1", ["n"], 2));
      await write(at.store, set("a/1", [], 3), set("b/1", [], 1));
      await write(at.store, remove("b/1", []));
      // Created and removed in one commit is neither.
      await write(at.store, set("a/2", [], 1), remove("a/2", []));
      expect(await claiming(at.store, "s", "a/", 1)).toMatchObject({ kind: "committed" });
    });

    test("[S125] claims see the documents of earlier commits in the same batch", async () => {
      await using at = await open();
      await write(at.store, set("a/1", [], 1));
      const preconditions = [{ kind: "members", scope: SHARED_SCOPE, prefix: "a/", sequence: 1 } as const];
      const outcomes = await Promise.all(
        ["s", "t", "u"].map((name) =>
          at.store.commit(commitBy(name, 1, { preconditions, patches: [set(`a/${name}`, [], 1)] })),
        ),
      );
      expect(outcomes.map(({ kind }) => kind)).toEqual(["committed", "rejected", "rejected"]);
    });

    test("[S126] a claim older than the feed is stale", async () => {
      await using at = await open({ changesKept: 5 });
      for (let n = 0; n < 7; n++) await write(at.store, set("b", [], n));
      expect(await claiming(at.store, "s", "a/", 1)).toMatchObject({ class: "stale", reason: "read-moved" });
      expect(await claiming(at.store, "s", "a/", 6)).toMatchObject({ kind: "committed" });
    });
  });
}

function utf8(text: string): string {
  return [...new TextEncoder().encode(text)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
