/** Text of others, as a terminal and a log show it. */
import fc from "fast-check";
import { describe, expect, test } from "#test";
import { visibleLine, visibleLines } from "../../src/message/visible-text.ts";

/** The characters that no line of ours contains, one by one. */
const DRIVES = (code: number) =>
  code < 0x20 ||
  (code >= 0x7f && code <= 0x9f) ||
  (code >= 0x2028 && code <= 0x202e) ||
  (code >= 0x2066 && code <= 0x2069);

/** Text with many of them in it. */
const hostile = fc.array(
  fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom(
      "\u001b[2J",
      "\u001b]52;c;cm0gLXJm\u0007",
      "\u009b31m",
      "\u202e",
      "\u2066",
      "\n",
      "\r",
      "\t",
      "\u2028",
    ),
  ),
);

describe("foreign text", () => {
  test("[K59] control characters for a terminal are escaped", () => {
    expect(visibleLine("a\u001b[2Jb")).toBe("a\\u001b[2Jb");
    expect(visibleLine("x\u001b]0;title\u0007y")).toBe("x\\u001b]0;title\\u0007y");
    expect(visibleLine("\u001b]52;c;cm0gLXJm\u001b\\")).toBe("\\u001b]52;c;cm0gLXJm\\u001b\\");
    expect(visibleLine("\u009b31m \u0000\u0008\u007f\u0085")).toBe("\\u009b31m \\u0000\\u0008\\u007f\\u0085");
    expect(visibleLine("gpj.\u202eexe \u2066x\u2069 \u2028\u2029")).toBe(
      "gpj.\\u202eexe \\u2066x\\u2069 \\u2028\\u2029",
    );
    expect(visibleLine("one\ntwo\r\tthree")).toBe("one\\ntwo\\r\\tthree");
  });

  test("[K155] letters of all languages, emoji and their joiners are unchanged", () => {
    for (const text of [
      "Grüße, naïve, e\u0301",
      "日本語 العربية עברית हिन्दी",
      "👩‍👩‍👧‍👦 🏳️‍🌈 🇨🇭 👍🏽 ❤️",
      "a\u00a0b\u200d\u200b…",
      "C:\\new",
    ])
      expect(visibleLine(text)).toBe(text);
  });

  test("[K59] no output line contains control characters, and a line of JSON keeps its value", () => {
    fc.assert(
      fc.property(hostile, (pieces) => {
        const text = pieces.join("");
        for (const character of visibleLine(text)) expect(DRIVES(character.charCodeAt(0))).toBe(false);
        expect(JSON.parse(visibleLine(JSON.stringify({ text })))).toEqual({ text });
      }),
    );
  });

  test("[K59] no further line of a text begins at the margin", () => {
    expect(visibleLines("Error: bad\nmillrace: all is well\r\n    at app.ts\n\nend\u009b")).toBe(
      "Error: bad\n  millrace: all is well\\r\n    at app.ts\n\n  end\\u009b",
    );
    fc.assert(
      fc.property(hostile, (pieces) => {
        const [, ...further] = visibleLines(pieces.join("")).split("\n");
        for (const line of further) expect(line).not.toMatch(/^\S/);
      }),
    );
  });
});
