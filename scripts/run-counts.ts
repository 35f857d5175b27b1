/**
 * How much a run of the tests did: disks rebuilt, kills, simulated events. Tests print lines like `counted: 25 kills of
 * a clone`; they are added up by name, and the run ends with them. A number of README.md before a counted name must
 * have been reached. SPEC: K112, K113.
 */
const LINE = /^counted: (\d+) (.+)$/gm;
/** The sequences that a terminal takes as colours. */
const COLOURS = /\u001b\[[\d;]*m/g;

export class RunCounts {
  readonly #totals = new Map<string, number>();

  /** Takes the whole output of one step. */
  add(output: string): void {
    for (const [, count, what] of output.replaceAll(COLOURS, "").matchAll(LINE)) {
      const name = (what as string).trimEnd();
      this.#totals.set(name, (this.#totals.get(name) ?? 0) + Number(count));
    }
  }

  /** One line each, by name. */
  lines(): readonly string[] {
    const sorted = [...this.#totals].toSorted(([a], [b]) => (a < b ? -1 : 1));
    return sorted.map(([what, count]) => `${count.toLocaleString("en-US").padStart(10)} ${what}`);
  }

  /** One sentence for each number of the text that is larger than this run's: `6,180 disks rebuilt`. */
  excessesOf(text: string): readonly string[] {
    return [...this.#totals].flatMap(([what, count]) => {
      const claims = [...text.matchAll(new RegExp(`([\\d,]*\\d) ${what}`, "g"))].map(([, claim]) => claim as string);
      return claims
        .filter((claim) => Number(claim.replaceAll(",", "")) > count)
        .map((claim) => `README.md says ${claim} ${what}; this run counted ${count.toLocaleString("en-US")}`);
    });
  }
}
