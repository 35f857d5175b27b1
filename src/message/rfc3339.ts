/**
 * RFC 3339 times, as CloudEvents write them, to and from milliseconds. SPEC: M30.
 *
 * `Date.parse` is not used, because engines accept different formats besides the one of ECMAScript. Fractions below a
 * millisecond are cut off.
 */

const TIME = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/** 9999-12-31T23:59:59.999Z, the last time with four digits for the year. */
const TIME_MS_MAX = 253_402_300_799_999;
const MINUTE_MS = 60_000;

/** The time as text in UTC; undefined after the year 9999. */
export function formatTime(ms: number): string | undefined {
  return ms <= TIME_MS_MAX ? new Date(ms).toISOString() : undefined;
}

/** Milliseconds since 1970, negative before; undefined for an invalid time. A leap second counts as the next second. */
export function parseTime(text: string): number | undefined {
  const match = TIME.exec(text);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const [, , , , , , , fraction = "", sign, offsetHour = "0", offsetMinute = "0"] = match;
  if (hour > 23 || minute > 59 || second > 60 || Number(offsetHour) > 23 || Number(offsetMinute) > 59) return undefined;
  const midnight = dayStart(year, month, day);
  if (midnight === undefined) return undefined;
  const offsetMs = (Number(offsetHour) * 60 + Number(offsetMinute)) * MINUTE_MS * (sign === "-" ? -1 : 1);
  const fractionMs = Number(fraction.slice(0, 3).padEnd(3, "0"));
  return midnight + (hour * 60 + minute) * MINUTE_MS + second * 1_000 + fractionMs - offsetMs;
}

/** Undefined for a day that the calendar does not have. */
function dayStart(year: number, month: number, day: number): number | undefined {
  // In one call: `Date.UTC` reads the years 0 to 99 as 1900 to 1999.
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? date.getTime() : undefined;
}
