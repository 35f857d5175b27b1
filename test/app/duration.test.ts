/** Times in declarations. */
import { describe, expect, test } from "#test";
import { durationMs, parseDuration } from "../../src/app/duration.ts";
import { TIMER_DELAY_MS_MAX } from "../../src/limits.ts";

describe("durations", () => {
  test("[A30] a number is milliseconds, and text is a number with a unit", () => {
    const durations = [250, "250 ms", "1.5 s", "5 min", "2 h", "1 d"] as const;
    expect(durations.map((duration) => parseDuration(duration))).toEqual([
      ...[250, 250, 1_500, 300_000, 7_200_000, 86_400_000],
    ]);
  });

  test("[A30] other text, negative times and times of more than 100 years are refused with the reason", () => {
    for (const wrong of ["5", "5m", "5 minutes", -1, Number.NaN, TIMER_DELAY_MS_MAX + 1, "40000 d"])
      expect(() => durationMs(wrong as never, "timeout")).toThrow("timeout must be milliseconds or text like");
  });
});
