import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { GENESIS, RowHasher, type SignedColumns } from "../../../src/store/sqlite/journal-hash.ts";

/** Few of each, so that neighbours often share some columns and seldom all. */
const columns: fc.Arbitrary<SignedColumns> = fc.record({
  createdAt: fc.constantFrom(1_700_000_000.125, 1_700_000_000.25),
  timestamp: fc.constantFrom(null, 0, 1_700_000_000_000),
  kind: fc.constantFrom("event", "command"),
  type: fc.constantFrom("Order.Placed", "Order.Paid"),
  topic: fc.constantFrom("order.placed", "order.paid"),
  source: fc.constantFrom("shop", "till"),
  messageId: fc.constantFrom("a", "b"),
  correlation: fc.constantFrom(null, "c"),
  causation: fc.constantFrom(null, "d"),
  metadata: fc.constantFrom(null, "{}"),
  payload: fc.constantFrom("1", '"ü"'),
});

describe("hashes of rows", () => {
  test("[S87] the cache of columns shared with the previous row does not change a hash", () => {
    fc.assert(
      fc.property(fc.array(columns, { maxLength: 20 }), (rows) => {
        const hasher = new RowHasher();
        let previous = GENESIS;
        for (const [at, row] of rows.entries()) {
          const hash = hasher.hash(previous, at + 1, row);
          expect(hash).toBe(new RowHasher().hash(previous, at + 1, row));
          previous = hash;
        }
      }),
    );
  });

  test("[S87] the hash of a row is the same as in existing files", () => {
    const row: SignedColumns = {
      createdAt: 1_700_000_000.125,
      timestamp: null,
      kind: "event",
      type: "Order.Placed",
      topic: "order.placed",
      source: "shop",
      messageId: "0198f0c2-7b3a-7c11-8000-000000000001",
      correlation: "request-1",
      causation: null,
      metadata: null,
      payload: '{"order":100000}',
    };
    const first = new RowHasher().hash(GENESIS, 1, row);
    expect(first).toBe("CHvNQaB4-oSWIuvGdPxUqJM4MwrWNkKiXpJMALNzPi0");
    const other = { ...row, timestamp: 5, causation: "x", metadata: "{}" };
    expect(new RowHasher().hash(first, 2, other)).toBe("_5ycCbFZ57Dhdmk-mXnTY2YCFbVzAeyRttRJvwLprrk");
  });
});
