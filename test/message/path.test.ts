import fc from "fast-check";
import { describe, expect, test } from "#test";
import { equal } from "../../src/message/equality.ts";
import type { Json } from "../../src/message/json.ts";
import {
  arrayIndex,
  deepestContainer,
  deleteAt,
  getAt,
  type Path,
  pathText,
  placeText,
  reaches,
  setAt,
} from "../../src/message/path.ts";
import { json } from "./arbitraries.ts";

const value = { a: { b: [1, { c: 2 }] }, d: { e: null } };

/** Every path of the value that leads somewhere, the empty one first. */
function pathsOf(root: Json): Path[] {
  if (typeof root !== "object" || root === null) return [[]];
  return [[], ...Object.entries(root).flatMap(([key, child]) => pathsOf(child).map((path) => [key, ...path]))];
}

const valueAndPath = json.chain((root) => fc.tuple(fc.constant(root), fc.constantFrom(...pathsOf(root))));

describe("reading", () => {
  test("[M22] path steps are own keys and canonical indexes", () => {
    expect(getAt(value, [])).toBe(value);
    expect(getAt(value, ["a", "b", "1", "c"])).toBe(2);
    expect(getAt(value, ["d", "e"])).toBe(null);
    for (const path of [
      ["x"],
      ["a", "b", "2"],
      ["a", "b", "length"],
      ["a", "b", "01"],
      ["a", "b", "-1"],
      ["d", "e", "f"],
    ]) {
      expect(getAt(value, path)).toBe(undefined);
    }
    expect(getAt({ "a/b": 1 }, ["a", "b"])).toBe(undefined);
    expect(getAt("text", ["0"])).toBe(undefined);
  });

  test("[M22] inherited names lead to no value, own ones do", () => {
    for (const name of ["__proto__", "constructor", "toString"]) expect(getAt({}, [name])).toBe(undefined);
    expect(getAt(JSON.parse('{"__proto__":{"x":1}}'), ["__proto__", "x"])).toBe(1);
  });

  test("[M22] an index has one spelling and is within the range of arrays", () => {
    expect(["0", "7", "10", "4294967294"].map(arrayIndex)).toEqual([0, 7, 10, 4294967294]);
    for (const step of ["", "00", "01", "-1", "+1", "1.0", "1e3", " 1", "4294967295", "99999999999", "a", "٣"]) {
      expect(arrayIndex(step)).toBe(undefined);
    }
  });

  test("[M25] a path is reached if every step before the last leads to a container", () => {
    for (const path of [[], ["a"], ["x"], ["a", "b", "9"], ["d", "e"]]) expect(reaches(value, path)).toBe(true);
    for (const path of [
      ["x", "y"],
      ["d", "e", "f"],
      ["a", "b", "0", "z"],
    ])
      expect(reaches(value, path)).toBe(false);
    expect(reaches(5, [])).toBe(true);
    expect(reaches(5, ["a"])).toBe(false);
  });

  test("[M25] deepestContainer returns the last container along a path", () => {
    expect(deepestContainer(value, ["d", "e", "f"])).toBe(value.d);
    expect(deepestContainer(value, ["x", "y"])).toBe(value);
    expect(deepestContainer(value, ["a", "b"])).toBe(value.a.b);
    expect(deepestContainer(5, ["a"])).toBe(undefined);
  });
});

describe("setting", () => {
  test("[M23] setting returns a new value, leaves the old one unchanged, and shares the rest", () => {
    const before = structuredClone(value);
    const after = setAt(value, ["a", "b", "1", "c"], 3) as typeof value;
    expect(after).toEqual({ a: { b: [1, { c: 3 }] }, d: { e: null } });
    expect(value).toEqual(before);
    expect(after.d).toBe(value.d);
  });

  test("[M23] setting an equal value returns the same value", () => {
    expect(setAt(value, ["a"], structuredClone(value.a))).toBe(value);
    expect(setAt(value, [], structuredClone(value))).toBe(value);
    expect(setAt(value, ["d", "e"], null)).toBe(value);
  });

  test("[M23] an array grows only at its end", () => {
    expect(setAt([1], ["1"], 2)).toEqual([1, 2]);
    for (const step of ["2", "-1", "01", "length", "4294967295", "push"]) {
      expect(() => setAt([1], [step], 2)).toThrow("an array of 1 takes the indexes 0 to 1");
    }
  });

  test("[M23] setting never creates parents", () => {
    expect(() => setAt(value, ["x", "y"], 1)).toThrow('there is nothing at "x"; set that first');
    expect(() => setAt(value, ["d", "e", "f"], 1)).toThrow('there is null at "d" / "e"');
    expect(() => setAt(5, ["a"], 1)).toThrow("there is 5 at the root");
  });

  test("[M23] __proto__ and constructor are set as data", () => {
    const set = setAt({}, ["__proto__"], { polluted: true }) as { polluted?: boolean };
    expect(Object.keys(set)).toEqual(["__proto__"]);
    expect(set.polluted).toBe(undefined);
    expect(Object.getPrototypeOf(set)).toBe(Object.prototype);
    const again = setAt(set, ["__proto__", "polluted"], 1);
    expect(JSON.stringify(setAt(again, ["constructor"], 2))).toBe('{"__proto__":{"polluted":1},"constructor":2}');
    expect(() => setAt({}, ["__proto__", "polluted"], 1)).toThrow("there is nothing at");
  });

  test("[M23] a set value is read back, and restoring the old one gives an equal value", () => {
    fc.assert(
      fc.property(valueAndPath, json, ([root, path], next) => {
        const text = JSON.stringify(root);
        const after = setAt(root, path, next);
        expect(equal(getAt(after, path), next)).toBe(true);
        expect(equal(setAt(after, path, getAt(root, path)!), root)).toBe(true);
        expect(JSON.stringify(root)).toBe(text);
        for (const other of pathsOf(root)) {
          const apart = other.some((step, i) => i < path.length && step !== path[i]);
          if (apart) expect(getAt(after, other)).toBe(getAt(root, other));
        }
      }),
    );
  });
});

describe("deleting", () => {
  test("[M24] deleting a key shares the rest, and deleting an absent key returns the same value", () => {
    const after = deleteAt(value, ["d", "e"]) as typeof value;
    expect(after).toEqual({ a: value.a, d: {} });
    expect(after.a).toBe(value.a);
    for (const path of [["x"], ["d", "x"], ["toString"], ["__proto__"]]) expect(deleteAt(value, path)).toBe(value);
    expect(deleteAt(JSON.parse('{"__proto__":1}'), ["__proto__"])).toEqual({});
  });

  test("[M22] no two paths have the same text", () => {
    expect(pathText(["a", "b"])).toBe("/a/b");
    expect(pathText(["a/b"])).toBe("/a~1b");
    expect(pathText(["a~1b"])).toBe("/a~01b");
    expect(placeText("book", ["a/b"])).toBe("book /a~1b");
    expect(placeText("book", [])).toBe("book");
    const step = fc.string({ unit: fc.constantFrom("a", "/", "~", "0", "1"), maxLength: 4 });
    const path = fc.array(step, { maxLength: 4 });
    fc.assert(fc.property(path, path, (a, b) => equal(a, b) === (pathText(a) === pathText(b))));
  });

  test("[M24] array elements, the root and places without a parent cannot be deleted", () => {
    expect(() => deleteAt(value, ["a", "b", "0"])).toThrow("an array element cannot be deleted");
    expect(() => deleteAt(value, [])).toThrow("a value cannot be deleted from itself");
    expect(() => deleteAt(value, ["x", "y"])).toThrow("set that first");
  });
});
