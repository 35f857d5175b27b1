import fc from "fast-check";
import { describe, expect, test } from "#test";
import { equal } from "../../src/message/equality.ts";
import { findImpurity, type Json, VALUE_LIMITS } from "../../src/message/json.ts";
import { cloneJson, copyFlat, copyJson, frozenCopy } from "../../src/message/json-copy.ts";
import { problemText } from "../../src/message/problem.ts";
import { json } from "./arbitraries.ts";

/** The containers in a value. */
function containers(value: Json, found = new Set<object>()): Set<object> {
  if (typeof value !== "object" || value === null) return found;
  found.add(value);
  for (const child of Object.values(value)) containers(child, found);
  return found;
}

/** The clone, or the problem. */
function cloned(value: unknown): unknown {
  const clone = cloneJson(value);
  return clone.kind === "clone" ? clone.value : problemText(clone.problem);
}

describe("copies", () => {
  for (const [name, copy] of [
    ["copyJson", copyJson],
    ["copyFlat", (value: Json) => copyFlat({ text: "a", value })["value"]],
    ["frozenCopy", frozenCopy],
    ["cloneJson", cloned],
  ] as const) {
    test(`[M32] ${name} gives an equal value that shares no object`, () => {
      fc.assert(
        fc.property(json, (value) => {
          const copied = copy(value) as Json;
          expect(equal(copied, value)).toBe(true);
          expect(JSON.stringify(copied)).toBe(JSON.stringify(value));
          const shared = containers(value);
          expect([...containers(copied)].filter((one) => shared.has(one))).toEqual([]);
        }),
      );
    });
  }

  test("[M32] frozenCopy is deeply frozen, and its original is not", () => {
    const value = { list: [{ deep: {} }], text: "a" };
    expect([...containers(frozenCopy(value))].every(Object.isFrozen)).toBe(true);
    expect([...containers(value)].some(Object.isFrozen)).toBe(false);
  });

  test("[M32] [M6] cloneJson refuses the same values as the check, with the same reason", () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);
    const wide = Object.fromEntries(Array.from({ length: 1_025 }, (_, n) => [`k${n}`, n]));
    const wrong = [
      ...[[undefined], Number.NaN, Number.POSITIVE_INFINITY, -0, 1n, () => 1, Symbol("s"), new Date(0), new Map()],
      ...[new (class Point {})(), new (class extends Array {})(), Object.create({ inherited: 1 })],
      ...["\ud800", "a\0b", { "a\0b": 1 }, new Array(1), cycle, wide, new Uint8Array(1)],
    ];
    for (const value of wrong) {
      const inside = { a: [{ b: value }] };
      const found = findImpurity(inside);
      expect(found).toBeDefined();
      expect(cloned(inside)).toBe(problemText(found ?? { path: "", problem: "" }));
    }
  });

  test("[M32] undefined fields are left out, as in JSON; undefined elements are refused", () => {
    expect(cloned({ a: undefined, b: { c: undefined, d: 1 } })).toEqual({ b: { d: 1 } });
    expect(Object.keys(cloned({ a: undefined }) as object)).toEqual([]);
    // The slow walk, which objects without a prototype take, gives the same.
    expect(cloned(Object.assign(Object.create(null), { a: undefined, b: 2 }))).toEqual({ b: 2 });
    expect(cloned([undefined])).toContain("got undefined");
    expect(cloned(undefined)).toContain("got undefined");
  });

  test("[M32] [M8] depth and number of values are limited, also with shared references", () => {
    const nested = (depth: number) => {
      let value: Json = [];
      for (let n = 1; n < depth; n++) value = [value];
      return value;
    };
    expect(cloneJson(nested(64)).kind).toBe("clone");
    expect(cloneJson(nested(65)).kind).toBe("impure");
    const limits = { ...VALUE_LIMITS, bytesMax: 1_000 };
    let unfolding: Json = [];
    for (let n = 0; n < 40; n++) unfolding = [unfolding, unfolding];
    expect(cloneJson(unfolding, limits).kind).toBe("impure");
    expect(
      cloneJson(
        Array.from({ length: 998 }, () => 1),
        limits,
      ).kind,
    ).toBe("clone");
    expect(
      cloneJson(
        Array.from({ length: 1_000 }, () => 1),
        limits,
      ).kind,
    ).toBe("impure");
  });

  test("[M32] an accessor is read once; symbols and hidden fields are not copied", () => {
    let reads = 0;
    const value = Object.defineProperty({ [Symbol("s")]: 1, kept: 1 }, "hidden", { value: 2, enumerable: false });
    const counted = {
      value,
      get now() {
        return ++reads;
      },
    };
    expect(cloned(counted)).toEqual({ value: { kept: 1 }, now: 1 });
    expect(reads).toBe(1);
  });

  test("[M32] [M8] __proto__ is copied as data", () => {
    const value = JSON.parse('{"__proto__":{"polluted":1},"a":{"__proto__":2}}') as Json;
    expect(JSON.stringify(cloned(value))).toBe('{"__proto__":{"polluted":1},"a":{"__proto__":2}}');
    expect(Object.getPrototypeOf(cloned(value))).toBe(Object.prototype);
  });
});
