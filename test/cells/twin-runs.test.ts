import fc from "fast-check";
import { describe, expect, test } from "#test";
import { isWithin, labelOf } from "../../src/store/label.ts";
import { type Program, programs, runTwin, streamPrograms } from "./twin-program.ts";

/** The notes of observers with this clearance or less. */
async function sight(program: Program, world: 0 | 1, secret: readonly string[], clearance: readonly string[]) {
  const notes = await runTwin(program, world, secret);
  return notes
    .filter((note) => isWithin(note.clearance, labelOf(clearance)))
    .map(({ clearance: of, what }) => [of, what]);
}

/**
 * A node with a clearance is refused a computed value whose label depends on a secret, within the clearance and above
 * it.
 */
const FOUND: Program[] = [
  [3, 4],
  [4, 3],
].map(([by, chosen]) => ({
  computed: [
    { kind: "fail", of: [by as number, chosen as number, 0], clearance: undefined },
    { kind: "catch", of: [10, 0, 0], clearance: ["a"] },
  ],
  processes: [],
  handlers: [],
  steps: [{ kind: "set", cell: by as number, values: [0, 2] }, { kind: "settle" }],
}));

describe("twin runs", () => {
  for (const [secret, clearance] of [
    [["b"], ["a"]],
    [["a", "b"], []],
  ] as const) {
    for (const [what, of, numRuns] of [
      ["cells and processes", programs, 400],
      ["streams and events", streamPrograms, 600],
    ] as const) {
      test(`[F1] [I8] an observer cleared for [${clearance}] sees the same ${what} whatever the secrets [${secret}] are`, async () => {
        await fc.assert(
          fc.asyncProperty(of, async (program) => {
            expect(await sight(program, 1, secret, clearance)).toEqual(await sight(program, 0, secret, clearance));
          }),
          { numRuns, seed: 20_261_116, examples: FOUND.map((program) => [program]) },
        );
      });
    }
  }
});
