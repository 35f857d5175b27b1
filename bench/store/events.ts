/** The events of the store benchmarks: about 200 bytes of JSON each, made before the clock starts. */
import { systemHost } from "../../src/host/system-host.ts";
import type { JournalEntry } from "../../src/store/journal.ts";

export const TOPIC = "order.placed";
const host = systemHost();

/** Events to be appended, all starting at the same status. */
export function makeEntries(count: number, as: JournalEntry["as"] = { status: "pending" }): readonly JournalEntry[] {
  return Array.from({ length: count }, (_, index) => makeEntry(index, as));
}

function makeEntry(index: number, as: JournalEntry["as"]): JournalEntry {
  return {
    topic: TOPIC,
    source: "shop",
    as,
    message: {
      kind: "event",
      type: "Order.Placed",
      data: {
        order: 100_000 + index,
        customer: "0198f0c2-7b3a-7c11",
        lines: [
          { sku: "A-1174", quantity: 2, price: 1999 },
          { sku: "B-0032", quantity: 1, price: 499 },
        ],
        total: 4497,
        currency: "EUR",
        note: "leave it at the door",
      },
      metadata: { id: host.id(), timestamp: host.now(), correlation: `request-${index >> 3}` },
    },
  };
}

/** Cuts a list into pieces of a size; the last may be smaller. */
export function pieces<Item>(items: readonly Item[], size: number): readonly (readonly Item[])[] {
  const out: Item[][] = [];
  for (let at = 0; at < items.length; at += size) out.push(items.slice(at, at + size));
  return out;
}
