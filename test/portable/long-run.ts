/**
 * Long runs. `npm run test:long` sets `TEST_LONG=1` for the tests on Node. Each long part has a budget in minutes, so
 * that the whole run ends within an hour on two cores; `--whole` (`TEST_WHOLE=1`) removes the budgets. Lines that begin
 * with `counted:` are added up by `scripts/check.ts` and printed at the end of the run. SPEC: K110-K113.
 */

const env: Readonly<Record<string, string | undefined>> = globalThis.process.env;

/** The one switch of all long forms. An empty text is not a long run. */
export const isLongRun = env["TEST_LONG"] === "1";
const hasBudget = env["TEST_WHOLE"] !== "1";
/** Caps every budget, to try the long form of one file: `TEST_LONG=1 TEST_MINUTES=0.2 npx vitest run FILE`. */
const minutesMax = Number(env["TEST_MINUTES"] ?? "") || Number.POSITIVE_INFINITY;

/** Time between two lines of progress. */
const PROGRESS_MS = 30_000;

export interface LongPart {
  readonly name: string;
  /** Rounds of the short form. */
  readonly short: number;
  /** Rounds of the long form, unless its minutes are over before. */
  readonly long: number;
  readonly minutes: number;
}

/** Rounds of the present form. */
export function roundsMax({ short, long }: LongPart): number {
  return isLongRun ? long : short;
}

/** Milliseconds after which a test of this part has hung: its budget, and ten minutes for a machine that is busy. */
export function timeoutMs(part: LongPart): number {
  if (!isLongRun) return 600_000;
  return hasBudget ? 600_000 + part.minutes * 120_000 : 24 * 3_600_000;
}

/**
 * Decides whether a long part goes on. The short form makes all its rounds and looks at no clock; the long form makes
 * at least those, and ends with its budget. The clock is taken when this file is loaded, because a simulation replaces
 * the global one.
 */
export class Rounds {
  readonly #part: LongPart;
  readonly #now: () => number;
  readonly #startMs: number;
  #toldMs: number;
  #done = 0;

  constructor(part: LongPart, now: () => number = realNow) {
    this.#part = part;
    this.#now = now;
    this.#startMs = now();
    this.#toldMs = this.#startMs;
  }

  get done(): number {
    return this.#done;
  }

  /** Whether another round is to be made, after `done` of them. Prints progress in a long run. */
  goesOn(done: number): boolean {
    this.#done = done;
    const { name, short, minutes } = this.#part;
    if (done >= roundsMax(this.#part)) return false;
    if (!isLongRun) return true;
    const nowMs = this.#now();
    if (nowMs - this.#toldMs >= PROGRESS_MS) {
      this.#toldMs = nowMs;
      const spent = ((nowMs - this.#startMs) / 60_000).toFixed(1);
      console.log(`${name}: ${done} of ${roundsMax(this.#part)}, ${spent} of ${hasBudget ? minutes : "any"} minutes`);
    }
    return done < short || !hasBudget || nowMs - this.#startMs < Math.min(minutes, minutesMax) * 60_000;
  }
}

/** Yields 1, 2, 3 and so on, for each round of a part. */
export function* rounds(part: LongPart): Generator<number, void> {
  const budget = new Rounds(part);
  for (let done = 0; budget.goesOn(done); done++) yield done + 1;
}

/** Tells the runner how much was done; counts of the same thing are added up. */
export function counted(count: number, what: string): void {
  console.log(`counted: ${count} ${what}`);
}

const realNow = performance.now.bind(performance);
