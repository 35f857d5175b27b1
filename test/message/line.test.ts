import fc from "fast-check";
import { describe, expect, test } from "#test";
import { checkMessage } from "../../src/message/envelope.ts";
import { equal } from "../../src/message/equality.ts";
import { asciiText, LINE_LIMITS, parseLine, parseLineAt } from "../../src/message/line.ts";
import { cleanText, message } from "./arbitraries.ts";

const encoder = new TextEncoder();

/** A valid line with the given JSON text as data. */
function lineWith(data: string, correlation = '"c1"'): string {
  return `{"kind":"command","type":"A.B","data":${data},"metadata":{"id":"m1","timestamp":5,"correlation":${correlation}}}`;
}

/** The verdict, which must be the same for the text, for its bytes, and for either among the lines before and after. */
function parse(line: string) {
  const checked = parseLine(line);
  expect(equal(parseLine(encoder.encode(line)), checked)).toBe(true);
  const [before, after] = ["[1\n", "\n0000"];
  const bytes = encoder.encode(before + line + after);
  for (const text of [undefined, line]) {
    expect(equal(parseLineAt(bytes, before.length, bytes.length - after.length, text), checked)).toBe(true);
  }
  return checked;
}

function refusal(line: string) {
  const checked = parse(line);
  if (checked.kind === "accepted") throw new Error(`accepted: ${line.slice(0, 100)}`);
  return checked;
}

function nest(depth: number): string {
  return "[".repeat(depth) + "]".repeat(depth);
}

describe("length", () => {
  test("[M9] a line of 1 MiB is accepted, one byte more is 413", () => {
    const room = LINE_LIMITS.bytesMax - lineWith('""').length;
    expect(parse(lineWith(`"${"x".repeat(room)}"`)).kind).toBe("accepted");
    expect(refusal(lineWith(`"${"x".repeat(room + 1)}"`))).toEqual({
      kind: "refused",
      code: 413,
      message: "line too long: the limit is 1048576 bytes",
    });
  });

  test("[M9] a string is measured in bytes", () => {
    const room = LINE_LIMITS.bytesMax - lineWith('""').length;
    const fits = "é".repeat(Math.floor(room / 2)) + "x".repeat(room % 2);
    expect(parse(lineWith(`"${fits}"`)).kind).toBe("accepted");
    expect(refusal(lineWith(`"${fits}x"`)).code).toBe(413);
  });
});

describe("depth and keys", () => {
  test("[M9] 64 nested containers are accepted, 65 are 422, before parsing", () => {
    expect(parse(lineWith(nest(63))).kind).toBe("accepted");
    const innermost = lineWith("").indexOf('"data":') + 7 + 63;
    expect(refusal(lineWith(nest(64))).message).toBe(`is nested deeper than 64 at byte ${innermost}`);
    // Not even JSON, and still refused for its depth: it was not parsed.
    expect(refusal("[".repeat(10_000)).code).toBe(422);
    expect(refusal('{"a":'.repeat(3_000)).code).toBe(422);
  });

  test("[M9] brackets and colons within strings do not count", () => {
    expect(parse(lineWith(`"${"[{:".repeat(1_000)}"`)).kind).toBe("accepted");
    expect(parse(lineWith(`"\\"${"[{:".repeat(1_000)}\\\\"`)).kind).toBe("accepted");
    expect(refusal(lineWith(`["\\\\",${nest(64)}]`)).message).toContain("is nested deeper than 64");
  });

  test("[M9] 1,024 members in one object are accepted, 1,025 are 422, duplicates included", () => {
    const members = (count: number, key: (i: number) => string) =>
      lineWith(`{${Array.from({ length: count }, (_, i) => `"${key(i)}":1`).join(",")}}`);
    for (const key of [(i: number) => `k${i}`, () => "same"]) {
      expect(parse(members(1_024, key)).kind).toBe("accepted");
      expect(refusal(members(1_025, key)).message).toContain("holds an object of more than 1024 keys at byte");
    }
  });

  test("[M9] several objects may have more keys together", () => {
    const objects = Array.from({ length: 700 }, () => '{"a":1,"b":{"c":2}}');
    expect(parse(lineWith(`[${objects.join(",")}]`)).kind).toBe("accepted");
  });
});

describe("text", () => {
  test("[M10] malformed JSON is 400, without id and type", () => {
    for (const line of [
      "",
      " ",
      "{",
      "nope",
      "{'a':1}",
      '{"kind":"command",}',
      lineWith("01"),
      lineWith('"\n"'),
      `${lineWith("1")}x`,
    ]) {
      const { code, message, id, type } = refusal(line);
      expect([code, id, type]).toEqual([400, undefined, undefined]);
      expect(message.startsWith("malformed JSON: ")).toBe(true);
    }
  });

  test("[M10] bytes that are not UTF-8 are 400, never repaired", () => {
    const bytes = encoder.encode(lineWith('"?"'));
    const at = bytes.indexOf(0x3f);
    for (const bad of [0xff, 0xc3, 0x80, 0xed]) {
      const broken = parseLine(bytes.with(at, bad));
      expect(broken.kind === "refused" && broken.code === 400 && broken.message).toBe("malformed JSON: invalid UTF-8");
    }
    expect(parseLine(lineWith('"\ud800"')).kind).toBe("refused");
  });

  test("[M10] a byte order mark is refused, a trailing carriage return is white space", () => {
    expect(refusal(`\ufeff${lineWith("1")}`).code).toBe(400);
    expect(parse(`${lineWith("1")}\r`).kind).toBe("accepted");
  });

  test("[M10] JSON that is not an object is 422", () => {
    for (const line of ["42", "[]", "null", '"x"', "true"]) expect(refusal(line).code).toBe(422);
  });

  test("[M10] the refusal of an invalid message contains its readable id and type", () => {
    const line = '{"kind":"nope","type":"A.B","data":1,"metadata":{"id":"m1","timestamp":5}}';
    const { code, id, type } = refusal(line);
    expect([code, id, type]).toEqual([422, "m1", "A.B"]);
  });

  test("[M10] numbers that overflow are 422, the largest doubles are not", () => {
    const overflowing = [
      "1e400",
      "-1E400",
      "1e+309",
      `2${"0".repeat(308)}`,
      `[1,${"9".repeat(400)}]`,
      `{"a": ${"9".repeat(400)}.5}`,
    ];
    for (const number of overflowing) expect(refusal(lineWith(number)).message).toContain("must be a finite number");
    for (const number of ["1e308", `1${"0".repeat(308)}`, "1e-400", "1.5e3"]) {
      expect(parse(lineWith(number)).kind).toBe("accepted");
    }
  });

  test("[M10] a negative zero is 422 in each of its spellings", () => {
    for (const zero of ["-0", "-0.0", "-0e5", "-1e-400"]) expect(refusal(lineWith(zero)).message).toContain("-0");
    for (const fine of ["0", "-0.5", "-10", '"-0"', "-1e-3"]) expect(parse(lineWith(fine)).kind).toBe("accepted");
  });

  test("[M10] escaped NUL and lone surrogates are 422, in texts and in keys", () => {
    for (const spelling of ["\\u0000", "\\ud800", "\\uDBFFx", "\\udc00\\ud800"]) {
      expect(refusal(lineWith(`"a${spelling}"`)).message).toContain("data: text must not contain");
      expect(refusal(lineWith(`{"${spelling}":1}`)).message).toContain("key must not contain");
      expect(refusal(lineWith("1", `"${spelling}"`)).correlation).toBe(undefined);
    }
    for (const fine of ["\\ud83d\\ude00", "\\u0001", "\\\\u0000", "\\u00e9"]) {
      expect(parse(lineWith(`"${fine}"`)).kind).toBe("accepted");
    }
  });
});

describe("the value", () => {
  test("[M11] the last of duplicate keys counts", () => {
    const checked = parse(lineWith('{"a":1,"a":2}'));
    expect(checked.kind === "accepted" && checked.message.data).toEqual({ a: 2 });
  });

  test("[M52] __proto__ is an ordinary key", () => {
    const checked = parse(lineWith('{"__proto__":{"polluted":true}}'));
    if (checked.kind === "refused") throw new Error(checked.message);
    expect(Object.keys(checked.message.data as object)).toEqual(["__proto__"]);
    expect(({} as { polluted?: boolean }).polluted).toBe(undefined);
    expect(parse('{"__proto__":{"kind":"command"}}').kind).toBe("refused");
  });

  test("[M11] every valid message is restored from its line", () => {
    fc.assert(
      fc.property(message, (made) => {
        expect(equal(parse(JSON.stringify(made)), { kind: "accepted", message: made })).toBe(true);
      }),
    );
  });

  test("[M12] skipping the walk never changes the verdict", () => {
    const odd = fc.constantFrom(
      "-",
      "0",
      "1",
      ".",
      "e",
      "E",
      "9",
      ",",
      '"',
      "\\",
      "\\u",
      "0000",
      "d800",
      "[",
      "]",
      "{",
      "}",
      ":",
      " ",
      "true",
      "a",
    );
    const jsonText = fc.array(odd, { maxLength: 12 }).map((parts) => parts.join(""));
    const quoted = fc.oneof(
      cleanText.map((text) => JSON.stringify(text)),
      jsonText.map((text) => `"${text}"`),
    );
    fc.assert(
      fc.property(
        fc.oneof(
          jsonText,
          quoted,
          quoted.map((text) => `{${text}:-1}`),
        ),
        (data) => {
          const line = lineWith(data);
          let value: unknown;
          try {
            value = JSON.parse(line);
          } catch {
            expect(refusal(line).code).toBe(400);
            return;
          }
          expect(equal(parse(line), checkMessage(value))).toBe(true);
        },
      ),
      { numRuns: 5_000 },
    );
  });

  test("[M10] asciiText returns a text only for ASCII bytes", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "\u007f", "\n", "é", "€", "𝄞") });
    fc.assert(
      fc.property(text, (chosen) => {
        const isAscii = /^[a\u007f\n]*$/.test(chosen);
        expect(asciiText(encoder.encode(chosen))).toBe(isAscii ? chosen : undefined);
      }),
    );
    expect(asciiText(Uint8Array.of(0x61, 0xff))).toBe(undefined);
  });

  test("[M10] no bytes make the parser throw", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => parseLine(bytes).kind === "refused"));
  });
});

describe("integers", () => {
  test("[L65] an integer that parsing would round is refused with 422 at any place", () => {
    const afterSpaces = `{"a":${" ".repeat(40)}9007199254740993}`;
    for (const data of [
      "9007199254740993",
      "[1, -9007199254740993]",
      '{"a":{"b": 12345678901234567890 }}',
      afterSpaces,
    ]) {
      expect(refusal(lineWith(data))).toMatchObject({
        code: 422,
        message: expect.stringContaining("would be rounded"),
      });
    }
  });

  test("[L65] exact integers, fractions, exponents and digits in strings are accepted", () => {
    const taken = ["9007199254740991", "-9007199254740992", "1152921504606846976", "0.12345678901234567890", "1e300"];
    for (const data of [...taken, '"9007199254740993"', "[100000000000000, 999999999999999]"])
      expect(parse(lineWith(data))).toMatchObject({ kind: "accepted" });
  });
});
