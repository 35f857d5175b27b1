import { describe, expect, test } from "#test";
import { NARROW_OPERATIONS_MAX, RECENT_WRITES_MAX } from "../../../src/limits.ts";
import type { Json } from "../../../src/message/json.ts";
import type { ReadClaim } from "../../../src/store/commit.ts";
import type { Transaction } from "../../../src/store/transaction.ts";
import { DOC, fate, OTHER, quiet, type Site, setup } from "./replica-setup.ts";

const START = { a: { x: 0, y: 0 }, b: 0, list: [{ k: 0 }, { k: 1 }] };

/** Runs two bodies that overlap in time in one replica; the second commits first. Returns the outcome of the first. */
async function overlapHere(first: (t: Transaction) => void, second: (t: Transaction) => void): Promise<string> {
  const { here } = await setup();
  await here.put(DOC, [], START);
  const arrived = here.arrived.length;
  const open = here.replica.transaction();
  first(open);
  const other = here.replica.transaction();
  second(other);
  expect(fate(await other.commit().outcome)).toBe("committed");
  const result = fate(await open.commit().outcome);
  // A conflict inside the process needs no call of the backend.
  if (result !== "committed") expect(here.arrived.length).toBe(arrived + 1);
  here.replica.checkInvariants();
  return result;
}

/** The same between two replicas, where the first has not heard of the second. */
async function overlapThere(first: (t: Transaction) => void, second: (t: Transaction) => void): Promise<string> {
  const { here, there } = await setup();
  await here.put(DOC, [], START);
  await there.replica.load([DOC]);
  const feed = here.hold("changesSince", "arrives");
  const other = there.replica.transaction();
  second(other);
  expect(fate(await other.commit().outcome)).toBe("committed");
  const late = here.replica.transaction();
  first(late);
  const commit = late.commit();
  await quiet();
  feed.open();
  const result = fate(await commit.outcome);
  await here.replica.catchUp();
  await there.replica.catchUp();
  expect(here.replica.peek(DOC)).toEqual(there.replica.peek(DOC));
  return result;
}

type Body = (transaction: Transaction) => void;

const write =
  (path: string[], value: Json): Body =>
  (t) =>
    t.write(DOC, path, value);
const remove =
  (path: string[]): Body =>
  (t) =>
    t.remove(DOC, path);
const splice =
  (index: number, removed: number, ...insert: Json[]): Body =>
  (t) =>
    t.splice(DOC, ["list"], index, removed, insert);
const readThenWrite =
  (path: string[], depth: "deep" | "shallow" = "deep"): Body =>
  (t) => {
    t.read(DOC, path, depth);
    t.write(DOC, ["c"], 1);
  };

const STALE = "stale read-moved";
const CASES: readonly [string, Body, Body, string][] = [
  ["[S54] a value that was read and then written by another", readThenWrite(["a", "x"]), write(["a", "x"], 1), STALE],
  ["[S54] a deep read and a write below it", readThenWrite(["a"]), write(["a", "x"], 1), STALE],
  ["[S54] a read below a replaced value", readThenWrite(["a", "x"]), write(["a"], { x: 5 }), STALE],
  ["[S54] a shallow read and a new key", readThenWrite(["a"], "shallow"), write(["a", "z"], 1), STALE],
  [
    "[S54] a shallow read and a write two levels below",
    readThenWrite([], "shallow"),
    write(["a", "x"], 1),
    "committed",
  ],
  ["[S54] a read beside a write", readThenWrite(["b"]), write(["a", "x"], 1), "committed"],
  ["[S54] a read of an absent value and its creation", readThenWrite(["z"]), write(["z"], 1), STALE],
  ["[S55] two blind writes to one key", write(["b"], 1), write(["b"], 2), "committed"],
  ["[S55] blind writes to two keys of one container", write(["a", "x"], 1), write(["a", "y"], 1), "committed"],
  ["[S55] a blind write and the replacement of its document", write([], { z: 1 }), write(["a", "x"], 1), "committed"],
  [
    "[S55] reading back one's own write",
    (t) => [t.write(DOC, ["b"], 1), t.read(DOC, ["b"])],
    write(["b"], 2),
    "committed",
  ],
  ["[S56] a write into a container that is replaced", write(["a", "x"], 1), write(["a"], {}), STALE],
  ["[S56] a write into a document that is removed", write(["b"], 1), remove([]), STALE],
  ["[S56] two appends to one array", write(["list", "2"], 1), write(["list", "2"], 2), STALE],
  ["[S56] an append and a splice", write(["list", "2"], 1), splice(0, 1), STALE],
  ["[S56] a splice and an append", splice(0, 1), write(["list", "2"], 2), STALE],
  ["[S56] two splices", splice(0, 1), splice(1, 1), STALE],
  ["[S56] a splice that moves and a write inside an element", splice(0, 0, 1), write(["list", "1", "k"], 9), STALE],
  [
    "[S56] a splice at the end and a write inside an element",
    splice(2, 0, 1),
    write(["list", "1", "k"], 9),
    "committed",
  ],
  ["[S56] a splice that replaces one element by one", splice(0, 1, 1), write(["list", "1", "k"], 9), "committed"],
  ["[S56] a write inside an element, and a splice", write(["list", "1", "k"], 9), splice(0, 0, 1), STALE],
  ["[S56] two removals of one key", remove(["a", "x"]), remove(["a", "x"]), STALE],
  [
    "[S56] a removal of a key that another creates",
    (t) => [t.remove(DOC, ["z"]), t.write(DOC, ["c"], 1)],
    write(["z"], 1),
    STALE,
  ],
  ["[S56] removals of two keys", remove(["a", "x"]), remove(["a", "y"]), "committed"],
];

describe("transactions that overlap", () => {
  for (const [name, first, second, expected] of CASES) {
    test(`${name}: ${expected}`, async () => {
      expect(await overlapHere(first, second)).toBe(expected);
      expect(await overlapThere(first, second)).toBe(expected);
    });
  }

  test("[S54] a read through many own writes sees an old state and is stale", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { n: 1, ...Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`k${i}`, 0])) });
    const open = here.replica.transaction();
    for (let i = 0; i < 12; i++) open.write(DOC, [`k${i}`], 1);
    here.write(DOC, ["n"], 2);
    open.write(DOC, ["n"], (open.read(DOC, ["n"]) as number) + 1);
    expect(fate(await open.commit().outcome)).toBe(STALE);
    expect(here.replica.peek(DOC, ["n"])).toBe(2);
  });

  test("[S206] a read that is too old to be checked counts as changed", async () => {
    const { here } = await setup({ changesKept: 2 * RECENT_WRITES_MAX });
    await here.put(DOC, [], { a: 0, n: 0 });
    const early = here.replica.transaction();
    early.read(DOC, ["a"]);
    early.write(DOC, ["c"], 1);
    for (let i = 1; i <= RECENT_WRITES_MAX + 1; i++) here.write(DOC, ["n"], i);
    const late = here.replica.transaction();
    late.read(DOC, ["a"]);
    late.write(DOC, ["d"], 1);
    here.write(DOC, ["n"], -1);
    expect(fate(await early.commit().outcome)).toBe(STALE);
    expect(fate(await late.commit().outcome)).toBe("committed");
  });

  test("[S54] reads in many places are all claimed, each once", async () => {
    const { here } = await setup();
    const keys = Array.from({ length: 40 }, (_, i) => `k${i}`);
    await here.put(DOC, [], Object.fromEntries(keys.map((key) => [key, 0])));
    const transaction = here.replica.transaction();
    for (const key of [...keys, ...keys]) transaction.read(DOC, [key]);
    for (const key of keys) transaction.read(DOC, [key], "shallow");
    transaction.write(OTHER, [], 1);
    transaction.commit();
    await quiet();
    const claims = claimsOf(here, DOC.id);
    expect(claims.length).toBe(80);
    expect(new Set(claims.map(({ path, depth }) => `${path} ${depth}`)).size).toBe(80);
  });
});

function claimsOf({ arrived }: Site, id: string): readonly ReadClaim[] {
  return arrived.at(-1)?.reads.filter((claim) => claim.id === id) ?? [];
}

describe("writes left out of a commit", () => {
  test("[S41] a value that was left out as equal is not changed by an earlier commit", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { list: [0], map: { x: 0 }, n: 0 });
    here.write(DOC, ["list", "0"], 1);
    here.write(DOC, ["map", "x"], 1);
    const late = here.replica.transaction();
    late.write(DOC, [], { list: [1], map: { x: 1 }, n: 1 });
    here.write(DOC, ["list", "0"], 2);
    here.write(DOC, ["map", "x"], 2);
    late.commit();
    expect(here.replica.peek(DOC)).toEqual({ list: [1], map: { x: 1 }, n: 1 });
  });

  test("[S57] replacing a wide document by a similar one sends the difference", async () => {
    const { here, there } = await setup();
    const wide: { [key: string]: Json } = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, i) => [`k${i}`, { n: i }]),
    );
    await here.put(DOC, [], wide);
    const next = { ...(here.replica.peek(DOC) as typeof wide), k5: { n: -1 }, fresh: 1 };
    delete (next as { k6?: Json }).k6;
    expect(fate(await here.write(DOC, [], next).outcome)).toBe("committed");
    expect(here.arrived.at(-1)?.patches).toEqual([
      {
        ...DOC,
        operations: [
          { op: "set", path: ["k5", "n"], value: -1 },
          { op: "set", path: ["fresh"], value: 1 },
          { op: "delete", path: ["k6"] },
        ],
      },
    ]);
    expect(claimsOf(here, "doc")).toEqual([{ ...DOC, path: [], depth: "deep", sequence: 1 }]);
    await there.replica.load([DOC]);
    expect(there.replica.peek(DOC)).toEqual(next);
  });

  test("[S57] a wide array that grew or shrank is sent as a splice", async () => {
    const { here } = await setup();
    const items = Array.from({ length: 100 }, (_, i) => ({ i }));
    await here.put(DOC, [], items);
    here.write(DOC, [], [...items.slice(0, 50), { i: -1 }, ...items.slice(50)]);
    here.write(DOC, [], [...items.slice(0, 10), ...items.slice(12)]);
    await quiet();
    expect(here.arrived.slice(1).map(({ patches }) => patches[0]?.operations)).toEqual([
      [{ op: "splice", path: [], index: 50, remove: 0, insert: [{ i: -1 }] }],
      [{ op: "splice", path: [], index: 10, remove: 41, insert: items.slice(12, 50) }],
    ]);
    expect(here.replica.peek(DOC)).toEqual([...items.slice(0, 10), ...items.slice(12)]);
  });

  test("[S57] too many differences, or another kind of value, are sent whole without a claim", async () => {
    const { here } = await setup();
    const wide = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, 0]));
    await here.put(DOC, [], wide);
    const many = {
      ...wide,
      ...Object.fromEntries(Array.from({ length: NARROW_OPERATIONS_MAX + 1 }, (_, i) => [`k${i}`, 1])),
    };
    for (const value of [many, [1], wide, 7, wide]) {
      await here.write(DOC, [], value).outcome;
      expect(here.arrived.at(-1)?.patches).toEqual([{ ...DOC, operations: [{ op: "set", path: [], value }] }]);
      expect(here.arrived.at(-1)?.reads).toEqual([]);
    }
  });

  test("[S58] a write left out as equal makes the commit stale if another session changes that value", async () => {
    const { here, there } = await setup();
    await here.put(DOC, [], { a: 5, b: 0 });
    await there.replica.load([DOC]);
    const feed = here.hold("changesSince", "arrives");
    await there.put(DOC, ["a"], 7);
    const transaction = here.replica.transaction();
    transaction.write(DOC, ["a"], 5);
    transaction.write(DOC, ["b"], 1);
    expect(fate(await transaction.commit().outcome)).toBe(STALE);
    feed.open();
    await here.replica.catchUp();
    expect(here.replica.peek(DOC)).toEqual({ a: 7, b: 0 });
  });

  test("[S58] a value that the commit itself wrote is not claimed", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: 1 });
    const transaction = here.replica.transaction();
    transaction.write(DOC, [], { a: 2, b: {} });
    transaction.write(DOC, ["b", "c"], 1);
    transaction.write(DOC, ["a"], 2);
    transaction.read(DOC);
    transaction.commit();
    await quiet();
    expect(here.arrived.at(-1)?.reads).toEqual([]);
  });
});
