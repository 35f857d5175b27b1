import { describe, expect, test } from "#test";
import * as limits from "../../src/limits.ts";

describe("limits", () => {
  test("[H1] every limit is a positive whole number, or a version", () => {
    for (const [name, value] of Object.entries(limits)) {
      const sound =
        typeof value === "string" ? /^\d+\.\d+\.\d+$/.test(value) : Number.isSafeInteger(value) && value > 0;
      if (!sound) throw new Error(`${name} is ${value}`);
    }
  });

  test("[H1] limits that depend on each other agree", () => {
    expect(limits.TIMER_CHUNK_MS).toBe(2 ** 31 - 1);
    expect(limits.TIMER_DELAY_MS_MAX).toBe(100 * 365.25 * 24 * 3_600_000);
    expect(limits.LINE_BYTES_MAX < limits.UNREAD_OUTPUT_BYTES_MAX).toBe(true);
    expect(limits.POLL_INTERVAL_MS < limits.LEASE_MS).toBe(true);
    expect(limits.BACKOFF_START_MS < limits.BACKOFF_MAX_MS).toBe(true);
  });
});
