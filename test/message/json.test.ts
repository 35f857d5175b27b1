import fc from "fast-check";
import { describe, expect, test } from "#test";
import { equal } from "../../src/message/equality.ts";
import { findImpurity, type JsonLimits } from "../../src/message/json.ts";
import { problemText } from "../../src/message/problem.ts";
import { json } from "./arbitraries.ts";

function problem(value: unknown, limits?: JsonLimits): string {
  const found = findImpurity(value, limits);
  if (found === undefined) throw new Error("accepted");
  return problemText(found);
}

/** `depth` nested arrays. */
function nest(depth: number): unknown {
  let value: unknown[] = [];
  for (let i = 1; i < depth; i++) value = [value];
  return value;
}

describe("values that are not JSON", () => {
  test("[M6] values that JSON would drop or change are refused", () => {
    class Point {
      x = 1;
    }
    const cases: [unknown, string][] = [
      [undefined, "must be a JSON value, got undefined"],
      [Number.NaN, "must be a finite number, got NaN"],
      [Number.POSITIVE_INFINITY, "must be a finite number, got Infinity"],
      [-0, "must not be -0"],
      [1n, "must be a JSON value, got a BigInt"],
      [() => 1, "must be a JSON value, got a function"],
      [Symbol("s"), "must be a JSON value, got a symbol"],
      [
        new Date(0),
        'must be a plain object, got an instance of "Date"; keep its toISOString() or its time in milliseconds',
      ],
      [new Map(), 'must be a plain object, got an instance of "Map"; keep Object.fromEntries(map)'],
      [new Point(), 'must be a plain object, got an instance of "Point"'],
      [new String("s"), 'must be a plain object, got an instance of "String"'],
      [new Uint8Array(1), 'must be a plain object, got an instance of "Uint8Array"'],
      [Object.create({ inherited: 1 }), "must be a plain object"],
      [new (class extends Array {})(), "must be a plain array"],
    ];
    for (const [value, expected] of cases) {
      expect(problem(value)).toContain(expected);
      expect(problem({ a: [value] })).toContain(`a[0]: ${expected}`);
    }
  });

  test("[M6] keys and properties that JSON does not write are refused", () => {
    expect(problem({ [Symbol("s")]: 1 })).toContain("symbol for a key");
    expect(problem(Object.defineProperty({}, "a", { get: () => 1, enumerable: true }))).toContain("got an accessor");
    expect(problem(Object.defineProperty([], 0, { get: () => 1, enumerable: true }))).toContain("got an accessor");
    expect(problem(Object.defineProperty({}, "a", { set: () => {}, enumerable: true }))).toContain("got an accessor");
    expect(problem(Object.defineProperty({}, "a", { value: 1 }))).toContain("not enumerable");
    expect(problem(Object.assign([1], { extra: 1 }))).toContain("properties besides its elements");
    expect(problem(Object.assign([1], { [Symbol("s")]: 1 }))).toContain("properties besides its elements");
  });

  test("[M6] arrays with holes are refused, huge ones at once", () => {
    // biome-ignore lint/suspicious/noSparseArray: the hole is the point.
    expect(problem([1, , 3])).toBe("[1]: is a hole: sparse arrays are not JSON");
    expect(problem(new Array(2 ** 32 - 1))).toContain("holds more than");
  });

  test("[M6] a cycle is refused at the place where it closes; a shared value is not a cycle", () => {
    const loop: { a: { b: unknown[] } } = { a: { b: [] } };
    loop.a.b.push(loop);
    expect(problem(loop)).toBe("a.b[0]: is a cycle: it contains itself");
    const shared = { x: 1 };
    expect(findImpurity({ a: shared, b: [shared, shared] })).toBe(undefined);
  });

  test("[M7] NUL and lone surrogates are refused in texts and in keys", () => {
    for (const text of ["\0", "a\0b", "\ud800", "\udc00x", "\udc00\ud800"]) {
      expect(problem([text])).toContain("[0]: text must not contain NUL or a lone surrogate");
      expect(problem({ [text]: 1 })).toContain("key must not contain NUL or a lone surrogate");
    }
    expect(findImpurity({ "\u{1f600}": "\u{1f600}\u0001" })).toBe(undefined);
  });
});

describe("limits", () => {
  test("[M8] 64 nested containers are accepted, 65 are not", () => {
    expect(findImpurity(nest(64))).toBe(undefined);
    expect(problem(nest(65))).toContain("is nested deeper than 64");
    expect(problem(nest(100_000))).toContain("is nested deeper than 64");
  });

  test("[M8] 1,024 keys are accepted, 1,025 are not", () => {
    const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]));
    expect(findImpurity(keys(1_024))).toBe(undefined);
    expect(problem(keys(1_025))).toBe("has 1025 keys; an object may have 1024");
  });

  test("[M8] shared references that expand into 2^60 values are refused without a walk", () => {
    let value: unknown = 1;
    for (let i = 0; i < 60; i++) value = [value, value];
    expect(problem(value, { bytesMax: 1_000, depthMax: 64, keysMax: 10 })).toContain("holds more than 1000 values");
  });

  test("[M52] objects without a prototype and keys of the prototype are plain data", () => {
    expect(findImpurity(Object.assign(Object.create(null), { a: 1 }))).toBe(undefined);
    expect(findImpurity(JSON.parse('{"__proto__":{"x":1},"constructor":2,"prototype":3}'))).toBe(undefined);
    expect(problem(JSON.parse('{"__proto__":{"x":"\\u0000"}}'))).toContain("__proto__.x: text");
  });
});

test("[M6] an accepted value survives a JSON round trip", () => {
  fc.assert(
    fc.property(
      fc.oneof(json, fc.anything({ withSparseArray: true, withNullPrototype: true, withDate: true })),
      (value) => {
        if (findImpurity(value) !== undefined) return;
        const again: unknown = JSON.parse(JSON.stringify(value));
        expect(equal(again, value)).toBe(true);
        expect(findImpurity(again)).toBe(undefined);
      },
    ),
    { numRuns: 1_000 },
  );
});

test("[M6] all pure JSON is accepted", () => {
  fc.assert(fc.property(json, (value) => findImpurity(value) === undefined));
});
