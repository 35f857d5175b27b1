/** Times in declarations: milliseconds, or a number with a unit. One parser for all of them. SPEC: A30. */
import { TIMER_DELAY_MS_MAX } from "../limits.ts";
import { show } from "../message/problem.ts";

type Unit = "ms" | "s" | "min" | "h" | "d";

/** Milliseconds, or text like `"5 min"`. */
export type Duration = number | `${number} ${Unit}`;

const UNIT_MS: Readonly<Record<Unit, number>> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 };
const FORM = /^(\d+(?:\.\d+)?) (ms|s|min|h|d)$/;

/** The duration in milliseconds, or a sentence with the problem. */
export function parseDuration(duration: Duration): number | { readonly problem: string } {
  const [, amount, unit] = (typeof duration === "string" && FORM.exec(duration)) || [];
  const ms = unit === undefined ? duration : Number(amount) * UNIT_MS[unit as Unit];
  if (typeof ms === "number" && ms >= 0 && ms <= TIMER_DELAY_MS_MAX) return ms;
  return {
    problem: `must be milliseconds or text like "5 min" (ms, s, min, h, d), up to 100 years; got ${show(duration)}`,
  };
}

/** The duration in milliseconds; throws for any other value. */
export function durationMs(duration: Duration, what: string): number {
  const ms = parseDuration(duration);
  if (typeof ms === "number") return ms;
  throw new TypeError(`${what} ${ms.problem}`);
}
