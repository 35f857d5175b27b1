import fc from "fast-check";
import { describe, expect, test } from "#test";
import { causationOf, checkEnvelope, checkMessage, isMessageType, KINDS } from "../../src/message/envelope.ts";
import { equal } from "../../src/message/equality.ts";
import { message } from "./arbitraries.ts";

type Draft = { [key: string]: unknown; metadata: { [key: string]: unknown } };

/** A valid command, changed by the test. */
function draft(change: (draft: Draft) => void = () => {}): Draft {
  const made: Draft = {
    kind: "command",
    type: "Memory.Set",
    data: { key: "/a" },
    metadata: { id: "m1", timestamp: 5, correlation: "c1" },
  };
  change(made);
  return made;
}

function refusal(value: unknown) {
  const checked = checkMessage(value);
  if (checked.kind === "accepted") throw new Error(`accepted: ${JSON.stringify(value)}`);
  return checked;
}

describe("fields", () => {
  test("[M1] each of the four fields is required", () => {
    for (const field of ["kind", "type", "data", "metadata"]) {
      const { code, message } = refusal(draft((d) => delete d[field]));
      expect(code).toBe(422);
      expect(message.startsWith(`${field}: `)).toBe(true);
    }
  });

  test("[M1] an unknown field beside the four is refused, with a hint where it belongs", () => {
    expect(refusal(draft((d) => (d["traceparent"] = "x"))).message).toBe(
      "traceparent: is not a field of a message; put it under metadata",
    );
  });

  test("[M1] a value that is not an object is not a message", () => {
    for (const value of [42, [], null, "x", true]) expect(refusal(value).message).toContain("must be an object");
  });

  test("[M1] data may be any JSON, null and false included", () => {
    for (const data of [null, false, 0, "", [], {}]) {
      expect(checkMessage(draft((d) => (d["data"] = data))).kind).toBe("accepted");
    }
  });

  test("[M2] each of the five kinds is accepted, and no other", () => {
    for (const kind of KINDS) {
      const made = draft((d) => {
        d["kind"] = kind;
        d["data"] = { code: 500, message: "m" };
        d.metadata["causation"] = "p1";
      });
      expect(checkMessage(made).kind).toBe("accepted");
    }
    for (const kind of ["Command", "", "events", null, 1, "toString"]) {
      expect(refusal(draft((d) => (d["kind"] = kind))).message).toContain("kind: must be one of command, query");
    }
  });

  test("[M3] a type is two PascalCase names", () => {
    for (const type of ["Memory.Get", "A.B", "A1.B2c", "Sys.RequestTimeout"]) expect(isMessageType(type)).toBe(true);
    const bad = [
      "memory.get",
      "Memory.get",
      "memory.Get",
      "MemoryGet",
      "A.B.C",
      "Echo",
      "Mem_ory.Get",
      "",
      ".",
      "A.",
      ".B",
    ];
    for (const type of [...bad, "1A.B", "A.B ", " A.B", "A..B", "A.B\n", "Ä.B", "A.Bé", "A.B."]) {
      expect(isMessageType(type)).toBe(false);
      expect(refusal(draft((d) => (d["type"] = type))).message).toContain("type: must be two PascalCase names");
    }
  });

  test("[M3] the type scan agrees with the grammar as a regular expression", () => {
    const grammar = /^[A-Z][a-zA-Z0-9]*\.[A-Z][a-zA-Z0-9]*$/;
    const near = fc.string({
      unit: fc.constantFrom("A", "Z", "a", "z", "0", "9", ".", "_", "@", "[", "`", "{", "/", ":"),
      maxLength: 7,
    });
    fc.assert(
      fc.property(near, (text) => isMessageType(text) === grammar.test(text)),
      { numRuns: 2_000 },
    );
  });

  test("[M3] a type has at most 261 characters", () => {
    expect(isMessageType(`A.B${"c".repeat(258)}`)).toBe(true);
    expect(isMessageType(`A.B${"c".repeat(259)}`)).toBe(false);
  });
});

describe("metadata", () => {
  test("[M4] id and timestamp are required", () => {
    for (const key of ["id", "timestamp"]) {
      expect(refusal(draft((d) => delete d.metadata[key])).message).toContain(`metadata.${key}: must be`);
    }
    for (const metadata of [null, [], "m", 1]) {
      expect(refusal(draft((d) => Object.assign(d, { metadata }))).message).toContain("metadata: must be an object");
    }
  });

  test("[M4] a timestamp is a non-negative safe integer", () => {
    for (const timestamp of [0, 1, Number.MAX_SAFE_INTEGER]) {
      expect(checkMessage(draft((d) => (d.metadata["timestamp"] = timestamp))).kind).toBe("accepted");
    }
    for (const timestamp of [-1, 1.5, "5", null, 2 ** 53, true]) {
      const { message } = refusal(draft((d) => (d.metadata["timestamp"] = timestamp)));
      expect(message).toBe(`metadata.timestamp: must be a non-negative integer, got ${JSON.stringify(timestamp)}`);
    }
  });

  test("[M4] ids, correlation and causation are strings of 1 to 255 characters", () => {
    for (const key of ["id", "correlation", "causation"]) {
      expect(checkMessage(draft((d) => (d.metadata[key] = "x".repeat(255)))).kind).toBe("accepted");
      for (const value of ["", "x".repeat(256), 1, {}, false]) {
        expect(refusal(draft((d) => (d.metadata[key] = value))).message).toContain(`metadata.${key}: must be a string`);
      }
    }
    expect(refusal(draft((d) => (d.metadata["correlation"] = null))).message).toContain("metadata.correlation");
  });

  test("[M50] a causation of null counts as absent and stays unchanged", () => {
    const checked = checkMessage(draft((d) => (d.metadata["causation"] = null)));
    if (checked.kind === "refused") throw new Error(checked.message);
    expect(causationOf(checked.message)).toBe(undefined);
    expect(checked.message.metadata.causation).toBe(null);
  });

  test("[M4] a reply or an error needs a causation other than null", () => {
    for (const kind of ["reply", "error"]) {
      for (const causation of [{}, { causation: null }]) {
        const made = draft((d) => {
          d["kind"] = kind;
          d["data"] = { code: 404, message: "m" };
          Object.assign(d.metadata, causation);
        });
        expect(refusal(made).message).toContain("metadata.causation: is required");
      }
    }
  });

  test("[M50] unknown metadata is kept: the accepted message is the given value", () => {
    const made = draft((d) => (d.metadata["traceparent"] = "00-1-2-01"));
    const checked = checkMessage(made);
    expect(checked.kind === "accepted" && (checked.message as unknown) === made).toBe(true);
  });
});

describe("refusals", () => {
  test("[M51] a refusal contains the readable id, type and correlation", () => {
    expect(refusal(draft((d) => (d["kind"] = "nope")))).toEqual({
      kind: "refused",
      code: 422,
      message: 'kind: must be one of command, query, event, reply, error; got "nope"',
      id: "m1",
      type: "Memory.Set",
      correlation: "c1",
    });
    const { id, type, correlation } = refusal({ kind: "x", type: "x", metadata: { id: "", correlation: "\ud800" } });
    expect([id, type, correlation]).toEqual([undefined, undefined, undefined]);
  });

  test("[M5] reading a refused value runs none of its code", () => {
    let ran = 0;
    const trap = Object.defineProperty({}, "metadata", { enumerable: true, get: () => ran++ });
    expect(refusal(trap).message).toBe("metadata: must be data, got an accessor");
    expect(ran).toBe(0);
  });

  test("[M5] the text of a refusal is clean and short for any input", () => {
    const key = `\0\ud800${"k".repeat(9_000)}`;
    const { message } = refusal(draft((d) => (d["data"] = { [key]: 1 })));
    expect(message.isWellFormed() && !message.includes("\0")).toBe(true);
    expect(message.length).toBeLessThan(200);
    expect(refusal(draft((d) => (d["kind"] = "k".repeat(9_000)))).message.length).toBeLessThan(200);
  });

  test("[M5] a refusal names the place down to the element", () => {
    const data = { items: [{}, { "odd key": [1, Number.NaN] }] };
    expect(refusal(draft((d) => (d["data"] = data))).message).toBe(
      'data.items[1]["odd key"][1]: must be a finite number, got NaN',
    );
  });
});

test("[M1] every valid message is accepted and survives a JSON round trip", () => {
  fc.assert(
    fc.property(message, (made) => {
      expect(checkMessage(made).kind).toBe("accepted");
      const again = checkEnvelope(JSON.parse(JSON.stringify(made)));
      if (again.kind === "refused") throw new Error(again.message);
      expect(equal(again.message, made)).toBe(true);
    }),
  );
});
