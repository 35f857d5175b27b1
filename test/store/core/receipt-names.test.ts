/** Names of receipts, and the data in them. */
import { describe, expect, test } from "#test";
import { eventOf, type Invocation, isReceiptName, madeAt, receiptOf } from "../../../src/store/receipt-name.ts";

const TIMED = "0199a3f2-0001-7000-8000-000000000001";
const MADE_AT_MS = 0x0199_a3f2_0001;

/** Ids that try to look like the name of another invocation. */
const IDS = ["a", "a b", "a b 1", "stream:a", "event:a b 1", "a:b", " ", TIMED, `${TIMED} worker 36`];
const SUBSCRIBERS = ["b", "b 1", "worker user.*", "1"];

describe("names of receipts", () => {
  test("[U14] no two invocations share a receipt name", () => {
    const invocations: Invocation[] = IDS.flatMap((id) => [
      { kind: "command", id },
      { kind: "send", id },
      ...SUBSCRIBERS.map((subscriber): Invocation => ({ kind: "event", id, subscriber })),
    ]);
    const names = invocations.map((invocation) => receiptOf(invocation).id);
    expect(new Set(names).size).toBe(invocations.length);
    expect(names.every(isReceiptName)).toBe(true);
    for (const [at, name] of names.entries()) {
      const invocation = invocations[at] as Invocation;
      expect(eventOf(name)).toEqual(invocation.kind === "event" ? invocation : undefined);
    }
  });

  test("[U14] a receipt name contains the time of its message's id, for ids of any length", () => {
    const longId = `${TIMED}#${"1".repeat(200)}`;
    for (const id of [TIMED, longId]) {
      expect(madeAt(receiptOf({ kind: "command", id }).id)).toBe(MADE_AT_MS);
      expect(madeAt(receiptOf({ kind: "send", id }).id)).toBe(MADE_AT_MS);
      expect(madeAt(receiptOf({ kind: "event", id, subscriber: "s" }).id)).toBe(MADE_AT_MS);
    }
    expect(madeAt(receiptOf({ kind: "command", id: "order-17" }).id)).toBeUndefined();
  });
});
