import fc from "fast-check";
import { describe, expect, test } from "#test";
import type { Message } from "../../src/message/envelope.ts";
import { LINE_LIMITS, parseLineAt } from "../../src/message/line.ts";
import { readOrdinary } from "../../src/message/ordinary-line.ts";

const encoder = new TextEncoder();

function ordinary(data: string, { kind = "query", type = "A.B", id = "m1", timestamp = "5" } = {}): string {
  return `{"kind":"${kind}","type":"${type}","data":${data},"metadata":{"id":"${id}","timestamp":${timestamp}}}`;
}

/** The message, where the line is read around its data. */
function read(line: string, limits = LINE_LIMITS): Message | undefined {
  const bytes = encoder.encode(`\n${line}\n`);
  return readOrdinary(bytes, 1, bytes.length - 1, line, limits);
}

/** A line is read one way where its text is known and another where it is not. */
function bothWays(line: string, limits = LINE_LIMITS) {
  const bytes = encoder.encode(line);
  const whole = parseLineAt(bytes, 0, bytes.length, undefined, limits);
  return { whole, around: parseLineAt(bytes, 0, bytes.length, line, limits) };
}

function expectSame(line: string, limits = LINE_LIMITS): void {
  // Twice: the first of its type is remembered.
  for (const _ of [1, 2]) {
    const { whole, around } = bothWays(line, limits);
    // As text, because the order of the fields is to be the same.
    expect(JSON.stringify(around)).toBe(JSON.stringify(whole));
  }
}

describe("an ordinary line", () => {
  test("[M53] an ordinary line is read around its data after a line of its kind and type was read", () => {
    const line = ordinary('{"a":[1,{"b":"c"}]}', { type: "Ordinary.First", timestamp: "1757000000000" });
    expect(read(line)).toBe(undefined);
    const { whole } = bothWays(line);
    expect(whole.kind).toBe("accepted");
    expect(read(line)).toEqual(JSON.parse(line));
    for (const other of [{ type: "Ordinary.Second" }, { kind: "command", type: "Ordinary.First" }]) {
      expect(read(ordinary("null", other))).toBe(undefined);
      expectSame(ordinary("null", other));
      expect(read(ordinary("null", other))).toEqual(JSON.parse(ordinary("null", other)));
    }
  });

  test("[M53] an ordinary line gives the same message or refusal as the full parser, for any change in it", () => {
    const json = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify(value).replace(/[^ -~]/g, "?"));
    const piece = fc.constantFrom(
      ...'"\\{}[]:,0-e.1 \u0001',
      '"data":1,',
      ',"metadata":{"id":"x","timestamp":1}}',
      '"id":"y",',
      "\\u0000",
      "\\ud800",
      "-0",
      "1e400",
      ',"causation":null',
    );
    const change = fc.record({ at: fc.nat(200), cut: fc.nat(3), piece: fc.option(piece, { nil: "" }) });
    const fields = fc.record({
      kind: fc.constantFrom("command", "query", "event", "reply", "error", "nope"),
      type: fc.constantFrom("A.B", "Memory.Get", "nope"),
      id: fc.constantFrom(
        "m1",
        "",
        "a b",
        "x".repeat(255),
        "x".repeat(256),
        '\\"',
        "\\n",
        "\\u0000",
        "a\\ud800",
        "\u007f",
      ),
      timestamp: fc.constantFrom(
        "0",
        "5",
        "00",
        "01",
        "1757000000000",
        "999999999999999",
        "9007199254740993",
        "-1",
        "1.0",
        "1e3",
        "",
      ),
    });
    fc.assert(
      fc.property(json, fields, fc.array(change, { maxLength: 2 }), (data, given, changes) => {
        let line = ordinary(data, given);
        for (const { at, cut, piece: put } of changes) {
          const place = at % (line.length + 1);
          line = line.slice(0, place) + put + line.slice(place + cut);
        }
        expectSame(line);
      }),
      { numRuns: 1_000 },
    );
  });

  test("[M9] an ordinary line has the usual limits of depth and keys", () => {
    const nested = (depth: number) => ordinary("[".repeat(depth) + "]".repeat(depth));
    const keys = (count: number) => ordinary(`{${Array.from({ length: count }, (_, i) => `"k${i}":1`).join(",")}}`);
    for (const line of [nested(63), nested(64), keys(1_024), keys(1_025)]) expectSame(line);
    for (const max of [1, 2, 3, 4, 5]) {
      for (const line of [ordinary("1"), nested(1), keys(5)]) {
        expectSame(line, { ...LINE_LIMITS, depthMax: max });
        expectSame(line, { ...LINE_LIMITS, keysMax: max });
      }
    }
  });

  test("[M53] the cache of line starts is cleared after too many types, and filled again", () => {
    const type = "Ordinary.Kept";
    const line = ordinary("1", { type });
    expectSame(line);
    expect(read(line)).toEqual(JSON.parse(line));
    for (let i = 0; i < 300; i++) expectSame(ordinary("1", { type: `Many.T${i}` }));
    expectSame(line);
    expect(read(line)).toEqual(JSON.parse(line));
  });

  test("[M4] answers are not ordinary lines, because they need more metadata", () => {
    for (const kind of ["reply", "error"]) {
      const line = ordinary('{"code":500,"message":"x"}', { kind });
      expectSame(line.replace('"id"', '"causation":"c","id"'));
      expectSame(line);
    }
  });

  test("[M53] a line with characters outside of ASCII is left to the full parser", () => {
    expectSame(ordinary("1"));
    expect(read(ordinary("1"))).toEqual(JSON.parse(ordinary("1")));
    expect(read(ordinary('"\u00e9"'))).toBe(undefined);
    expectSame(ordinary('"\u00e9"'));
  });
});
