/** Lines about faults: each is shown, and one that repeats itself fills no log. */
import { describe, expect, test } from "vitest";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { FaultLines } from "../../src/kernel/fault-lines.ts";
import type { Message } from "../../src/message/envelope.ts";

function setup() {
  const host = simulatedHost(1);
  const shown: string[] = [];
  const lines = new FaultLines(host, (text) => void shown.push(text));
  const full = (capability: string) => lines.observe(overload(capability));
  return { host, shown, lines, full };
}

function overload(capability: string): Message {
  const data = { capability, reason: "its mailbox is full" };
  return { kind: "event", type: "Sys.Overload", data, metadata: { id: "o", timestamp: 1 } };
}

describe("lines about faults", () => {
  test("[K168] the same fault line is shown once a second, then with the number left out", async () => {
    const { host, shown, full } = setup();
    for (let n = 0; n < 10_000; n++) full("a");
    full("b");
    await host.advance(999);
    full("a");
    expect(shown).toEqual(["a: its mailbox is full", "b: its mailbox is full"]);
    await host.advance(1);
    full("a");
    full("a");
    full("b");
    expect(shown.slice(2)).toEqual([
      "a: its mailbox is full (left out since it was last shown: 10000)",
      "b: its mailbox is full",
    ]);
    await host.advance(1_000);
    full("a");
    expect(shown.at(-1)).toBe("a: its mailbox is full (left out since it was last shown: 1)");
  });

  test("[K168] of many different fault lines the oldest are dropped, and shown again", () => {
    const { shown, full } = setup();
    for (let n = 0; n <= 256; n++) full(`a${n}`);
    full("a256");
    full("a0");
    expect(shown).toHaveLength(258);
    expect(shown.at(-1)).toBe("a0: its mailbox is full");
  });

  test("[K53] ordinary work causes no fault line", () => {
    const { shown, lines } = setup();
    lines.observe({ ...overload("a"), type: "Sys.Routed" });
    expect(shown).toEqual([]);
  });
});
