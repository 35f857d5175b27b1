import fc from "fast-check";
import { describe, expect, test } from "#test";
import { SeededRandom } from "../../../src/host/seeded-random.ts";
import type { Json } from "../../../src/message/json.ts";
import type { CommitRequest } from "../../../src/store/commit.ts";
import type { PathOperation } from "../../../src/store/path-operation.ts";
import { rejected } from "../../../src/store/rejection.ts";
import { DOCUMENTS, PlainAccess, type Run, randomProgram } from "./random-program.ts";
import { DOC, fate, quiet, refusal, setup } from "./replica-setup.ts";

/** A document of that many keys. */
function wide(keys: number): { [key: string]: Json } {
  return Object.fromEntries(Array.from({ length: keys }, (_, i) => [`k${i}`, i]));
}

describe("requests of a transaction", () => {
  test("[S16] a sent request does not change when the caller reuses its path", async () => {
    const { here, there } = await setup();
    await here.put(DOC, [], { a: 1, b: [2] });
    await there.replica.load([DOC]);
    const transaction = here.replica.transaction();
    const path: string[] = [];
    transaction.read(DOC, path, "shallow");
    path.push("a");
    transaction.write(DOC, path, 5);
    path[0] = "b";
    transaction.splice(DOC, path, 1, 0, [3]);
    const arrived = here.line.arrived.length;
    const commit = transaction.commit();
    path.unshift("elsewhere");
    expect(fate(await commit.outcome)).toBe("committed");
    expect(here.line.arrived[arrived]?.reads.map((read) => read.path)).toEqual([[], [], ["b"]]);
    await there.replica.catchUp();
    expect(here.replica.peek(DOC)).toEqual({ a: 5, b: [2, 3] });
    expect(there.replica.peek(DOC)).toEqual({ a: 5, b: [2, 3] });
  });

  test("[S168] a sent request is frozen and does not change with later writes", async () => {
    const { here } = await setup();
    const sent: { readonly request: CommitRequest; readonly text: string }[] = [];
    here.line.plan = ({ request }) => {
      if (request?.admitted) sent.push({ request, text: JSON.stringify(request.patches) });
      return {};
    };
    for (const ref of DOCUMENTS) await here.put(ref, [], { n: 0, m: { x: 0 }, list: [1, { k: 1 }, { k: 2 }] });
    const seeds = fc.array(fc.integer({ min: 1, max: 1_000_000 }), { minLength: 2, maxLength: 8 });
    const commitAll = async (seedsOfOne: readonly number[]) => {
      sent.length = 0;
      for (const seed of seedsOfOne) {
        const transaction = here.replica.transaction();
        const run: Run = { seen: [], state: 0 };
        for (const step of randomProgram(new SeededRandom(seed))) step(transaction, run);
        transaction.commit();
      }
      await here.replica.settled();
      for (const { request, text } of sent) {
        expect(JSON.stringify(request.patches)).toBe(text);
        const operations = request.patches.flatMap((patch) => patch.operations);
        for (const operation of operations) expect(isDeeplyFrozen(operation)).toBe(true);
      }
    };
    await fc.assert(fc.asyncProperty(seeds, commitAll), { numRuns: 200 });
  });
});

/** Whether all values that an operation writes are frozen. */
function isDeeplyFrozen(operation: PathOperation): boolean {
  if (operation.op === "delete") return true;
  const isFrozen = (value: Json): boolean =>
    typeof value !== "object" || value === null || (Object.isFrozen(value) && Object.values(value).every(isFrozen));
  return operation.op === "set" ? isFrozen(operation.value) : operation.insert.every(isFrozen);
}

describe("a transaction's own reads", () => {
  test("[S40] a transaction's reads see its own writes, in any order of writing", async () => {
    const { here } = await setup();
    for (const ref of DOCUMENTS) await here.put(ref, [], { n: 0, m: { x: 0 }, list: [1, { k: 1 }, { k: 2 }] });
    const before = new Map(DOCUMENTS.map((ref) => [ref.id, here.replica.peek(ref) as Json]));
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000_000 }), (seed) => {
        const random = new SeededRandom(seed);
        using transaction = here.replica.transaction();
        const plain = new PlainAccess(before);
        const [seen, expected]: [Run, Run] = [
          { seen: [], state: 0 },
          { seen: [], state: 0 },
        ];
        // Several programs in one transaction: up to fifty writes, past every threshold of the draft.
        for (const step of Array.from({ length: 1 + random.below(10) }, () => randomProgram(random)).flat()) {
          step(transaction, seen);
          step(plain, expected);
          for (const ref of DOCUMENTS) {
            if (random.below(3) === 0) expect(transaction.read(ref)).toEqual(plain.read(ref, []));
          }
        }
        expect(seen).toEqual(expected);
        for (const ref of DOCUMENTS) expect(transaction.read(ref)).toEqual(plain.read(ref, []));
      }),
      { numRuns: 300 },
    );
  });

  test("[S40] a container that was read can still be written into", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: { b: 1 } });
    using transaction = here.replica.transaction();
    transaction.write(DOC, ["a", "b"], 2);
    const first = transaction.read(DOC);
    transaction.write(DOC, ["a", "b"], 3);
    transaction.write(DOC, ["a", "c"], 4);
    expect(first).toEqual({ a: { b: 2 } });
    expect(transaction.read(DOC)).toEqual({ a: { b: 3, c: 4 } });
    expect(here.replica.peek(DOC)).toEqual({ a: { b: 1 } });
  });

  test("[S40] an array that grows in a transaction has its new length", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { list: [0] });
    const transaction = here.replica.transaction();
    for (let i = 1; i < 5; i++) transaction.write(DOC, ["list", String(i)], i);
    transaction.write(DOC, ["made"], []);
    for (let i = 0; i < 3; i++) transaction.write(DOC, ["made", String(i)], i);
    transaction.commit();
    expect(here.replica.peek(DOC)).toEqual({ list: [0, 1, 2, 3, 4], made: [0, 1, 2] });
  });

  test("[S199] a document created by the transaction is written into without a load", async () => {
    const { here } = await setup();
    const transaction = here.replica.transaction();
    transaction.write(DOC, [], { list: [] });
    transaction.write(DOC, ["list", "0"], "a");
    transaction.write(DOC, ["n"], 1);
    expect(transaction.read(DOC)).toEqual({ list: ["a"], n: 1 });
    transaction.commit();
    expect(here.replica.loadGeneration).toBe(0);
    expect(here.replica.peek(DOC)).toEqual({ list: ["a"], n: 1 });
  });

  test("[S40] keys named like members of Object are data", async () => {
    const { here } = await setup();
    await here.put(DOC, [], {});
    for (const key of ["__proto__", "constructor", "toString"]) {
      const transaction = here.replica.transaction();
      expect(transaction.read(DOC, [key])).toBe(undefined);
      transaction.write(DOC, [key], { x: 1 });
      expect(transaction.read(DOC, [key, "x"])).toBe(1);
      transaction.commit();
      expect(here.replica.peek(DOC, [key, "x"])).toBe(1);
    }
    await quiet();
    expect(Object.keys(here.replica.peek(DOC) as object)).toEqual(["__proto__", "constructor", "toString"]);
    expect(({} as { x?: number }).x).toBe(undefined);
  });
});

describe("values", () => {
  test("[S41] a returned value is deeply frozen and never changes", async () => {
    const { here, there } = await setup();
    const given = { a: { b: [1, { c: 2 }] }, n: 0 };
    await here.put(DOC, [], given);
    given.a.b.push(9);
    const handed: (Json | undefined)[] = [here.replica.peek(DOC), here.replica.peek(DOC, ["a", "b"])];
    here.write(DOC, ["a", "b", "0"], 5);
    const transaction = here.replica.transaction();
    transaction.write(DOC, ["a", "d"], {});
    handed.push(transaction.read(DOC), transaction.read(DOC, ["a"], "shallow"));
    transaction.splice(DOC, ["a", "b"], 0, 1, [7]);
    transaction.commit();
    await quiet();
    await there.put(DOC, ["n"], 3);
    handed.push(
      ...here.notifications.flatMap(({ changes }) => changes.flatMap(({ before, after }) => [before, after])),
    );
    expect(handed.slice(0, 4)).toEqual([
      { a: { b: [1, { c: 2 }] }, n: 0 },
      [1, { c: 2 }],
      { a: { b: [5, { c: 2 }], d: {} }, n: 0 },
      { b: [5, { c: 2 }], d: {} },
    ]);
    expect(here.replica.peek(DOC)).toEqual({ a: { b: [7, { c: 2 }], d: {} }, n: 3 });
    const walk = (value: Json | undefined): void => {
      if (typeof value !== "object" || value === null) return;
      expect(Object.isFrozen(value)).toBe(true);
      for (const child of Object.values(value)) walk(child);
    };
    for (const value of handed) walk(value);
  });

  test("[S42] an equal copy causes no change and keeps the identity of the value", async () => {
    const { here, there } = await setup();
    await here.put(DOC, [], { a: { b: [1, 2] }, c: { d: 1 }, e: 1 });
    const before = here.replica.peek(DOC) as { [key: string]: Json };
    here.write(DOC, ["a"], { b: [1, 2] });
    expect(here.replica.peek(DOC)).toBe(before);
    here.write(DOC, [], { e: 2, c: { d: 1 }, a: { b: [1, 2] } });
    const after = here.replica.peek(DOC) as { [key: string]: Json };
    expect(after).not.toBe(before);
    expect([after["a"], after["c"]]).toEqual([before["a"], before["c"]]);
    expect(after["a"]).toBe(before["a"]);
    expect(after["c"]).toBe(before["c"]);
    await quiet();
    // The same value as a whole, from another process.
    await there.put(DOC, [], { a: { b: [1, 2] }, c: { d: 9 }, e: 2 });
    const integrated = here.replica.peek(DOC) as { [key: string]: Json };
    expect(integrated["c"]).toEqual({ d: 9 });
    expect(integrated["a"]).toBe(before["a"]);
  });

  test("[S42] values left equal by a rollback or a rebase keep their identity", async () => {
    const { here, there } = await setup();
    await here.put(DOC, [], { list: [{ x: 1 }], mine: 0, theirs: 0 });
    const commits = here.hold("commit", "arrives");
    const transaction = here.replica.transaction();
    transaction.splice(DOC, ["list"], 1, 0, [{ x: 2 }]);
    transaction.commit();
    here.write(DOC, ["mine"], 1);
    const list = here.replica.peek(DOC, ["list"]);
    here.told();
    await there.put(DOC, ["theirs"], 1);
    await there.put(DOC, ["mine"], 5);
    expect(here.replica.peek(DOC, ["list"])).toBe(list);
    expect(here.told()).toEqual([["integrate", "doc/theirs", 0, 1]]);
    here.next("commit", { instead: rejected("permanent", "document-exists", "planted") });
    const fallen = here.write(DOC, ["theirs"], 9);
    commits.open();
    expect(fate(await fallen.outcome)).toBe("permanent document-exists");
    expect(here.replica.peek(DOC, ["list"])).toBe(list);
    expect(here.told()).toEqual([
      ["commit", "doc/theirs", 1, 9],
      ["revert", "doc/theirs", 9, 1],
    ]);
  });

  test("[S42] a reload keeps the identity of unchanged values", async () => {
    const { here, there } = await setup({ changesKept: 2 });
    await here.put(DOC, [], { a: { b: 1 }, n: 0 });
    const a = here.replica.peek(DOC, ["a"]);
    const feed = here.hold("changesSince", "arrives");
    for (let n = 1; n <= 5; n++) await there.put(DOC, ["n"], n);
    feed.open();
    await here.replica.catchUp();
    expect(here.replica.peek(DOC)).toEqual({ a: { b: 1 }, n: 5 });
    expect(here.replica.peek(DOC, ["a"])).toBe(a);
  });

  test("[S43] a value that is not pure JSON is refused with its place", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: 1 });
    using transaction = here.replica.transaction();
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    const bad: [unknown, string][] = [
      [undefined, "the value must be a JSON value, got undefined"],
      [{ x: { y: [0, Number.NaN] } }, "the value at /x/y/1 must be a finite number"],
      [{ x: Number.NEGATIVE_INFINITY }, "the value at /x must be a finite number, got -Infinity"],
      [[new Date()], "the value at /0 must be a plain object"],
      [{ x: () => 1 }, "the value at /x must be a JSON value, got a function"],
      [{ x: 1n }, "the value at /x must be a JSON value, got a BigInt"],
      // biome-ignore lint/suspicious/noSparseArray: that is the point
      [{ x: [1, , 2] }, "the value at /x/1 is a hole"],
      [{ "a\0": 1 }, "key must not contain NUL"],
      [{ x: "\ud800" }, "the value at /x must not contain NUL or a lone surrogate"],

      [cycle, "is nested deeper than 64, or contains itself"],
    ];
    for (const [value, message] of bad) {
      expect(refusal(() => transaction.write(DOC, ["a"], value))).toContain(message);
      expect(refusal(() => transaction.write(DOC, ["a"], value))).toMatch(/cannot write \S*doc \/a: the value /);
      expect(refusal(() => transaction.write(DOC, ["a"], value))).toContain("STORE_MISUSE");
    }
    expect(refusal(() => transaction.write(DOC, ["b\0"], 1))).toContain("a key must not contain NUL");
    expect(transaction.read(DOC)).toEqual({ a: 1 });
  });

  test("[S200] an undefined field is left out, whether or not it had a value before", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: undefined, b: { c: undefined } } as never);
    expect(here.replica.peek(DOC)).toEqual({ b: {} });
    expect(Object.keys(here.replica.peek(DOC) as object)).toEqual(["b"]);
    await here.put(DOC, [], { a: 1, b: { c: 2, d: 3 } });
    await here.put(DOC, [], { a: undefined, b: { c: undefined, d: 3 } } as never);
    expect(Object.keys(here.replica.peek(DOC) as object)).toEqual(["b"]);
    expect(here.replica.peek(DOC)).toEqual({ b: { d: 3 } });
    using transaction = here.replica.transaction();
    expect(refusal(() => transaction.write(DOC, ["b"], [undefined]))).toContain("got undefined");
  });

  test("[S201] -0 is stored as 0 at any place and is no change of 0", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { fresh: { x: -0, list: [1, -0] }, n: -0 });
    const kept = here.replica.peek(DOC);
    expect(kept).toEqual({ fresh: { x: 0, list: [1, 0] }, n: 0 });
    await here.put(DOC, [], { fresh: { x: -0, list: [1, -0] }, n: -0 });
    await here.put(DOC, ["n"], -0);
    expect(here.replica.peek(DOC)).toBe(kept);
    await here.put(DOC, ["fresh", "list"], [-0, 1, -0]);
    expect(here.replica.peek(DOC, ["fresh", "list"])).toEqual([0, 1, 0]);
    const wide = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`k${i}`, i]));
    await here.put(DOC, ["fresh"], wide);
    await here.put(DOC, ["fresh"], { ...wide, k0: -0, k7: -0 });
    expect(here.replica.peek(DOC, ["fresh"])).toEqual({ ...wide, k7: 0 });
  });

  test("[S200] symbols and non-enumerable fields are not copied, in narrow and wide objects", async () => {
    const { here } = await setup();
    const wide = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, i]));
    for (const value of [{ a: 1 }, wide]) {
      await here.put(DOC, [], value);
      const next = { ...value, more: 2 };
      const given = Object.defineProperty({ ...next, [Symbol("s")]: 4 }, "hidden", { value: 3, enumerable: false });
      for (const path of [[], ["fresh"]]) {
        await here.put(DOC, path, given);
        expect(Reflect.ownKeys(here.replica.peek(DOC, path) as object)).toEqual(Object.keys(next));
      }
    }
  });

  test("[S43] keys that an object gains during the copy are not stored", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: 1, gone: 2 });
    const given: { [key: string]: Json } = {};
    const a = () => {
      given["later"] = 3;
      return 1;
    };
    Object.defineProperty(given, "a", { get: a, enumerable: true });
    await here.put(DOC, [], given);
    expect(Object.keys(here.replica.peek(DOC) as object)).toEqual(["a"]);
  });

  test("[S43] no document gets deeper than the limit, by any combination of writes", async () => {
    const { here } = await setup();
    await here.put(DOC, [], {});
    const transaction = here.replica.transaction();
    const path = Array.from({ length: 63 }, () => "d");
    for (let depth = 1; depth <= 63; depth++) transaction.write(DOC, path.slice(0, depth), {});
    expect(refusal(() => transaction.write(DOC, [...path, "d"], {}))).toContain("nested deeper than 64");
    transaction.write(DOC, [...path, "leaf"], 1);
    expect(await transaction.commit().outcome).toMatchObject({ kind: "committed" });
  });

  test("[S43] invalid names are refused before a call of the store", async () => {
    const { here } = await setup();
    using transaction = here.replica.transaction();
    for (const ref of [
      { scope: "space", id: "a\0b" },
      { scope: "\udc00", id: "a" },
    ]) {
      expect(refusal(() => transaction.read(ref))).toContain("STORE_MISUSE: a document's scope and id");
      expect(refusal(() => transaction.write(ref, [], 1))).toContain("STORE_MISUSE");
    }
    expect(here.replica.loadGeneration).toBe(0);
  });

  test("[S44] a finished transaction refuses every call, and an aborted one has no effect", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: 1 });
    here.told();
    const transaction = here.replica.transaction();
    transaction.write(DOC, ["a"], 2);
    transaction.abort();
    transaction.abort();
    expect(refusal(() => transaction.read(DOC))).toContain("the transaction is aborted");
    expect(refusal(() => transaction.commit())).toContain("the transaction is aborted");
    const committed = here.replica.transaction();
    committed.commit();
    expect(refusal(() => committed.write(DOC, ["a"], 2))).toContain("the transaction is committed");
    expect(refusal(() => committed.entries)).toContain("the transaction is committed");
    expect(here.replica.peek(DOC)).toEqual({ a: 1 });
    expect(here.told()).toEqual([]);
  });

  test("[S45] a write without a container is refused with the missing place", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: 1, list: [1] });
    using transaction = here.replica.transaction();
    expect(refusal(() => transaction.write(DOC, ["a", "b"], 1))).toBe(
      "STORE_MISUSE: cannot write doc /a/b: there is no container at doc /a; write that first",
    );
    expect(refusal(() => transaction.write(DOC, ["x", "y"], 1))).toContain("no container at doc /x");
    expect(refusal(() => transaction.write(DOC, ["list", "2"], 1))).toContain("the array takes the indexes 0 to 1");
    expect(refusal(() => transaction.write(DOC, ["list", "01"], 1))).toContain("the array takes the indexes 0 to 1");
    expect(refusal(() => transaction.remove(DOC, ["list", "0"]))).toContain("it is an array element; use splice");
    expect(refusal(() => transaction.splice(DOC, ["a"], 0, 0, []))).toContain("there is no array");
    expect(refusal(() => transaction.splice(DOC, ["list"], 1, 1, []))).toContain("it has 1 elements");
    transaction.remove(DOC, ["nothing"]);
    expect(transaction.read(DOC)).toEqual({ a: 1, list: [1] });
  });

  test("[S46] a write without an effect causes no change, no notification and no commit", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: { b: 1 }, list: [1, 2] });
    here.told();
    const arrived = here.arrived.length;
    const transaction = here.replica.transaction();
    transaction.write(DOC, ["a", "b"], 1);
    transaction.write(DOC, ["a"], { b: 1 });
    transaction.write(DOC, ["a"], { b: 2 });
    transaction.write(DOC, ["a"], { b: 1 });
    transaction.splice(DOC, ["list"], 0, 2, [1, 2]);
    transaction.splice(DOC, ["list"], 1, 0, []);
    transaction.remove(DOC, ["x"]);
    expect(await transaction.commit().outcome).toMatchObject({ kind: "committed" });
    expect(here.told()).toEqual([]);
    expect(here.arrived.length).toBe(arrived);
  });
});

describe("a single write", () => {
  test("[S46] a write is no change if it was undone, or if another commit has made it meanwhile", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: 1 });
    const back = here.replica.transaction();
    back.write(DOC, [], { a: 2 });
    back.write(DOC, [], { a: 1 });
    here.told();
    await back.commit().outcome;
    expect(here.told()).toEqual([]);
    const late = here.replica.transaction();
    late.write(DOC, [], { a: 3 });
    await here.put(DOC, ["a"], 3);
    here.told();
    await late.commit().outcome;
    expect(here.told()).toEqual([]);
  });
});

describe("the cost of a write", () => {
  test("[S71] a write into a wide document that no reader holds copies no container", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { ...wide(3_000), side: { x: 1 } });
    // The load, or the write that made it, handed the whole out: one copy.
    here.write(DOC, ["k1"], -1);
    const document = here.replica.place(DOC);
    const root = document.value;
    for (let i = 0; i < 100; i++) {
      const transaction = here.replica.transaction();
      expect(transaction.read(DOC, [`k${i}`])).toBe(i === 1 ? -1 : i);
      transaction.write(DOC, [`k${i}`], i + 1);
      transaction.write(DOC, [`k${i + 200}`], i);
      transaction.write(DOC, ["side", "x"], i);
      transaction.commit();
    }
    await quiet();
    expect(document.value).toBe(root);
    // A holder of a part costs a copy of that part.
    const side = here.replica.peek(DOC, ["side"]);
    here.write(DOC, ["side", "x"], -5);
    expect(document.value).toBe(root);
    expect(side).toEqual({ x: 99 });
  });
});
