import { describe, expect, test } from "#test";
import { checkMessage } from "../../src/message/envelope.ts";
import {
  ERROR_MEANINGS,
  type ErrorData,
  errorData,
  Failure,
  failureFrom,
  fromError,
  thrownText,
} from "../../src/message/error-data.ts";

/** The problem that checkMessage finds in an error with that data; undefined if it accepts. */
function problem(data: unknown): string | undefined {
  const metadata = { id: "m2", timestamp: 1, causation: "m1" };
  const checked = checkMessage({ kind: "error", type: "A.B", data, metadata });
  return checked.kind === "refused" ? checked.message : undefined;
}

function chain(causes: number): ErrorData {
  let data: ErrorData = { code: 500, message: "root" };
  for (let i = 0; i < causes; i++) data = { code: 500, message: "m", cause: data };
  return data;
}

function depthOf(data: ErrorData | undefined): number {
  return data === undefined ? 0 : 1 + depthOf(data.cause);
}

describe("error data", () => {
  test("[M13] an error code is an integer from 400 to 599", () => {
    for (const code of [400, 404, 499, 599]) expect(problem({ code, message: "m" })).toBe(undefined);
    for (const code of [399, 600, 404.5, "404", null, -1]) {
      expect(problem({ code, message: "m" })).toContain("data.code: must be an integer from 400");
    }
    expect(problem({ message: "m" })).toContain("data.code: must be");
  });

  test("[M13] message is a string, data an object, cause the same shape; other keys are kept", () => {
    expect(problem({ code: 500 })).toContain("data.message: must be a string");
    expect(problem({ code: 500, message: 1 })).toContain("data.message: must be a string, got 1");
    for (const data of [null, [], "x", 500]) expect(problem(data)).toContain("data: must be an object with code");
    expect(problem({ code: 500, message: "m", cause: { code: 1, message: "m" } })).toContain(
      "data.cause.code: must be",
    );
    expect(problem({ code: 500, message: "m", cause: null })).toContain("data.cause: must be an object");
    expect(problem({ code: 504, message: "m", requestId: "m1" })).toBe(undefined);
  });

  test("[M13] 8 causes are accepted, 9 are not", () => {
    expect(problem(chain(8))).toBe(undefined);
    expect(problem(chain(9))).toContain("must end after 8 causes");
  });

  test("[M13] every system code gives valid data with its meaning", () => {
    for (const code of [400, 404, 409, 413, 422, 500, 502, 503, 504] as const) {
      expect(errorData(code)).toEqual({ code, message: ERROR_MEANINGS[code] });
      expect(problem(errorData(code, "why", { cause: errorData(502) }))).toBe(undefined);
    }
    expect(errorData(504).message).toBe("Request timed out");
  });
});

describe("a thrown value", () => {
  test("[M14] an error becomes 500 with its causes, a Failure keeps its code", () => {
    const thrown = new Error("outer", { cause: new Failure(404, "no such key", { cause: "text" }) });
    expect(fromError(thrown)).toEqual({
      code: 500,
      message: "outer",
      cause: { code: 404, message: "no such key", cause: { code: 500, message: "text" } },
    });
    expect(fromError(Object.assign(new Error("not ours"), { code: 404 })).code).toBe(500);
    expect(() => new Failure(200, "fine")).toThrow("a code from 400 to 599");
  });

  test("[M14] long and cyclic cause chains are cut at the limit", () => {
    const loop = new Error("loop");
    loop.cause = loop;
    let long = new Error("0");
    for (let i = 1; i < 50; i++) long = new Error(String(i), { cause: long });
    for (const thrown of [loop, long]) {
      expect(depthOf(fromError(thrown))).toBe(9);
      expect(problem(fromError(thrown))).toBe(undefined);
    }
  });

  test("[M14] no thrown value causes an exception or invalid data", () => {
    const hostile = new Error("x");
    for (const name of ["message", "cause"]) {
      Object.defineProperty(hostile, name, {
        get: () => {
          throw new Error("from the accessor");
        },
      });
    }
    const thrown = [undefined, null, 0, "", Symbol("s"), 1n, {}, Object.create(null), hostile, () => 1, new Error("")];
    for (const value of [...thrown, new Error("a\0b\ud800"), new Error("x".repeat(100_000))]) {
      const data = fromError(value);
      expect(problem(data)).toBe(undefined);
      expect(data.message.length).toBeLessThan(1_100);
    }
    expect(fromError(hostile).message).toBe("an unprintable value was thrown");
    expect(fromError(undefined).message).toBe("undefined was thrown");
    expect(fromError(new TypeError("")).message).toBe("TypeError");
  });
});

describe("the text of a thrown value", () => {
  test("[M37] the text of an error contains its causes, each once", () => {
    const refused = new Error("connect ECONNREFUSED 127.0.0.1:9");
    expect(thrownText(new TypeError("fetch failed", { cause: refused }))).toBe(
      "fetch failed: connect ECONNREFUSED 127.0.0.1:9",
    );
    expect(thrownText(new Error(`no mail: ${refused.message}`, { cause: refused }))).toBe(
      `no mail: ${refused.message}`,
    );
    const loop = new Error("loop");
    loop.cause = new Error("again", { cause: loop });
    expect(thrownText(loop)).toBe("loop: again");
  });

  test("[M37] the parts of an AggregateError are in its text and in its data", () => {
    const parts = [new Error("::1 refused"), new Failure(404, "no such host", { cause: new Error("dns") })];
    const unnamed = new AggregateError(parts);
    expect(thrownText(unnamed)).toBe("::1 refused; no such host");
    expect(thrownText(new Error("fetch failed", { cause: unnamed }))).toBe("fetch failed: ::1 refused; no such host");
    expect(fromError(new AggregateError(parts, "both failed"))).toEqual({
      ...{ code: 500, message: "both failed" },
      errors: [
        { code: 500, message: "::1 refused" },
        { code: 404, message: "no such host: dns" },
      ],
    });
    expect(problem(fromError(new AggregateError(Array.from({ length: 10_000 }, () => unnamed))))).toBe(undefined);
  });

  const objects: readonly (readonly [unknown, string])[] = [
    [{ status: 503, body: { why: "busy" } }, '{"status":503,"body":{"why":"busy"}}'],
    [{ message: "quota", code: 7 }, "quota"],
    [[1, "two"], '[1,"two"]'],
    [{ toString: () => "in its own words" }, "in its own words"],
    [Object.create(null), "{}"],
    [{ a: { b: { c: { d: 1 } } } }, '{"a":{"b":{"c":…}}}'],
  ];
  for (const [thrown, text] of objects) {
    test(`[M37] a thrown object is shown as ${text}`, () => expect(thrownText(thrown)).toBe(text));
  }

  test("[M37] a large or cyclic thrown object is shown in bounded length", () => {
    const endless: Record<string, unknown> = {};
    for (let n = 0; n < 10_000; n++) endless[`k${n}`] = endless;
    expect(thrownText(endless).length).toBeLessThan(1_100);
  });

  test("[M37] source lines and stack lines that a runtime puts into a text are removed", () => {
    const bun =
      '12 | const password = "secret";\n13 |   throw new Error("broken");\n             ^\nerror: broken\n      at <anonymous> (/app/worker.ts:13:9)\n      at run (/app/worker.ts:20:1)\n';
    expect(thrownText(new Error(bun))).toBe("error: broken");
    const deno =
      "SyntaxError: Unexpected token\n  |\n1 | export const = 5\n  |              ~\n    at file:///app/a.ts:1:14";
    expect(thrownText(new Error(deno))).toBe("SyntaxError: Unexpected token");
    const own = "two problems:\n  name: is required\n  at least one address";
    expect(thrownText(new Error(own))).toBe(own);
  });

  test("[M37] a failure made of error data keeps its code and its causes", () => {
    const data = { code: 502, message: "outer", cause: { code: 404, message: "inner" } };
    expect(fromError(failureFrom(data))).toEqual(data);
  });
});
