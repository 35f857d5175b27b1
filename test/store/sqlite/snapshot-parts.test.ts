import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json } from "../../../src/message/json.ts";
import { applyPart, PartWriter } from "../../../src/store/sqlite/snapshot-part.ts";

function partsOf(value: Json, partBytes: number): string[] {
  const writer = new PartWriter(value, partBytes);
  const parts: string[] = [];
  while (!writer.isDone) parts.push(JSON.stringify(writer.next()));
  return parts;
}

function assembled(parts: readonly string[]): Json | undefined {
  return parts.reduce<Json | undefined>((value, text) => applyPart(value, JSON.parse(text)), undefined);
}

describe("parts of a snapshot", () => {
  test("[S127] the parts of any value give the value again, with keys in order", () => {
    const property = fc.property(
      fc.jsonValue({ maxDepth: 5 }),
      fc.integer({ min: 1, max: 200 }),
      (value, partBytes) => {
        const plain = JSON.parse(JSON.stringify(value)) as Json;
        expect(JSON.stringify(assembled(partsOf(plain, partBytes)))).toBe(JSON.stringify(plain));
      },
    );
    fc.assert(property, { numRuns: 2_000 });
  });

  test("[S127] a key named __proto__ in a snapshot part stays data", () => {
    const value = JSON.parse('{"__proto__":{"a":"long enough"},"b":"long enough as well"}') as Json;
    expect(JSON.stringify(assembled(partsOf(value, 10)))).toBe(JSON.stringify(value));
  });

  test("[S127] snapshot parts of lists, keys, texts and trees are bounded", () => {
    const long = "\u{1f600}é".repeat(20_000);
    const value: Json = {
      list: Array.from({ length: 20_000 }, (_, n) => ({ n, text: `element ${n}` })),
      keys: Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`key ${n}`, n])),
      long,
      tree: { left: { left: { left: Array.from({ length: 5_000 }, () => "x".repeat(50)) } } },
    };
    const parts = partsOf(value, 10_000);
    expect(assembled(parts)).toEqual(value);
    // A character outside of ASCII has up to four bytes for each unit that a text is cut by.
    expect(Math.max(...parts.map((part) => Buffer.byteLength(part)))).toBeLessThan(45_000);
    expect(parts.length).toBeLessThan(400);
  });
});
