import fc from "fast-check";
import { describe, expect, test } from "#test";
import { canonicalJson } from "../../src/message/canonical-json.ts";
import { contentId } from "../../src/message/content-id.ts";
import type { Json } from "../../src/message/json.ts";
import { json } from "./arbitraries.ts";

/** The obvious way: sort by code units, recurse, leave the rest to JSON.stringify. */
function oracle(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(oracle).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => compareUnits(a, b));
  return `{${members.map(([key, child]) => `${JSON.stringify(key)}:${oracle(child)}`).join(",")}}`;
}

function compareUnits(a: string, b: string): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    if (a.charCodeAt(i) !== b.charCodeAt(i)) return a.charCodeAt(i) - b.charCodeAt(i);
  }
  return a.length - b.length;
}

describe("canonical JSON", () => {
  test("[M17] canonical JSON agrees with a reference implementation", () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(canonicalJson(value)).toBe(oracle(value));
      }),
      { numRuns: 1_000 },
    );
  });

  test("[M17] keys are sorted as in the example of RFC 8785, by UTF-16 code units", () => {
    const keys = ["\u20ac", "\r", "\ufb33", "1", "\u{1f600}", "\u0080", "\u00f6"];
    const text = canonicalJson(Object.fromEntries(keys.map((key) => [key, 0])));
    expect(text).toBe('{"\\r":0,"1":0,"\u0080":0,"\u00f6":0,"\u20ac":0,"\u{1f600}":0,"\ufb33":0}');
  });

  test("[M17] numbers and strings are written as in RFC 8785", () => {
    const numbers = [333333333.3333333, 1e30, 4.5, 2e-3, 0.000000000000000000000000001, 1e21, 1e20, -0];
    expect(canonicalJson(numbers)).toBe("[333333333.3333333,1e+30,4.5,0.002,1e-27,1e+21,100000000000000000000,0]");
    expect(canonicalJson('\u20ac$\u000f\nA\'B"\\\\"/')).toBe('"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"');
    expect(canonicalJson([null, true, false, {}, []])).toBe("[null,true,false,{},[]]");
  });

  test("[M17] canonical JSON of a value that is not JSON throws", () => {
    for (const value of [undefined, Number.NaN, Number.NEGATIVE_INFINITY, "\ud800", { "\udc00": 1 }, [undefined], 1n]) {
      expect(() => canonicalJson(value as Json)).toThrow("canonical JSON");
    }
    expect(() => canonicalJson(`${"x".repeat(100)}\ud800`)).toThrow("lone surrogates");
  });

  test("[M17] canonical JSON works at any depth without a stack overflow", () => {
    let value: Json = [];
    for (let i = 1; i < 100_000; i++) value = [value];
    expect(canonicalJson(value)).toBe("[".repeat(100_000) + "]".repeat(100_000));
  });

  test("[M20] a content id is the hash of the canonical text and independent of the order of keys", () => {
    expect(contentId({ b: 1, a: [true] })).toBe(contentId({ a: [true], b: 1 }));
    expect(contentId({ b: 1 }) === contentId({ b: 2 })).toBe(false);
    // sha256 of the two characters {}
    expect(contentId({})).toBe("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
  });
});
