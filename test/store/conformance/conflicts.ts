/** Which reads conflict with which writes. */
import { describe, expect, test } from "#test";
import type { Path } from "../../../src/message/path.ts";
import type { DocumentPatch } from "../../../src/store/commit.ts";
import type { ReadDepth } from "../../../src/store/path-operation.ts";
import { commitBy, committed, read, remove, set, splice, write } from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

const DOCUMENT = { a: { b: { c: { d: 1 } }, x: 1 }, "a/b": 1, list: [1, [2, [3]]], other: { y: 1 } };

/** A read, a write that conflicts with it, and one beside it that does not. */
interface Pair {
  readonly depth: ReadDepth;
  readonly path: Path;
  readonly conflicts: DocumentPatch;
  readonly passes: DocumentPatch;
}

const WRITE_ABOVE = set("doc", ["a"], {});
const WRITE_AT = set("doc", ["a", "b"], 0);
const WRITE_CHILD = set("doc", ["a", "b", "new"], 0);
const WRITE_GRANDCHILD = set("doc", ["a", "b", "c", "d"], 0);
const WRITE_ROOT = set("doc", [], {});
const DELETE_ROOT = remove("doc", []);
const DELETE_AT = remove("doc", ["a", "b"]);
const WRITE_SIBLING = set("doc", ["a", "x"], 0);
const WRITE_SAME_TEXT = set("doc", ["a/b"], 0);
const WRITE_LONGER_NAME = set("doc", ["a", "bb"], 0);
const WRITE_OTHER_DOCUMENT = set("elsewhere", ["a", "b"], 0);

const AT: Path = ["a", "b"];

const PAIRS: readonly Pair[] = [
  { depth: "deep", path: AT, conflicts: WRITE_ROOT, passes: WRITE_SIBLING },
  { depth: "deep", path: AT, conflicts: DELETE_ROOT, passes: WRITE_SAME_TEXT },
  { depth: "deep", path: AT, conflicts: WRITE_ABOVE, passes: WRITE_LONGER_NAME },
  { depth: "deep", path: AT, conflicts: WRITE_AT, passes: WRITE_OTHER_DOCUMENT },
  { depth: "deep", path: AT, conflicts: DELETE_AT, passes: set("doc", ["other", "y"], 0) },
  { depth: "deep", path: AT, conflicts: WRITE_CHILD, passes: remove("doc", ["a", "x"]) },
  { depth: "deep", path: AT, conflicts: WRITE_GRANDCHILD, passes: remove("doc", ["other"]) },
  { depth: "deep", path: [], conflicts: WRITE_GRANDCHILD, passes: WRITE_OTHER_DOCUMENT },
  { depth: "deep", path: ["a/b"], conflicts: WRITE_SAME_TEXT, passes: WRITE_AT },
  {
    depth: "deep",
    path: ["list", "0"],
    conflicts: splice("doc", ["list"], 1, 1, []),
    passes: set("doc", ["list", "1"], 0),
  },
  { depth: "deep", path: ["list"], conflicts: splice("doc", ["list", "1"], 0, 1, []), passes: WRITE_SIBLING },
  { depth: "shallow", path: AT, conflicts: WRITE_ROOT, passes: WRITE_GRANDCHILD },
  { depth: "shallow", path: AT, conflicts: WRITE_ABOVE, passes: WRITE_GRANDCHILD },
  { depth: "shallow", path: AT, conflicts: WRITE_AT, passes: WRITE_SAME_TEXT },
  { depth: "shallow", path: AT, conflicts: WRITE_CHILD, passes: WRITE_SIBLING },
  {
    depth: "shallow",
    path: AT,
    conflicts: remove("doc", ["a", "b", "c"]),
    passes: remove("doc", ["a", "b", "c", "d"]),
  },
  { depth: "shallow", path: [], conflicts: set("doc", ["new"], 0), passes: WRITE_SIBLING },
  {
    depth: "shallow",
    path: ["list"],
    conflicts: splice("doc", ["list"], 0, 0, [0]),
    passes: splice("doc", ["list", "1", "1"], 0, 1, []),
  },
  { depth: "reach", path: AT, conflicts: WRITE_ROOT, passes: WRITE_CHILD },
  { depth: "reach", path: AT, conflicts: DELETE_ROOT, passes: WRITE_GRANDCHILD },
  { depth: "reach", path: AT, conflicts: WRITE_ABOVE, passes: remove("doc", ["a", "b", "c"]) },
  { depth: "reach", path: AT, conflicts: WRITE_AT, passes: WRITE_SIBLING },
  { depth: "reach", path: AT, conflicts: DELETE_AT, passes: WRITE_SAME_TEXT },
  { depth: "reach", path: [], conflicts: DELETE_ROOT, passes: WRITE_ABOVE },
  {
    depth: "reach",
    path: ["list"],
    conflicts: splice("doc", ["list"], 0, 1, []),
    passes: set("doc", ["list", "0"], 0),
  },
];

export function conflictCases(open: OpenStore): void {
  describe("conflicts", () => {
    test("[S10] [S166] each depth of read conflicts with exactly its writes", async () => {
      await using at = await open();
      for (const [n, { depth, path, conflicts, passes }] of PAIRS.entries()) {
        const attempt = async (kind: string, patch: DocumentPatch) => {
          const { sequence } = await write(at.store, set("doc", [], DOCUMENT), set("elsewhere", [], { a: {} }));
          await write(at.store, patch);
          const outcome = await at.store.commit(
            commitBy(`pair ${n} ${kind}`, 1, { reads: [read("doc", path, sequence, depth)] }),
          );
          return outcome.kind === "committed" ? "committed" : `${outcome.class} ${outcome.reason}`;
        };
        const where = `${depth} read at ${JSON.stringify(path)}, case ${n}`;
        expect(await attempt("conflicts", conflicts), where).toBe("stale read-moved");
        expect(await attempt("passes", passes), where).toBe("committed");
      }
    });

    test("[S10] a write at or before the sequence of the read does not conflict", async () => {
      await using at = await open();
      await write(at.store, set("doc", [], { x: 0 }));
      const { sequence } = await write(at.store, set("doc", ["x"], 1));
      committed(await at.store.commit(commitBy("s", 1, { reads: [read("doc", ["x"], sequence)] })));
      expect(await at.store.commit(commitBy("s", 2, { reads: [read("doc", ["x"], sequence - 1)] }))).toMatchObject({
        class: "stale",
        reason: "read-moved",
      });
    });

    test("[S10] reading that a document is absent conflicts with its creation", async () => {
      await using at = await open();
      const { sequence } = await write(at.store, set("doc", [], {}));
      const request = commitBy("s", 1, { reads: [read("new", ["a", "b"], sequence)] });
      committed(await at.store.commit(request));
      await write(at.store, set("new", [], 1));
      expect(await at.store.commit({ ...request, localSequence: 2 })).toMatchObject({ reason: "read-moved" });
    });

    test("[S10] one conflicting write among many, for one of many reads, is enough", async () => {
      await using at = await open();
      const { sequence } = await write(at.store, set("one", [], {}), set("two", [], {}));
      for (let n = 0; n < 10; n++) await write(at.store, set("one", [`k${n}`], n), set("two", [`k${n}`], n));
      const reads = Array.from({ length: 5 }, (_, n) => read("one", [`other${n}`], sequence));
      committed(await at.store.commit(commitBy("s", 1, { reads })));
      const touched = [...reads, read("two", ["k7"], sequence)];
      expect(await at.store.commit(commitBy("s", 2, { reads: touched }))).toMatchObject({ reason: "read-moved" });
    });

    test("[S10] a rejected commit is not a write that conflicts", async () => {
      await using at = await open();
      const { sequence } = await write(at.store, set("doc", [], 0));
      await at.store.commit(commitBy("loser", 1, { patches: [set("doc", [], 1)], dependsOn: [99] }));
      committed(await at.store.commit(commitBy("s", 1, { reads: [read("doc", [], sequence)] })));
    });

    test("[S10] conflicts are found after the store was opened again", async () => {
      await using at = await open();
      const { sequence } = await write(at.store, set("doc", [], { x: 0, y: 0 }));
      await write(at.store, set("doc", ["x"], 1));
      const store = await at.reopen();
      committed(await store.commit(commitBy("s", 1, { reads: [read("doc", ["y"], sequence)] })));
      expect(await store.commit(commitBy("s", 2, { reads: [read("doc", ["x"], sequence)] }))).toMatchObject({
        reason: "read-moved",
      });
    });

    test("[S11] writes of the own session never conflict; those of another between them do", async () => {
      await using at = await open();
      const { sequence } = await write(at.store, set("doc", [], {}));
      const touch = (session: string, localSequence: number) =>
        at.store.commit(
          commitBy(session, localSequence, {
            reads: [read("doc", [], sequence)],
            patches: [set("doc", ["x"], localSequence)],
          }),
        );
      for (let n = 1; n <= 3; n++) committed(await touch("mine", n));
      expect(await touch("theirs", 1)).toMatchObject({ class: "stale", reason: "read-moved" });
      committed(await at.store.commit(commitBy("theirs", 2, { patches: [set("doc", ["y"], 0)] })));
      expect(await touch("mine", 4)).toMatchObject({ class: "stale", reason: "read-moved" });
    });

    test("[S22] a write through another store object conflicts like one through the same", async () => {
      await using at = await open();
      const other = await at.second();
      const { sequence } = await write(at.store, set("doc", [], { x: 0 }));
      await write(other, set("doc", ["x"], 1));
      const outcome = await at.store.commit(commitBy("s", 1, { reads: [read("doc", ["x"], sequence)] }));
      expect(outcome).toMatchObject({ class: "stale", reason: "read-moved" });
    });

    test("[S22] counters incremented through two store objects at once lose no increment", async () => {
      await using at = await open();
      const stores = [at.store, await at.second()];
      await write(at.store, set("counter", [], 0));
      const raise = async (session: string, n: number): Promise<void> => {
        const store = stores[n % 2]!;
        for (let attempt = 1; ; attempt++) {
          const { sequence, documents } = await store.load("home", [read("counter", [], 0)]);
          const next = (documents[0]?.value as number) + 1;
          const outcome = await store.commit(
            commitBy(session, attempt, { reads: [read("counter", [], sequence)], patches: [set("counter", [], next)] }),
          );
          if (outcome.kind === "committed") return;
          expect(outcome).toMatchObject({ class: "stale" });
        }
      };
      await Promise.all(Array.from({ length: 20 }, (_, n) => raise(`raiser ${n}`, n)));
      const { documents } = await at.store.load("home", [read("counter", [], 0)]);
      expect(documents[0]?.value).toBe(20);
    });
  });
}
