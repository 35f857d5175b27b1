import fc from "fast-check";
import { describe, expect, test } from "#test";
import { formatTime, fromCloudEvent, parseTime, toCloudEvent } from "../../src/message/cloud-events.ts";
import type { Message } from "../../src/message/envelope.ts";
import { equal } from "../../src/message/equality.ts";
import type { Json } from "../../src/message/json.ts";
import { cleanText, json, message } from "./arbitraries.ts";

function read(event: unknown, receivedAt = 77): Message {
  const checked = fromCloudEvent(event, receivedAt);
  if (checked.kind === "refused") throw new Error(checked.message);
  return checked.message;
}

function refusal(event: unknown): string {
  const checked = fromCloudEvent(event, 77);
  if (checked.kind === "accepted") throw new Error("accepted");
  return checked.message;
}

const foreign = { specversion: "1.0", id: "e1", source: "/shop", type: "com.shop.order_paid" };

describe("our form", () => {
  test("[M29] a message becomes a CloudEvent", () => {
    const made: Message = {
      kind: "command",
      type: "Memory.Set",
      data: { key: "/a" },
      metadata: {
        id: "m1",
        timestamp: 1_700_000_000_000,
        correlation: "c",
        causation: "p",
        traceparent: "00-1-2-01",
        tenant: 7,
        Odd: [1],
      },
    };
    expect(toCloudEvent(made, "/kernels/main")).toEqual({
      specversion: "1.0",
      id: "m1",
      source: "/kernels/main",
      type: "Memory.Set",
      time: "2023-11-14T22:13:20.000Z",
      datacontenttype: "application/json",
      millracekind: "command",
      correlationid: "c",
      causationid: "p",
      traceparent: "00-1-2-01",
      tenant: 7,
      millracemeta: '{"Odd":[1]}',
      data: { key: "/a" },
    });
    expect(() => toCloudEvent(made, "")).toThrow("needs a source");
  });

  test("[M29] every message is restored from the text of its event", () => {
    fc.assert(
      fc.property(message, (made) => {
        const text = JSON.stringify(toCloudEvent(made, "/k"));
        expect(equal(read(JSON.parse(text)), made)).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });

  test("[M29] every attribute has a name and a value that CloudEvents allow", () => {
    fc.assert(
      fc.property(message, (made) => {
        const { data: _, ...attributes } = toCloudEvent(made, "/k");
        for (const [name, value] of Object.entries(attributes)) {
          expect(name).toMatch(/^[a-z0-9]{1,20}$/);
          if (typeof value !== "string") expect(typeof value === "boolean" || (Number(value) | 0) === value).toBe(true);
          else expect(/[\0-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]/.test(value) || value === "").toBe(false);
        }
      }),
    );
  });

  test("[M29] metadata with the maximum number of keys is restored", () => {
    const extra = Object.fromEntries(Array.from({ length: 1_022 }, (_, i) => [`k${i}`, i]));
    const made: Message = { kind: "event", type: "A.B", data: null, metadata: { ...extra, id: "m", timestamp: 0 } };
    expect(equal(read(toCloudEvent(made, "/k")), made)).toBe(true);
  });

  test("[M29] metadata named cloudevent that we did not write is carried like other metadata", () => {
    const cloudevent = { attributes: { ...foreign, time: "2020-01-01T00:00:00Z" }, data: "json" };
    const made: Message = { kind: "query", type: "A.B", data: 1, metadata: { id: "m", timestamp: 5, cloudevent } };
    expect(toCloudEvent(made, "/k")["millracekind"]).toBe("query");
    expect(equal(read(toCloudEvent(made, "/k")), made)).toBe(true);
  });
});

describe("the foreign form", () => {
  test("[M30] a foreign event becomes an event with its extensions as metadata", () => {
    const made = read({ ...foreign, time: "2023-11-14T22:13:20Z", correlationid: "c", traceparent: "t", data: [1] });
    expect(made.kind).toBe("event");
    expect(made.type).toBe("Com.ShopOrderPaid");
    expect(made.data).toEqual([1]);
    expect([
      made.metadata.id,
      made.metadata.timestamp,
      made.metadata.correlation,
      made.metadata["traceparent"],
    ]).toEqual(["e1", 1_700_000_000_000, "c", "t"]);
  });

  test("[M30] a foreign event has its own type, that of its topic, or the general one", () => {
    expect(read({ ...foreign, type: "Order.Paid" }).type).toBe("Order.Paid");
    expect(read({ ...foreign, type: "tick" }).type).toBe("Topic.Tick");
    expect(read({ ...foreign, type: "https://shop/types#paid" }).type).toBe("CloudEvent.Received");
  });

  test("[M55] a foreign event may have neither time nor data", () => {
    const made = read(foreign, 123);
    expect(made.metadata.timestamp).toBe(123);
    expect(made.data).toBe(null);
    expect(toCloudEvent(made, "/k")).toEqual(foreign);
  });

  test("[M30] every foreign event is restored with every attribute", () => {
    const value: fc.Arbitrary<Json> = fc.oneof(cleanText, fc.boolean(), fc.integer());
    const name = fc.oneof(
      fc.string({ unit: fc.constantFrom("a", "z", "0", "9"), minLength: 1, maxLength: 24 }),
      fc.constantFrom(
        "timestamp",
        "correlation",
        "causation",
        "cloudevent",
        "correlationid",
        "causationid",
        "millracemeta",
        "millracekind",
        "kind",
        "constructor",
      ),
    );
    const text = cleanText.map((inner) => `x${inner}`);
    const time = fc.constantFrom("2023-11-14T22:13:20.123456789Z", "2024-02-29T23:59:60+05:30", "1970-01-01t00:00:00z");
    const data = fc.oneof(
      fc.constant({}),
      fc.record({ data: json }),
      fc.record({ data_base64: fc.constantFrom("AAEC", "") }),
    );
    const event = fc
      .record({
        extensions: fc.dictionary(name, value, { maxKeys: 5 }),
        core: fc.record({ id: text, source: text, type: fc.oneof(text, fc.constantFrom("a.b", "A.B")) }),
        more: fc.record({ time, subject: text, dataschema: text, datacontenttype: text }, { requiredKeys: [] }),
        data,
      })
      .map(({ extensions, core, more, data }) => ({ ...extensions, specversion: "1.0", ...core, ...more, ...data }));
    fc.assert(
      fc.property(event, (given) => {
        expect(equal(toCloudEvent(read(given), "/k"), given)).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });

  test("[M30] an event with our mark but binary data is foreign, and its data is kept", () => {
    const event = { ...foreign, millracekind: "command", data_base64: "AAEC" };
    expect(read(event).kind).toBe("event");
    expect(read(event).data).toBe("AAEC");
    expect(toCloudEvent(read(event), "/k")).toEqual(event);
  });

  test("[M55] an attribute that is null is not set", () => {
    expect(toCloudEvent(read({ ...foreign, subject: null, time: null }), "/k")).toEqual(foreign);
  });
});

describe("refusals", () => {
  test("[M31] a value that is not a CloudEvent 1.0 is refused with the reason", () => {
    for (const value of [null, [], 1, "x"]) expect(refusal(value)).toContain("a CloudEvent must be an object");
    expect(refusal({ ...foreign, specversion: "0.3" })).toBe('specversion: must be "1.0", got "0.3"');
    for (const name of ["id", "source", "type"]) {
      expect(refusal({ ...foreign, [name]: "" })).toContain(`${name}: must be a non-empty string`);
    }
    expect(refusal({ ...foreign, time: "yesterday" })).toContain("time: must be an RFC 3339 time");
    expect(refusal({ ...foreign, data: 1, data_base64: "" })).toContain("excludes data");
    expect(refusal({ ...foreign, camelCase: 1 })).toContain("an attribute name has only a-z and 0-9");
    expect(refusal({ ...foreign, nested: {} })).toContain("nested: must be a string, a boolean or a 32-bit integer");
    expect(refusal({ ...foreign, half: 0.5 })).toContain("half: must be");
    expect(refusal({ ...foreign, data: Number.NaN })).toContain("data: must be a finite number");
  });

  test("[M31] an event before 1970 is refused", () => {
    expect(refusal({ ...foreign, time: "1969-12-31T23:59:59Z" })).toContain("metadata.timestamp: must be");
  });

  test("[M31] metadata text that we did not write is kept unchanged", () => {
    const event = { ...foreign, type: "A.B", millracekind: "event", millracemeta: "not json", data: 1 };
    expect(read(event).metadata["millracemeta"]).toBe("not json");
  });
});

describe("times", () => {
  test("[M30] every millisecond until the year 9999 is restored", () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: 253_402_300_799_999 }), (ms) => parseTime(formatTime(ms)!) === ms));
    expect(formatTime(253_402_300_800_000)).toBe(undefined);
  });

  test("[M30] offsets, fractions and leap seconds of a time are parsed", () => {
    expect(parseTime("1970-01-01T01:00:00+01:00")).toBe(0);
    expect(parseTime("1969-12-31T23:30:00-00:30")).toBe(0);
    expect(parseTime("1970-01-01T00:00:00.1Z")).toBe(100);
    expect(parseTime("1970-01-01T00:00:00.0019Z")).toBe(1);
    expect(parseTime("2016-12-31T23:59:60Z")).toBe(parseTime("2017-01-01T00:00:00Z"));
    expect(parseTime("0099-01-01T00:00:00Z")).toBe(-59_042_995_200_000);
  });

  test("[M31] days and hours that do not exist are refused", () => {
    const bad = ["2023-02-29", "2023-13-01", "2023-00-10", "2023-04-31", "2023-01-00"].map((day) => `${day}T00:00:00Z`);
    for (const text of [
      ...bad,
      "2023-01-01T24:00:00Z",
      "2023-01-01T00:60:00Z",
      "2023-01-01T00:00:61Z",
      "2023-01-01T00:00:00",
      "2023-01-01 00:00:00Z",
      "2023-01-01T00:00:00+24:00",
      "",
    ]) {
      expect(parseTime(text)).toBe(undefined);
    }
  });
});
