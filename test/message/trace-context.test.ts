import { describe, expect, test } from "#test";
import { causedBy, childOf, spanIdOf } from "../../src/message/lineage.ts";

const TRACE = "00-0af7651916cd43dd8448eb211c80319c";
const ID = "019a8b5c-6d7e-7f80-8a9b-0c1d2e3f4a5b";

describe("trace context", () => {
  test("[M38] a consequence has the span of its cause as parent, in the same trace", () => {
    const first = {
      metadata: { id: ID, timestamp: 1, traceparent: `${TRACE}-b7ad6b7169203331-01`, tracestate: "a=1" },
    };
    const child = causedBy(first);
    expect(child).toEqual({ causation: ID, traceparent: `${TRACE}-8a9b0c1d2e3f4a5b-01`, tracestate: "a=1" });
    const second = { metadata: { ...child, id: ID.replace("8a9b", "9a9b"), timestamp: 1 } };
    expect(causedBy(second)["traceparent"]).toBe(`${TRACE}-9a9b0c1d2e3f4a5b-01`);
  });

  test("[M38] every id has a span id of 16 digits, not all zero; different ids have different ones", () => {
    const ids = [ID, "", "x", "x".repeat(255), "00000000-0000-0000-0000-000000000000", "q1", "q2"];
    const spans = ids.map(spanIdOf);
    for (const span of spans) expect(span).toMatch(/^(?!0{16})[0-9a-f]{16}$/);
    expect(new Set(spans).size).toBe(ids.length);
  });

  test("[M38] an invalid trace context is passed on unchanged, and fields of later versions are kept", () => {
    for (const context of ["", "00-1-2-01", "00-1", `${TRACE}-b7ad6b7169203331`])
      expect(childOf(context, ID)).toBe(context);
    expect(childOf(`cc${TRACE.slice(2)}-b7ad6b7169203331-01-more`, ID)).toBe(
      `cc${TRACE.slice(2)}-8a9b0c1d2e3f4a5b-01-more`,
    );
  });
});
