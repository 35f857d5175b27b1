import fc from "fast-check";
import { deepEqual } from "fast-equals";
import { describe, expect, test } from "#test";
import { equal } from "../../src/message/equality.ts";
import { json } from "./arbitraries.ts";

describe("equality", () => {
  test("[M21] equality agrees with fast-equals on pairs that are equal or nearly so", () => {
    const pair = fc.oneof(
      fc.tuple(json, json),
      json.map((value) => [value, JSON.parse(JSON.stringify(value))]),
      fc.tuple(json, json).map(([a, b]) => [
        { a: [a], b },
        { b: structuredClone(b), a: [structuredClone(b)] },
      ]),
    );
    fc.assert(
      fc.property(pair, ([a, b]) => {
        // fast-equals treats these two specially on every object, not for keys.
        fc.pre(!/__proto__|constructor/.test(JSON.stringify([a, b])));
        expect(equal(a, b)).toBe(deepEqual(a, b));
        expect(equal(b, a)).toBe(equal(a, b));
      }),
      { numRuns: 1_000 },
    );
  });

  test("[M21] the order of keys does not count, that of elements does", () => {
    expect(equal({ a: 1, b: [2] }, { b: [2], a: 1 })).toBe(true);
    expect(equal([1, 2], [2, 1])).toBe(false);
  });

  test("[M21] kinds, absent keys and leaves are distinguished", () => {
    expect(equal([], {})).toBe(false);
    expect(equal({}, null)).toBe(false);
    expect(equal(null, undefined)).toBe(false);
    expect(equal({ a: undefined }, { b: undefined })).toBe(false);
    expect(equal({ a: 1 }, { a: 1, b: 2 })).toBe(false);
    expect(equal([[1]], [[1, 2]])).toBe(false);
    expect(equal(0, -0)).toBe(false);
    expect(equal("1", 1)).toBe(false);
  });

  test("[M21] names of the prototype are keys only when they are own", () => {
    expect(equal(JSON.parse('{"__proto__":{}}'), { x: {} })).toBe(false);
    expect(equal(JSON.parse('{"__proto__":{"a":1}}'), JSON.parse('{"__proto__":{"a":1}}'))).toBe(true);
    expect(equal({ constructor: Object }, { x: 1 })).toBe(false);
  });

  test("[M21] the contents of a shared reference are not compared", () => {
    let reads = 0;
    const shared = Object.defineProperty({}, "a", { enumerable: true, get: () => reads++ });
    expect(equal([shared, 1], [shared, 1])).toBe(true);
    expect(reads).toBe(0);
  });

  test("[M21] equality works at any depth without a stack overflow", () => {
    const deep = (leaf: number) => {
      let value: unknown = leaf;
      for (let i = 0; i < 100_000; i++) value = i % 2 === 0 ? [value] : { a: value };
      return value;
    };
    expect(equal(deep(1), deep(1))).toBe(true);
    expect(equal(deep(1), deep(2))).toBe(false);
  });
});
