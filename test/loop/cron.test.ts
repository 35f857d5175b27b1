/** The next moment of a cron expression: calendars, time zones, and refusals. */
import { describe, expect, test } from "#test";
import { forbidRealTime } from "../../src/host/real-time-guard.ts";
import { cronProblem, nextOccurrence } from "../../src/work/cron.ts";

const next = (expression: string, after: string, timezone?: string) => {
  const at = nextOccurrence(expression, Date.parse(after), timezone);
  return at === undefined ? undefined : new Date(at).toISOString();
};

describe("cron", () => {
  const moments: readonly [
    what: string,
    expression: string,
    after: string,
    timezone: string | undefined,
    at: string,
  ][] = [
    ["every minute", "* * * * *", "2026-01-31T23:59:30Z", undefined, "2026-02-01T00:00:00.000Z"],
    ["with seconds", "*/20 * * * * *", "2026-01-01T00:00:20.5Z", undefined, "2026-01-01T00:00:40.000Z"],
    ["on weekdays", "0 9 * * 1-5", "2026-11-13T09:00:00Z", undefined, "2026-11-16T09:00:00.000Z"],
    ["on the last day of a month", "0 0 L * *", "2028-02-10T00:00:00Z", undefined, "2028-02-29T00:00:00.000Z"],
    ["on a leap day", "0 0 29 2 *", "2026-01-01T00:00:00Z", undefined, "2028-02-29T00:00:00.000Z"],
    ["by a nickname", "@daily", "2026-01-01T00:00:00Z", undefined, "2026-01-02T00:00:00.000Z"],
    ["in a time zone", "0 9 * * *", "2026-07-01T08:00:00Z", "America/New_York", "2026-07-01T13:00:00.000Z"],
    [
      "skipped by clocks going forward",
      "30 2 * * *",
      "2026-03-28T12:00:00Z",
      "Europe/Berlin",
      "2026-03-29T01:00:00.000Z",
    ],
    [
      "twice by clocks going back, first",
      "30 2 * * *",
      "2026-10-24T12:00:00Z",
      "Europe/Berlin",
      "2026-10-25T00:30:00.000Z",
    ],
    [
      "twice by clocks going back, next",
      "30 2 * * *",
      "2026-10-25T00:30:00Z",
      "Europe/Berlin",
      "2026-10-26T01:30:00.000Z",
    ],
  ];
  for (const [what, expression, after, timezone, at] of moments) {
    test(`[T8] ${what}: ${expression} after ${after} is at ${at}`, () => {
      expect(next(expression, after, timezone)).toBe(at);
    });
  }

  test("[T8] the moment itself is not after itself", () => {
    expect(next("0 0 * * *", "2026-01-01T00:00:00Z")).toBe("2026-01-02T00:00:00.000Z");
    expect(next("0 0 * * *", "2025-12-31T23:59:59.999Z")).toBe("2026-01-01T00:00:00.000Z");
  });

  test("[T8] a cron schedule gets the time as argument and reads no clock, so that it can be simulated", () => {
    const guard = forbidRealTime();
    try {
      expect(next("0 9 * * 1-5", "2026-11-16T08:00:00Z", "Europe/Berlin")).toBe("2026-11-17T08:00:00.000Z");
      expect(cronProblem("*/5 * * * *")).toBe(undefined);
    } finally {
      guard.release();
    }
    expect(guard.violation).toBe(undefined);
  });

  test("[T8] a schedule that has an end has no moment after it", () => {
    expect(next("0 0 0 1 1 * 2027", "2026-06-01T00:00:00Z")).toBe("2027-01-01T00:00:00.000Z");
    expect(next("0 0 0 1 1 * 2027", "2027-01-01T00:00:00Z")).toBe(undefined);
  });

  const wrong: readonly [expression: unknown, timezone: unknown, problem: RegExp][] = [
    ["every day", undefined, /^cron: "every day" is not a schedule: /],
    ["60 * * * *", undefined, /^cron: "60 \* \* \* \*" is not a schedule: .*minute: 60/],
    ["*/0 * * * *", undefined, /^cron: .*stepping/],
    ["", undefined, /^cron: must be an expression of at most 255 characters/],
    [`${"1,".repeat(200)}1 * * * *`, undefined, /^cron: must be an expression of at most 255 characters/],
    [5, undefined, /^cron: must be an expression .*got 5/],
    ["0 0 30 2 *", undefined, /^cron: "0 0 30 2 \*" never comes due/],
    ["2027-01-01T00:00:00", undefined, /^cron: .* is a date; use Timer.Set/],
    ["0 0 * * *", "Mars/Olympus", /^timezone: must be the name of a time zone, .*got "Mars\/Olympus"/],
    ["0 0 * * *", 3, /^timezone: .*got 3/],
  ];
  for (const [expression, timezone, problem] of wrong) {
    test(`[T8] ${JSON.stringify(expression).slice(0, 30)} in ${JSON.stringify(timezone) ?? "UTC"} is refused`, () => {
      expect(cronProblem(expression, timezone)).toMatch(problem);
    });
  }

  test("[T8] a valid schedule has no problem", () => {
    expect(cronProblem("0 9 * * 1-5")).toBe(undefined);
    expect(cronProblem("0 9 * * 1-5", "Europe/Berlin")).toBe(undefined);
  });
});
