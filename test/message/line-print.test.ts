import fc from "fast-check";
import { describe, expect, test } from "#test";
import type { Message } from "../../src/message/envelope.ts";
import { printLine } from "../../src/message/line.ts";
import { message } from "./arbitraries.ts";

const answer = (metadata: Partial<Message["metadata"]>, data: Message["data"] = { text: 'a "b" \n ü' }): Message => ({
  kind: "reply",
  type: "A.B",
  data,
  metadata: { causation: "c", id: "i", timestamp: 5, ...metadata },
});

describe("printing a line", () => {
  test("[M33] a line is the JSON of any message with a newline at its end", () => {
    fc.assert(
      fc.property(message, (given) => {
        const line = printLine(given);
        expect(line.endsWith("}\n")).toBe(true);
        expect(line.indexOf("\n")).toBe(line.length - 1);
        expect(JSON.parse(line)).toEqual(JSON.parse(JSON.stringify(given)));
      }),
    );
  });

  test("[M33] the line of a plain answer equals JSON.stringify letter for letter", () => {
    const ids = fc.oneof(fc.uuid(), fc.string({ minLength: 1, unit: "binary" }));
    fc.assert(
      fc.property(ids, ids, fc.nat(3), (causation, id, timestamp) => {
        const given = answer({ causation, id, timestamp });
        expect(printLine(given)).toBe(`${JSON.stringify(given)}\n`);
      }),
    );
  });

  test("[M33] a line contains all metadata", () => {
    const odd = [
      { correlation: "x" },
      { causation: null },
      { label: ["a"] },
      { 'a"': 1 },
      { id: "\\" },
      { id: "\u2028" },
    ];
    for (const metadata of odd) {
      const given = answer(metadata);
      expect(printLine(given)).toBe(`${JSON.stringify(given)}\n`);
    }
    const { id, timestamp } = answer({}).metadata;
    const otherOrder: Message = { ...answer({}), metadata: { timestamp, id, causation: "c" } };
    expect(JSON.parse(printLine(otherOrder))).toEqual(otherOrder);
  });
});
