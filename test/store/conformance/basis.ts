/** Node basis rows: the reads of a node's last run, and whether they are still current. */
import { describe, expect, test } from "#test";
import type { Path } from "../../../src/message/path.ts";
import { type NodeBasis, THIS_COMMIT } from "../../../src/store/commit.ts";
import type { RecordedBasis, Store } from "../../../src/store/store.ts";
import { commitBy, committed, ref, remove, SPACE, set, write } from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

type Depth = "deep" | "shallow";

function basisOf(node: string, sequence: number, ...reads: [string, Path, Depth][]): NodeBasis {
  const inputs = reads.map(([id, path, depth]) => ({ ...ref(id), sequence, reads: [{ path, depth }] }));
  return { node, fingerprint: `${node} v1`, inputs };
}

async function record(store: Store, localSequence: number, ...basis: NodeBasis[]): Promise<void> {
  committed(await store.commit(commitBy("recorder", localSequence, { basis })));
}

/** For each node, the documents among its inputs that have moved. */
async function moved(store: Store, ...nodes: string[]): Promise<{ [node: string]: string[] }> {
  const recorded = await store.basis(SPACE, nodes);
  const movedIn = (inputs: RecordedBasis["inputs"]) => inputs.filter((input) => input.moved).map((input) => input.id);
  return Object.fromEntries(recorded.map(({ node, inputs }) => [node, movedIn(inputs)]));
}

/** The answer with the inputs of each node in the order of their ids. */
async function recordedBy(store: Store, nodes: string[], space = SPACE): Promise<RecordedBasis[]> {
  const recorded = await store.basis(space, nodes);
  return recorded.map((basis) => ({ ...basis, inputs: [...basis.inputs].sort((a, b) => (a.id < b.id ? -1 : 1)) }));
}

export function basisCases(open: OpenStore): void {
  describe("basis", () => {
    test("[S170] an input written by the commit that records it has not changed until the next write", async () => {
      await using at = await open();
      committed(await at.store.commit(commitBy("s", 1, { patches: [set("a", [], 1)] })));
      const basis = [basisOf("n", THIS_COMMIT, ["a", [], "deep"])];
      committed(await at.store.commit(commitBy("s", 2, { patches: [set("a", [], 2)], basis })));
      expect(await moved(at.store, "n")).toEqual({ n: [] });
      expect((await at.store.basis(SPACE, ["n"]))[0]?.inputs[0]?.sequence).toBe(2);
      committed(await at.store.commit(commitBy("s", 3, { patches: [set("a", [], 3)] })));
      expect(await moved(at.store, "n")).toEqual({ n: ["a"] });
    });

    test("[S170] a basis row has the sequence of its stored output, also if its own commit stores it", async () => {
      await using at = await open();
      const output = async (node: string) => (await at.store.basis(SPACE, [node]))[0]?.output;
      const patches = [set("out", [], 1)];
      committed(
        await at.store.commit(commitBy("s", 1, { patches, basis: [{ ...basisOf("n", 0), output: THIS_COMMIT }] })),
      );
      expect(await output("n")).toBe(1);
      committed(await at.store.commit(commitBy("s", 2, { patches: [set("other", [], 1)] })));
      await record(at.store, 1, { ...basisOf("n", 0), output: 2 }, basisOf("without", 0));
      expect([await output("n"), await output("without")]).toEqual([2, undefined]);
    });

    test("[S18] basis rows are returned as recorded, in the order of the request, without missing nodes", async () => {
      await using at = await open();
      const plain = basisOf("plain", 0);
      const full: NodeBasis = {
        node: "full",
        fingerprint: "f",
        settings: { debounceMs: 5, nested: [null] },
        inputs: [
          { scope: "user:1", id: "", sequence: 0, reads: [{ path: [""], depth: "deep" }] },
          {
            ...ref("a"),
            sequence: 0,
            reads: [
              { path: [], depth: "shallow" },
              { path: ["x", "y"], depth: "deep" },
              { path: ["x/y"], depth: "deep" },
            ],
          },
        ],
      };
      await record(at.store, 1, plain, full);
      const expected = [{ ...full, inputs: full.inputs.map((input) => ({ ...input, moved: false })) }, plain];
      expect(await recordedBy(at.store, ["full", "none", "plain"])).toEqual(expected);
      const store = await at.reopen();
      expect(await recordedBy(store, ["full", "none", "plain"])).toEqual(expected);
      expect(await recordedBy(store, ["full"], "other")).toEqual([]);
    });

    test("[S18] a basis row is replaced as a whole and removed by name", async () => {
      await using at = await open();
      await record(at.store, 1, { ...basisOf("n", 0, ["a", [], "deep"], ["b", [], "deep"]), settings: 1 });
      await record(at.store, 2, { ...basisOf("n", 0, ["c", ["k"], "shallow"]), fingerprint: "v2" });
      expect(await at.store.basis(SPACE, ["n"])).toEqual([
        {
          node: "n",
          fingerprint: "v2",
          inputs: [{ ...ref("c"), sequence: 0, reads: [{ path: ["k"], depth: "shallow" }], moved: false }],
        },
      ]);
      await record(at.store, 3, basisOf("stays", 0));
      committed(await at.store.commit(commitBy("recorder", 4, { basisRemoved: ["n", "never was"] })));
      expect((await at.store.basis(SPACE, ["n", "stays"])).map((basis) => basis.node)).toEqual(["stays"]);
    });

    test("[S18] basis rows come in the order in which their nodes were requested", async () => {
      await using at = await open();
      await record(at.store, 1, ...["b", "c", "a", "d"].map((node) => basisOf(node, 0)));
      const asked = async (...nodes: string[]) => (await at.store.basis(SPACE, nodes)).map(({ node }) => node);
      expect(await asked("d", "a", "none", "c", "b")).toEqual(["d", "a", "c", "b"]);
      expect(await asked("b", "a")).toEqual(["b", "a"]);
    });

    test("[S19] an input has changed if a later write touches its reads", async () => {
      await using at = await open();
      const { sequence } = await write(
        at.store,
        set("doc", [], { a: { b: { c: 1 } }, x: 1, "a/b": 1 }),
        set("other", [], {}),
      );
      await record(
        at.store,
        1,
        basisOf("deep", sequence, ["doc", ["a", "b"], "deep"]),
        basisOf("shallow", sequence, ["doc", ["a"], "shallow"]),
        basisOf("same text", sequence, ["doc", ["a/b"], "deep"]),
        basisOf("sibling", sequence, ["doc", ["x"], "deep"]),
        basisOf("two", sequence, ["other", [], "deep"], ["doc", ["a", "b", "c"], "shallow"]),
      );
      const nodes = ["deep", "shallow", "same text", "sibling", "two"];
      const none = { deep: [], shallow: [], "same text": [], sibling: [], two: [] };
      expect(await moved(at.store, ...nodes)).toEqual(none);
      await write(at.store, set("doc", ["a", "b", "c"], 2));
      const touched = { ...none, deep: ["doc"], two: ["doc"] };
      expect(await moved(at.store, ...nodes)).toEqual(touched);
      expect(await moved(await at.reopen(), ...nodes)).toEqual(touched);
    });

    test("[S19] an input of a labelled document counts as changed while it is labelled", async () => {
      await using at = await open();
      const { sequence } = await write(at.store, set("doc", [], { x: 1 }), set("other", [], 1));
      await record(at.store, 1, basisOf("n", sequence, ["doc", ["x"], "deep"], ["other", [], "deep"]));
      const label = async (session: string, labels: readonly string[]) =>
        committed(await at.store.commit(commitBy(session, 1, { labels: [{ ...ref("doc"), path: ["x"], labels }] })));
      await label("labeller", ["secret"]);
      expect(await moved(at.store, "n")).toEqual({ n: ["doc"] });
      await label("another", []);
      expect(await moved(at.store, "n")).toEqual({ n: [] });
    });

    test("[S19] writes of the session that recorded a basis change its inputs too", async () => {
      await using at = await open();
      const { sequence } = await write(at.store, set("doc", [], { x: 1 }));
      await record(at.store, 1, basisOf("n", sequence, ["doc", ["x"], "deep"]));
      committed(await at.store.commit(commitBy("recorder", 2, { patches: [set("doc", ["x"], 2)] })));
      expect(await moved(at.store, "n")).toEqual({ n: ["doc"] });
    });

    test("[S19] a write up to the sequence seen has not changed an input; recording again resets it", async () => {
      await using at = await open();
      await write(at.store, set("doc", [], { x: 1 }));
      const second = await write(at.store, set("doc", ["x"], 2));
      await record(at.store, 1, basisOf("seen", second.sequence, ["doc", ["x"], "deep"]));
      await record(at.store, 2, basisOf("behind", second.sequence - 1, ["doc", ["x"], "deep"]));
      expect(await moved(at.store, "seen", "behind")).toEqual({ seen: [], behind: ["doc"] });
      await record(at.store, 3, basisOf("behind", second.sequence, ["doc", ["x"], "deep"]));
      expect(await moved(at.store, "behind")).toEqual({ behind: [] });
    });

    test("[S19] inputs of absent and deleted documents change like others", async () => {
      await using at = await open();
      const { sequence } = await write(at.store, set("there", [], { x: 1 }));
      await record(
        at.store,
        1,
        basisOf("absent", sequence, ["new", ["k"], "deep"]),
        basisOf("present", sequence, ["there", ["x"], "shallow"]),
      );
      expect(await moved(at.store, "absent", "present")).toEqual({ absent: [], present: [] });
      await write(at.store, set("new", [], {}));
      await write(at.store, remove("there", []));
      expect(await moved(at.store, "absent", "present")).toEqual({ absent: ["new"], present: ["there"] });
    });

    test("[S19] an input older than the change log counts as changed", async () => {
      await using at = await open({ changesKept: 5 });
      const { sequence } = await write(at.store, set("doc", [], { x: 1 }), set("still", [], 1));
      await record(
        at.store,
        1,
        basisOf("behind", sequence, ["doc", ["x"], "deep"]),
        basisOf("untouched", sequence, ["still", [], "deep"]),
      );
      await write(at.store, set("doc", ["x"], 2));
      await Promise.all(Array.from({ length: 500 }, (_, n) => write(at.store, set("doc", ["y"], n))));
      expect(await moved(at.store, "behind", "untouched")).toEqual({ behind: ["doc"], untouched: [] });
    });
  });
}
