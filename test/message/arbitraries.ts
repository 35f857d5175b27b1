/** Generators of this room's property tests: pure JSON with odd keys, and valid messages of every kind. */
import fc from "fast-check";
import { KINDS, type Kind, type Message } from "../../src/message/envelope.ts";
import type { ErrorData } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";

/** Well-formed text without NUL, with the characters that formats and stores stumble over. */
export const cleanText: fc.Arbitrary<string> = fc
  .oneof(
    fc.string({ unit: "grapheme", maxLength: 8 }),
    fc.string({ unit: "binary", maxLength: 8 }),
    fc.constantFrom(
      "__proto__",
      "constructor",
      "prototype",
      "toString",
      "length",
      "0",
      "",
      '"\\',
      "\u2028",
      "\ufffe",
      "\u007f",
    ),
  )
  .map((text) => text.toWellFormed().replaceAll("\0", ""));

const number = fc
  .oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer())
  .map((value) => (Object.is(value, -0) ? 0 : value));

export const json: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, depthSize: "small" },
    fc.constantFrom<Json>(null, true, false),
    number,
    cleanText,
    fc.array(tie("value"), { maxLength: 5 }),
    object(tie("value")),
  ),
})).value;

/** Built with own properties, so that `__proto__` is a key. */
export function object(value: fc.Arbitrary<Json>): fc.Arbitrary<{ [key: string]: Json }> {
  return fc.array(fc.tuple(cleanText, value), { maxLength: 5 }).map((entries) => Object.fromEntries(entries));
}

const name = fc
  .tuple(fc.constantFrom("A", "Memory", "Z9", "Sys"), fc.string({ unit: fc.constantFrom("a", "B", "7"), maxLength: 5 }))
  .map(([head, tail]) => head + tail);

export const type: fc.Arbitrary<string> = fc.tuple(name, name).map((names) => names.join("."));

const id = cleanText.map((text) => `i${text}`);

const errorData: fc.Arbitrary<ErrorData> = fc.letrec<{ error: ErrorData }>((tie) => ({
  error: fc
    .record(
      {
        code: fc.integer({ min: 400, max: 599 }),
        message: cleanText,
        cause: fc.option(tie("error"), { nil: undefined, maxDepth: 3 }),
      },
      { requiredKeys: ["code", "message"] },
    )
    .map(({ cause, ...rest }) => (cause === undefined ? rest : { ...rest, cause })),
})).error;

const extra = fc.dictionary(
  fc.oneof(
    cleanText,
    fc.constantFrom(
      "traceparent",
      "tracestate",
      "subject",
      "time",
      "source",
      "data",
      "cloudevent",
      "correlationid",
      "millracemeta",
      "lower7",
    ),
  ),
  json,
  { maxKeys: 4 },
);

function messageOf(kind: Kind): fc.Arbitrary<Message> {
  const answers = kind === "reply" || kind === "error";
  const data: fc.Arbitrary<Json> = kind === "error" ? errorData : json;
  return fc
    .record({
      type,
      data,
      extra,
      id,
      timestamp: fc.oneof(fc.maxSafeNat(), fc.integer({ min: 0, max: 2 ** 42 })),
      correlation: fc.option(id),
      causation: answers ? id : fc.option(id, { nil: undefined }),
      nullCausation: fc.boolean(),
    })
    .map(({ extra, correlation, causation, nullCausation, ...fields }) => ({
      kind,
      type: fields.type,
      data: fields.data,
      metadata: {
        ...extra,
        id: fields.id,
        timestamp: fields.timestamp,
        ...(correlation === null ? {} : { correlation }),
        ...(causation !== undefined ? { causation } : nullCausation ? { causation: null } : {}),
      },
    }));
}

export const message: fc.Arbitrary<Message> = fc.oneof(...KINDS.map(messageOf));
