import fc from "fast-check";
import { describe, expect, test } from "#test";
import { isWithin, labelOf } from "../../src/store/label.ts";
import { type Program, programs, runTwin, streamPrograms } from "./twin-program.ts";

/** What observers with this clearance or less were shown. */
async function sight(program: Program, world: 0 | 1, secret: readonly string[], clearance: readonly string[]) {
  const notes = await runTwin(program, world, secret);
  return notes
    .filter((note) => isWithin(note.clearance, labelOf(clearance)))
    .map(({ clearance: of, what }) => [of, what]);
}

describe("twin runs", () => {
  for (const [secret, clearance] of [
    [["b"], ["a"]],
    [["a", "b"], []],
  ] as const) {
    for (const [what, of, numRuns] of [
      ["cells and processes", programs, 400],
      ["streams and events", streamPrograms, 600],
    ] as const) {
      test(`[F1] [I8] whoever may know [${clearance}] sees the same of ${what} whatever is labelled [${secret}]`, async () => {
        await fc.assert(
          fc.asyncProperty(of, async (program) => {
            expect(await sight(program, 1, secret, clearance)).toEqual(await sight(program, 0, secret, clearance));
          }),
          { numRuns, seed: 20_261_116 },
        );
      });
    }
  }
});
